#include "gpu/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::gpu {
namespace {

using testing::StrEq;
using testing::ThrowsMessage;

TEST(CudaCheck, SaysWhichCallFailedHow) {
  EXPECT_THAT([] { cuda_check(CuResult::illegal_address, "cuStreamSynchronize"); },
              ThrowsMessage<EnvironmentError>(
                  StrEq("cuStreamSynchronize failed: CUDA_ERROR_ILLEGAL_ADDRESS (700)")));
  EXPECT_NO_THROW(cuda_check(CuResult::success, "cuInit"));
}

TEST(CudaCheck, ShowsTheNumberOfAResultThatHasNoNameHere) {
  EXPECT_EQ(describe(static_cast<CuResult>(999)), "CUDA_ERROR (999)");
}

TEST(NcclCheck, SaysWhichCallFailedHow) {
  EXPECT_THAT([] { nccl_check(NcclResult::invalid_usage, "ncclGroupEnd"); },
              ThrowsMessage<EnvironmentError>(StrEq("ncclGroupEnd failed: ncclInvalidUsage (5)")));
  EXPECT_NO_THROW(nccl_check(NcclResult::success, "ncclGroupEnd"));
}

}  // namespace
}  // namespace cpverify::gpu
