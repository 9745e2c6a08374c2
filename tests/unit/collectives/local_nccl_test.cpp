#include "collectives/local_nccl.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "support/recording_driver.hpp"

namespace cpverify::collectives {
namespace {

using gpu::NcclComm;
using gpu::NcclDataType;
using gpu::NcclResult;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

gpu::CuStream stream(std::uintptr_t number) {
  return reinterpret_cast<gpu::CuStream>(number);
}

/// Two ranks. Rank r sends from 1000 + r * 100 and receives at 5000 + r * 1000 on stream r + 1.
class LocalNcclTest : public testing::Test {
 protected:
  LocalNcclTest() {
    EXPECT_EQ(nccl_->ncclCommInitAll(comms_.data(), 2, nullptr), NcclResult::success);
  }

  NcclResult gather(std::size_t rank, std::size_t count,
                    NcclDataType type = NcclDataType::float32) {
    return nccl_->ncclAllGather(1000 + rank * 100, 5000 + rank * 1000, count, type, comms_.at(rank),
                                stream(rank + 1));
  }
  std::string last_error() { return nccl_->ncclGetLastError(nullptr); }

  test_support::RecordingDriver driver_{4};
  std::unique_ptr<gpu::NcclApi> nccl_ = make_local_nccl(driver_);
  std::array<NcclComm, 2> comms_{};
};

TEST_F(LocalNcclTest, AnEmptyGroupDoesNothing) {
  EXPECT_EQ(nccl_->ncclGroupStart(), NcclResult::success);
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, CopiesTheBlockOfEveryRankToEveryRank) {
  nccl_->ncclGroupStart();
  EXPECT_EQ(gather(0, 2), NcclResult::success);
  EXPECT_EQ(gather(1, 2), NcclResult::success);
  EXPECT_THAT(driver_.calls, IsEmpty());
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  // Two floats are 8 bytes: block 1 lies at recv + 8.
  EXPECT_THAT(driver_.calls_of("copy"), ElementsAre("copy 100:5000 <- 100:1000 size 8 on 1",
                                                    "copy 100:5008 <- 101:1100 size 8 on 1",
                                                    "copy 101:6000 <- 100:1000 size 8 on 2",
                                                    "copy 101:6008 <- 101:1100 size 8 on 2"));
}

// Events of rank r are 3r + 1 (joined), 3r + 2 (ready), 3r + 3 (done).
TEST_F(LocalNcclTest, CopiesAfterAllArePreparedAndEndsAfterAllHaveRead) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 0));
  static_cast<void>(gather(1, 0));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls,
              ElementsAre("record 2 on 1", "record 5 on 2",               // Ready.
                          "wait 2 on 1", "wait 5 on 1", "record 3 on 1",  // Rank 0 gathers.
                          "wait 2 on 2", "wait 5 on 2", "record 6 on 2",  // Rank 1 gathers.
                          "wait 3 on 1", "wait 6 on 1", "wait 3 on 2", "wait 6 on 2"));
}

