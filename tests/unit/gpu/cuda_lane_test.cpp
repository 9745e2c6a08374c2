#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "gpu/lane.hpp"
#include "gpu/nccl_library.hpp"

namespace cpverify::gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

// Holds on every machine: whether driver, NCCL or GPUs are missing, a million GPUs are not there.
TEST(OpenCudaLane, SaysWhatIsMissingAndNamesTheLaneThatNeedsNothing) {
  EXPECT_THAT([] { static_cast<void>(open_cuda_lane(1'000'000)); },
              ThrowsMessage<EnvironmentError>(HasSubstr("--lane sim")));
}

TEST(OpenNccl, NamesThePackageToInstall) {
  EXPECT_THAT(
      [] { static_cast<void>(open_nccl("libno_such_nccl.so.2")); },
      ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("libno_such_nccl.so.2"),
                                            HasSubstr("libnccl2"), HasSubstr("--lane sim"))));
}

}  // namespace
}  // namespace cpverify::gpu
