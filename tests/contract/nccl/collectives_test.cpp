// All collectives on simulated devices, and what racecheck knows of the buffers that they own.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "collectives/local_nccl.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/reduction.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "sim/driver/sim_driver.hpp"
#include "support/device_session.hpp"

namespace cpverify::collectives {
namespace {

using gpu::CuDevicePtr;
using gpu::CuResult;
using gpu::NcclComm;
using gpu::NcclDataType;
using gpu::NcclRedOp;
using gpu::NcclResult;
using test_support::DeviceSession;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using Words = std::vector<std::uint32_t>;

constexpr std::size_t kRanks = 3;

class CollectivesTest : public testing::Test {
 protected:
  CollectivesTest() {
    sim::SimOptions options;
    options.device_count = kRanks;
    options.is_race_checked = true;
    driver_ = sim::make_sim_driver(options);
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      sessions_.push_back(std::make_unique<DeviceSession>(*driver_, static_cast<int>(rank)));
    }
    use({});
  }
  ~CollectivesTest() override {
    for (const NcclComm comm : comms_) static_cast<void>(nccl_->ncclCommDestroy(comm));
  }

  void use(const ReductionSpec& spec) {
    nccl_ = make_local_nccl(*driver_, spec);
    comms_.resize(kRanks);
    EXPECT_EQ(nccl_->ncclCommInitAll(comms_.data(), kRanks, nullptr), NcclResult::success);
  }

  /// Word i of rank r is 100 r + i.
  CuDevicePtr upload(std::size_t rank, std::size_t count) {
    Words words(count);
    for (std::size_t i = 0; i < count; ++i) words[i] = static_cast<std::uint32_t>(100 * rank + i);
    return sessions_[rank]->allocate_with(words);
  }
  std::vector<CuDevicePtr> upload_all(std::size_t count) {
    std::vector<CuDevicePtr> buffers;
    for (std::size_t rank = 0; rank < kRanks; ++rank) buffers.push_back(upload(rank, count));
    return buffers;
  }
  std::vector<CuDevicePtr> allocate_all(std::size_t count) {
    std::vector<CuDevicePtr> buffers;
    for (const auto& session : sessions_) buffers.push_back(session->allocate(count * 4));
    return buffers;
  }
  Words download(std::size_t rank, CuDevicePtr source, std::size_t count) {
    return sessions_[rank]->download<std::uint32_t>(source, count);
  }
  gpu::CuStream stream(std::size_t rank) { return sessions_[rank]->stream; }

  /// `call(rank)` of every rank, in a group.
  template <class Call>
  NcclResult group(Call call) {
    EXPECT_EQ(nccl_->ncclGroupStart(), NcclResult::success);
    for (std::size_t rank = 0; rank < kRanks; ++rank) static_cast<void>(call(rank));
    return nccl_->ncclGroupEnd();
  }
  NcclResult gather(const std::vector<CuDevicePtr>& send, const std::vector<CuDevicePtr>& recv) {
    return group([&](std::size_t rank) {
      return nccl_->ncclAllGather(send[rank], recv[rank], 2, NcclDataType::uint32, comms_[rank],
                                  stream(rank));
    });
  }
  void synchronise_all() {
    for (const auto& session : sessions_) {
      session->use();
      EXPECT_EQ(driver_->cuCtxSynchronize(), CuResult::success);
    }
  }