TEST_F(LocalNcclTest, LeavesTheOwnBlockWhereItIsInPlace) {
  nccl_->ncclGroupStart();
  // Rank r sends from recv + r * 8.
  nccl_->ncclAllGather(5000, 5000, 8, NcclDataType::uint8, comms_[0], stream(1));
  nccl_->ncclAllGather(6008, 6000, 8, NcclDataType::uint8, comms_[1], stream(2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls_of("copy"), ElementsAre("copy 100:5008 <- 101:6008 size 8 on 1",
                                                    "copy 101:6000 <- 100:5000 size 8 on 2"));
}

TEST_F(LocalNcclTest, RefusesAnOverlapOtherThanInPlace) {
  nccl_->ncclGroupStart();
  nccl_->ncclAllGather(5008, 5000, 8, NcclDataType::uint8, comms_[0], stream(1));  // Block 1.
  nccl_->ncclAllGather(6008, 6000, 8, NcclDataType::uint8, comms_[1], stream(2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_THAT(last_error(), HasSubstr("send of rank 0 overlaps recv"));
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, AllowsSendRightBeforeAndRightAfterRecv) {
  nccl_->ncclGroupStart();
  nccl_->ncclAllGather(4992, 5000, 8, NcclDataType::uint8, comms_[0], stream(1));
  nccl_->ncclAllGather(6016, 6000, 8, NcclDataType::uint8, comms_[1], stream(2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
}

TEST_F(LocalNcclTest, ReportsTheMemberThatDidNotCall) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(1, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_EQ(last_error(), "ncclAllGather 0 of the group: rank 0 of 2 did not call");
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, ReportsTheMemberThatCalledOnceTooFew) {
  nccl_->ncclGroupStart();
  for (const std::size_t rank : {0U, 1U, 0U}) static_cast<void>(gather(rank, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_EQ(last_error(), "ncclAllGather 1 of the group: rank 1 of 2 did not call");
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, ReportsDifferentCountsAndTypes) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  static_cast<void>(gather(1, 3));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_THAT(last_error(), HasSubstr("rank 1 sends 3 elements of type 7, rank 0 sends 2"));
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2, NcclDataType::float16));
  static_cast<void>(gather(1, 2, NcclDataType::bfloat16));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, MatchesInCallOrderWhateverTheOrderOfTheRanks) {
  nccl_->ncclGroupStart();
  for (const std::size_t rank : {1U, 1U, 0U, 0U}) static_cast<void>(gather(rank, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls_of("copy"), SizeIs(8));
}

TEST_F(LocalNcclTest, ForgetsTheCallsOfAFailedGroup) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(1, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  static_cast<void>(gather(1, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls_of("copy"), SizeIs(4));
}

TEST_F(LocalNcclTest, OneMismatchStopsAllCommunicatorsOfTheGroup) {
  std::array<NcclComm, 2> others{};
  const std::array<int, 2> devices{2, 3};
  ASSERT_EQ(nccl_->ncclCommInitAll(others.data(), 2, devices.data()), NcclResult::success);
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  static_cast<void>(gather(1, 2));
  nccl_->ncclAllGather(1, 100, 2, NcclDataType::uint8, others[1], stream(4));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, RunsOnlyAtTheEndOfTheOutermostGroup) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  nccl_->ncclGroupStart();
  static_cast<void>(gather(1, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls, IsEmpty());
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(driver_.calls_of("copy"), SizeIs(4));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
}

TEST_F(LocalNcclTest, ACallOutsideAGroupIsEnoughForOneRankOnly) {
  EXPECT_EQ(gather(0, 2), NcclResult::invalid_usage);
  NcclComm alone = nullptr;
  ASSERT_EQ(nccl_->ncclCommInitAll(&alone, 1, nullptr), NcclResult::success);
  EXPECT_EQ(nccl_->ncclAllGather(1000, 5000, 3, NcclDataType::int64, alone, stream(1)),
            NcclResult::success);
  EXPECT_THAT(driver_.calls_of("copy"), ElementsAre("copy 100:5000 <- 100:1000 size 24 on 1"));
}

TEST_F(LocalNcclTest, AnErrorInsideAGroupIsReturnedAtItsEndAndNothingRuns) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  static_cast<void>(gather(1, 2));
  EXPECT_EQ(nccl_->ncclAllGather(1, 2, 3, NcclDataType::int8, nullptr, nullptr),
            NcclResult::invalid_argument);
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_argument);
  EXPECT_THAT(driver_.calls, IsEmpty());
}

TEST_F(LocalNcclTest, RefusesImpossibleArguments) {
  const auto call = [this](gpu::CuDevicePtr send, gpu::CuDevicePtr recv, std::size_t count,
                           NcclDataType type) {
    return nccl_->ncclAllGather(send, recv, count, type, comms_[0], stream(1));
  };
  nccl_->ncclGroupStart();
  EXPECT_EQ(call(0, 5000, 1, NcclDataType::int8), NcclResult::invalid_argument);
  EXPECT_EQ(call(1000, 0, 1, NcclDataType::int8), NcclResult::invalid_argument);
  EXPECT_EQ(call(1000, 5000, 1, static_cast<NcclDataType>(77)), NcclResult::invalid_argument);
  // 2^62 elements of 4 bytes are 2^64 bytes, before they are counted for two ranks.
  EXPECT_EQ(call(1000, 5000, std::size_t{1} << 62, NcclDataType::int32),
            NcclResult::invalid_argument);
  EXPECT_EQ(call(1000, 5000, std::numeric_limits<std::size_t>::max(), NcclDataType::int8),
            NcclResult::invalid_argument);
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_argument);
}

TEST_F(LocalNcclTest, PassesOnAFailureOfTheDriver) {
  for (const char* name : {"cuCtxGetCurrent", "cuCtxSetCurrent", "cuEventRecord",
                           "cuStreamWaitEvent", "cuMemcpyPeerAsync"}) {
    driver_.failing = name;
    nccl_->ncclGroupStart();
    static_cast<void>(gather(0, 2));
    static_cast<void>(gather(1, 2));
    EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::unhandled_cuda_error) << name;
    EXPECT_EQ(last_error(), std::string{name} + " failed: CUDA_ERROR_LAUNCH_FAILED (719)");
  }
}

TEST_F(LocalNcclTest, KeepsTheCurrentContext) {
  auto* const mine = reinterpret_cast<gpu::CuContext>(std::uintptr_t{77});
  driver_.cuCtxSetCurrent(mine);
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  static_cast<void>(gather(1, 2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  gpu::CuContext current = nullptr;
  driver_.cuCtxGetCurrent(&current);
  EXPECT_EQ(current, mine);
}

// A rank that gathers on two streams copies on the first; the second joins before and waits after.
TEST_F(LocalNcclTest, OrdersAllStreamsOfARankAroundTheGroup) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 1));
  static_cast<void>(gather(1, 1));
  nccl_->ncclAllGather(1000, 8000, 1, NcclDataType::int8, comms_[0], stream(9));
  nccl_->ncclAllGather(1100, 8100, 1, NcclDataType::int8, comms_[1], stream(2));
  driver_.calls.clear();
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_EQ(driver_.calls[0], "record 1 on 9");
  EXPECT_EQ(driver_.calls[1], "wait 1 on 1");
  EXPECT_EQ(driver_.calls[2], "record 2 on 1");
  const auto copies = driver_.calls_of("copy");
  EXPECT_THAT(copies,
              testing::Each(testing::AnyOf(testing::EndsWith("on 1"), testing::EndsWith("on 2"))));
  EXPECT_THAT(driver_.calls, testing::IsSupersetOf({"wait 3 on 9", "wait 6 on 9"}));
}

TEST_F(LocalNcclTest, RefusesImpossibleCliques) {
  std::array<NcclComm, 2> comms{};
  const std::array<int, 2> twice{1, 1};
  const std::array<int, 2> unknown{0, 4};
  EXPECT_EQ(nccl_->ncclCommInitAll(comms.data(), 0, nullptr), NcclResult::invalid_argument);
  EXPECT_EQ(nccl_->ncclCommInitAll(nullptr, 2, nullptr), NcclResult::invalid_argument);
  EXPECT_EQ(nccl_->ncclCommInitAll(comms.data(), 2, twice.data()), NcclResult::invalid_usage);
  EXPECT_EQ(nccl_->ncclCommInitAll(comms.data(), 2, unknown.data()),
            NcclResult::unhandled_cuda_error);
  EXPECT_EQ(last_error(), "cuDeviceGet failed: CUDA_ERROR_INVALID_DEVICE (101)");
}

TEST_F(LocalNcclTest, GivesEverythingBackWithTheLastCommunicator) {
  EXPECT_EQ(driver_.live_events, 6);
  EXPECT_EQ(driver_.live_contexts, 2);
  EXPECT_EQ(nccl_->ncclCommDestroy(comms_[0]), NcclResult::success);
  EXPECT_EQ(nccl_->ncclCommDestroy(comms_[0]), NcclResult::invalid_argument);
  EXPECT_EQ(driver_.live_events, 6);
  EXPECT_EQ(nccl_->ncclCommDestroy(comms_[1]), NcclResult::success);
  EXPECT_EQ(driver_.live_events, 0);
  EXPECT_EQ(driver_.live_contexts, 0);
}

TEST_F(LocalNcclTest, RefusesToDestroyACommunicatorOfTheOpenGroup) {
  nccl_->ncclGroupStart();
  static_cast<void>(gather(0, 2));
  EXPECT_EQ(nccl_->ncclCommDestroy(comms_[1]), NcclResult::invalid_usage);
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
}

}  // namespace
}  // namespace cpverify::collectives