  std::unique_ptr<sim::SimDriver> driver_;
  std::unique_ptr<gpu::NcclApi> nccl_;
  std::vector<std::unique_ptr<DeviceSession>> sessions_;
  std::vector<NcclComm> comms_;
};

TEST_F(CollectivesTest, AllReduceSumsOnEveryRankAndInPlace) {
  const std::vector<CuDevicePtr> buffers = upload_all(4);
  for (int round = 0; round < 2; ++round) {
    ASSERT_EQ(group([&](std::size_t rank) {
                return nccl_->ncclAllReduce(buffers[rank], buffers[rank], 4, NcclDataType::uint32,
                                            NcclRedOp::sum, comms_[rank], stream(rank));
              }),
              NcclResult::success);
  }
  // 300 + 3 i, then three times that.
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(download(rank, buffers[rank], 4), ElementsAre(900, 909, 918, 927));
  }
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(CollectivesTest, ReduceScatterGivesEachRankItsBlock) {
  const std::vector<CuDevicePtr> send = upload_all(6);
  const std::vector<CuDevicePtr> recv = allocate_all(2);
  ASSERT_EQ(group([&](std::size_t rank) {
              return nccl_->ncclReduceScatter(send[rank], recv[rank], 2, NcclDataType::uint32,
                                              NcclRedOp::max, comms_[rank], stream(rank));
            }),
            NcclResult::success);
  EXPECT_THAT(download(0, recv[0], 2), ElementsAre(200, 201));
  EXPECT_THAT(download(2, recv[2], 2), ElementsAre(204, 205));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(CollectivesTest, ReduceAndBroadcastHaveARoot) {
  const std::vector<CuDevicePtr> send = upload_all(2);
  const std::vector<CuDevicePtr> recv = allocate_all(2);
  ASSERT_EQ(group([&](std::size_t rank) {
              return nccl_->ncclReduce(send[rank], rank == 1 ? recv[1] : 0, 2, NcclDataType::uint32,
                                       NcclRedOp::sum, 1, comms_[rank], stream(rank));
            }),
            NcclResult::success);
  ASSERT_EQ(group([&](std::size_t rank) {
              return nccl_->ncclBroadcast(rank == 1 ? recv[1] : 0, recv[rank], 2,
                                          NcclDataType::uint32, 1, comms_[rank], stream(rank));
            }),
            NcclResult::success);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_THAT(download(rank, recv[rank], 2), ElementsAre(300, 303));
  }
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(CollectivesTest, AlltoAllTransposes) {
  const std::vector<CuDevicePtr> send = upload_all(3);
  const std::vector<CuDevicePtr> recv = allocate_all(3);
  ASSERT_EQ(group([&](std::size_t rank) {
              return nccl_->ncclAlltoAll(send[rank], recv[rank], 1, NcclDataType::uint32,
                                         comms_[rank], stream(rank));
            }),
            NcclResult::success);
  EXPECT_THAT(download(1, recv[1], 3), ElementsAre(1, 101, 201));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(CollectivesTest, SendsMeetReceivesInTheOrderOfTheCalls) {
  const CuDevicePtr send = upload(0, 4);
  const CuDevicePtr recv = sessions_[2]->allocate(16);
  const CuDevicePtr gathered = sessions_[0]->allocate(4);
  nccl_->ncclGroupStart();
  nccl_->ncclSend(send, 2, NcclDataType::uint32, 2, comms_[0], stream(0));
  nccl_->ncclRecv(recv + 8, 2, NcclDataType::uint32, 0, comms_[2], stream(2));
  nccl_->ncclSend(send + 8, 2, NcclDataType::uint32, 2, comms_[0], stream(0));
  nccl_->ncclRecv(recv, 2, NcclDataType::uint32, 0, comms_[2], stream(2));
  ASSERT_EQ(nccl_->ncclGroupEnd(), NcclResult::success);
  EXPECT_THAT(download(2, recv, 4), ElementsAre(2, 3, 0, 1));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  // One that nobody receives, and one of another size.
  nccl_->ncclGroupStart();
  nccl_->ncclSend(send, 2, NcclDataType::uint32, 1, comms_[0], stream(0));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  EXPECT_THAT(std::string{nccl_->ncclGetLastError(nullptr)},
              HasSubstr("rank 0 sends 1 times to rank 1, which receives 0 times"));
  nccl_->ncclGroupStart();
  nccl_->ncclSend(send, 2, NcclDataType::uint32, 2, comms_[0], stream(0));
  nccl_->ncclRecv(recv, 1, NcclDataType::uint32, 0, comms_[2], stream(2));
  EXPECT_EQ(nccl_->ncclGroupEnd(), NcclResult::invalid_usage);
  static_cast<void>(gathered);
}

TEST_F(CollectivesTest, RefusesWhatDoesNotFit) {
  const std::vector<CuDevicePtr> buffers = upload_all(4);
  const auto reduce = [&](std::size_t rank, NcclRedOp op, int root) {
    return nccl_->ncclReduce(buffers[rank], buffers[rank], 4, NcclDataType::uint32, op, root,
                             comms_[rank], stream(rank));
  };
  EXPECT_EQ(reduce(0, NcclRedOp{7}, 0), NcclResult::invalid_argument);
  EXPECT_EQ(reduce(0, NcclRedOp::sum, 3), NcclResult::invalid_argument);
  EXPECT_EQ(reduce(0, NcclRedOp::sum, -1), NcclResult::invalid_argument);
  EXPECT_EQ(group([&](std::size_t rank) {
              return reduce(rank, NcclRedOp::sum, static_cast<int>(rank) / 2);
            }),
            NcclResult::invalid_usage);
  EXPECT_EQ(group([&](std::size_t rank) {
              return rank == 1 ? nccl_->ncclBroadcast(buffers[1], buffers[1], 4,
                                                      NcclDataType::uint32, 0, comms_[1], stream(1))
                               : reduce(rank, NcclRedOp::sum, 0);
            }),
            NcclResult::invalid_usage);
  EXPECT_THAT(std::string{nccl_->ncclGetLastError(nullptr)},
              HasSubstr("rank 1 calls ncclBroadcast, rank 0 calls ncclReduce"));
  int value = -1;
  EXPECT_EQ(nccl_->ncclCommCount(comms_[2], &value), NcclResult::success);
  EXPECT_EQ(value, 3);
  EXPECT_EQ(nccl_->ncclCommUserRank(comms_[2], &value), NcclResult::success);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(nccl_->ncclCommCuDevice(comms_[2], &value), NcclResult::success);
  EXPECT_EQ(value, 2);
  EXPECT_EQ(nccl_->ncclCommCount(nullptr, &value), NcclResult::invalid_argument);
  EXPECT_EQ(nccl_->ncclCommCount(comms_[0], nullptr), NcclResult::invalid_argument);
  EXPECT_STREQ(nccl_->ncclGetErrorString(NcclResult::success), "no error");
}

TEST_F(CollectivesTest, APolicyThatDoesNotFitTheRanksIsRefused) {
  ReductionSpec spec;
  spec.ring = {1, 0};
  use(spec);
  const std::vector<CuDevicePtr> buffers = upload_all(1);
  EXPECT_EQ(nccl_->ncclAllReduce(buffers[0], buffers[0], 1, NcclDataType::uint32, NcclRedOp::sum,
                                 comms_[0], stream(0)),
            NcclResult::invalid_argument);
  EXPECT_THAT(std::string{nccl_->ncclGetLastError(nullptr)}, HasSubstr("does not fit 3 ranks"));
}

// f32 has 24 bits: from 2^24 on, values are 2 apart and a tie goes to the multiple of 4. Ranks have
// 2^24, 1, 1. The one chunk goes round 1 2 0: 2 + 2^24. Ring 0 2 1: from position 1, ranks 2 1 0.
// Ring 1 0 2, from position 1: ranks 0 2 1: 2^24 + 1 -> 2^24, twice.
TEST_F(CollectivesTest, TheBitsAreThoseOfThePolicy) {
  const auto run = [&](const std::vector<std::uint32_t>& ring) {
    ReductionSpec spec;
    spec.ring = ring;
    use(spec);
    std::vector<CuDevicePtr> buffers;
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      buffers.push_back(
          sessions_[rank]->allocate_with(std::vector<float>{rank == 0 ? 16777216.0F : 1.0F}));
    }
    EXPECT_EQ(group([&](std::size_t rank) {
                return nccl_->ncclAllReduce(buffers[rank], buffers[rank], 1, NcclDataType::float32,
                                            NcclRedOp::sum, comms_[rank], stream(rank));
              }),
              NcclResult::success);
    return sessions_[1]->download<float>(buffers[1], 1).front();
  };
  EXPECT_EQ(run({}), 16777218.0F);
  EXPECT_EQ(run({0, 2, 1}), 16777218.0F);
  EXPECT_EQ(run({1, 0, 2}), 16777216.0F);
}

TEST_F(CollectivesTest, AGatherOwnsItsTargetUntilItHasEnded) {
  const std::vector<CuDevicePtr> send = upload_all(2);
  const std::vector<CuDevicePtr> recv = allocate_all(6);
  ASSERT_EQ(gather(send, recv), NcclResult::success);
  sessions_[1]->use();
  gpu::CuStream other = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, gpu::kStreamNonBlocking), CuResult::success);
  const CuDevicePtr copy = sessions_[1]->allocate(24);
  ASSERT_EQ(driver_->cuMemcpyDtoDAsync(copy, recv[1], 8, other), CuResult::success);
  synchronise_all();
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].allocation, recv[1]);
  EXPECT_EQ(faults[0].size_bytes, 8U);
  EXPECT_THAT(faults[0].kernel + faults[0].detail, HasSubstr("ncclAllGather of rank 1"));
}

TEST_F(CollectivesTest, AGatherThatIsWaitedForOwnsNothing) {
  const std::vector<CuDevicePtr> send = upload_all(2);
  const std::vector<CuDevicePtr> recv = allocate_all(6);
  ASSERT_EQ(gather(send, recv), NcclResult::success);
  sessions_[1]->use();
  gpu::CuStream other = nullptr;
  gpu::CuEvent event = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, gpu::kStreamNonBlocking), CuResult::success);
  ASSERT_EQ(driver_->cuEventCreate(&event, 0), CuResult::success);
  ASSERT_EQ(driver_->cuEventRecord(event, stream(1)), CuResult::success);
  ASSERT_EQ(driver_->cuStreamWaitEvent(other, event, 0), CuResult::success);
  const CuDevicePtr copy = sessions_[1]->allocate(24);
  ASSERT_EQ(driver_->cuMemcpyDtoDAsync(copy, recv[1], 24, other), CuResult::success);
  ASSERT_EQ(driver_->cuMemsetD8Async(send[1], 0, 8, other), CuResult::success);
  synchronise_all();
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(CollectivesTest, AGatherOwnsItsSourceOnEveryRankThatReadsIt) {
  const std::vector<CuDevicePtr> send = upload_all(2);
  const std::vector<CuDevicePtr> recv = allocate_all(6);
  ASSERT_EQ(gather(send, recv), NcclResult::success);
  sessions_[0]->use();
  gpu::CuStream other = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, gpu::kStreamNonBlocking), CuResult::success);
  ASSERT_EQ(driver_->cuMemsetD8Async(send[0], 0, 8, other), CuResult::success);
  synchronise_all();
  // The ranks 0, 1 and 2 read it, and the upload of rank 0's own stream wrote it.
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, testing::Not(IsEmpty()));
  for (const Fault& fault : faults) EXPECT_EQ(fault.allocation, send[0]);
}

}  // namespace
}  // namespace cpverify::collectives
