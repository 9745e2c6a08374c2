#include "contract/nccl/nccl_contract.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "support/device_session.hpp"

namespace cpverify::contract {
namespace {

using gpu::CuDevicePtr;
using gpu::CuResult;
using gpu::NcclComm;
using gpu::NcclDataType;
using gpu::NcclResult;
using test_support::DeviceSession;
using testing::Each;

using Words = std::vector<std::uint32_t>;

constexpr std::uint32_t kCanary = 0xcafecafe;

/// `count` words that tell rank and position.
Words block_of(std::size_t rank, std::size_t count) {
  Words words(count);
  for (std::size_t i = 0; i < count; ++i) {
    words[i] = static_cast<std::uint32_t>((rank + 1) * 1'000'000 + i);
  }
  return words;
}

Words all_blocks(std::size_t ranks, std::size_t count) {
  Words words;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Words block = block_of(rank, count);
    words.insert(words.end(), block.begin(), block.end());
  }
  return words;
}

/// A communicator over some of the sessions, with buffers for one gather.
class Gathering {
 public:
  Gathering(const NcclPair& pair, const std::vector<DeviceSession*>& ranks,
            const std::vector<int>& devices)
      : nccl_{*pair.nccl}, ranks_{ranks}, comms_(ranks.size()) {
    EXPECT_EQ(nccl_.ncclCommInitAll(comms_.data(), static_cast<int>(comms_.size()), devices.data()),
              NcclResult::success);
  }
  ~Gathering() {
    for (const NcclComm comm : comms_) {
      EXPECT_EQ(nccl_.ncclCommDestroy(comm), NcclResult::success);
    }
  }
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  /// Buffers of their own, recv one word longer than it need be.
  void prepare(std::size_t count) {
    count_ = count;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      send.push_back(ranks_[rank]->allocate_with(with_canary(block_of(rank, count))));
      recv.push_back(ranks_[rank]->allocate_with(Words(ranks_.size() * count + 1, kCanary)));
    }
  }
  /// Each rank's block where it will be in the result.
  void prepare_in_place(std::size_t count) {
    count_ = count;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      recv.push_back(ranks_[rank]->allocate_with(Words(ranks_.size() * count + 1, kCanary)));
      send.push_back(recv.back() + rank * count * sizeof(std::uint32_t));
      ranks_[rank]->upload(send.back(), block_of(rank, count));
    }
  }
  void call(std::size_t rank) {
    EXPECT_EQ(nccl_.ncclAllGather(send[rank], recv[rank], count_, NcclDataType::uint32,
                                  comms_[rank], ranks_[rank]->stream),
              NcclResult::success);
  }
  void call_all() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) call(rank);
  }
  void expect_gathered() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      const std::size_t total = ranks_.size() * count_;
      const Words result = ranks_[rank]->download<std::uint32_t>(recv[rank], total + 1);
      EXPECT_EQ(result, with_canary(all_blocks(ranks_.size(), count_))) << "rank " << rank;
    }
  }

  std::vector<CuDevicePtr> send;
  std::vector<CuDevicePtr> recv;

 private:
  static Words with_canary(Words words) {
    words.push_back(kCanary);
    return words;
  }

  gpu::NcclApi& nccl_;
  std::vector<DeviceSession*> ranks_;
  std::vector<NcclComm> comms_;
  std::size_t count_ = 0;
};

TEST_P(NcclContract, GathersBlocksInRankOrderForEverySize) {
  for (const std::size_t count : {0U, 1U, 3U, 1000U, 65537U}) {
    Gathering gathering{
        pair_, {sessions_[0].get(), sessions_[1].get(), sessions_[2].get()}, {0, 1, 2}};
    gathering.prepare(count);
    ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
    gathering.call_all();
    ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success)
        << pair_.nccl->ncclGetLastError(nullptr);
    gathering.expect_gathered();
  }
}

TEST_P(NcclContract, GathersInPlace) {
  Gathering gathering{
      pair_, {sessions_[0].get(), sessions_[1].get(), sessions_[2].get()}, {0, 1, 2}};
  gathering.prepare_in_place(100);
  ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
  gathering.call_all();
  ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success);
  gathering.expect_gathered();
}

TEST_P(NcclContract, CountsElementsOfTheTypeNotBytes) {
  // Eight-byte and two-byte elements, four of each: 32 and 8 bytes per rank.
  for (const auto& [type, size] : {std::pair{NcclDataType::int64, std::size_t{8}},
                                   std::pair{NcclDataType::bfloat16, std::size_t{2}},
                                   std::pair{NcclDataType::uint8, std::size_t{1}}}) {
    DeviceSession& session = *sessions_[0];
    NcclComm comm = nullptr;
    ASSERT_EQ(pair_.nccl->ncclCommInitAll(&comm, 1, nullptr), NcclResult::success);
    const CuDevicePtr send = session.allocate_with(std::vector<std::uint8_t>(64, 1));
    const CuDevicePtr recv = session.allocate_with(std::vector<std::uint8_t>(64, 9));
    EXPECT_EQ(pair_.nccl->ncclAllGather(send, recv, 4, type, comm, session.stream),
              NcclResult::success);
    std::vector<std::uint8_t> expected(64, 9);
    std::fill_n(expected.begin(), 4 * size, std::uint8_t{1});
    EXPECT_EQ(session.download<std::uint8_t>(recv, 64), expected);
    EXPECT_EQ(pair_.nccl->ncclCommDestroy(comm), NcclResult::success);
  }
}

TEST_P(NcclContract, RanksFollowTheOrderOfTheDeviceList) {
  Gathering gathering{pair_, {sessions_[3].get(), sessions_[0].get()}, {3, 0}};
  gathering.prepare(5);
  ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
  gathering.call(1);
  gathering.call(0);
  ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success);
  gathering.expect_gathered();
}

TEST_P(NcclContract, RunsSeveralCommunicatorsInOneGroup) {
  Gathering even{pair_, {sessions_[0].get(), sessions_[2].get()}, {0, 2}};
  Gathering odd{pair_, {sessions_[1].get(), sessions_[3].get()}, {1, 3}};
  even.prepare(7);
  odd.prepare(11);
  ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
  for (const std::size_t rank : {0U, 1U}) {
    even.call(rank);
    odd.call(rank);
  }
  ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success);
  even.expect_gathered();
  odd.expect_gathered();
}

TEST_P(NcclContract, SendBuffersMayBeOverwrittenByLaterWorkOfTheStream) {
  Gathering gathering{pair_, {sessions_[0].get(), sessions_[1].get()}, {0, 1}};
  gathering.prepare(1000);
  ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
  gathering.call_all();
  ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success);
  for (const std::size_t rank : {0U, 1U}) {
    sessions_[rank]->use();
    ASSERT_EQ(
        pair_.driver->cuMemsetD32Async(gathering.send[rank], 0, 1000, sessions_[rank]->stream),
        CuResult::success);
  }
  gathering.expect_gathered();
}

TEST_P(NcclContract, LaterGroupsSeeWhatEarlierOnesDelivered) {
  DeviceSession& first = *sessions_[0];
  DeviceSession& second = *sessions_[1];
  Gathering gathering{pair_, {&first, &second}, {0, 1}};
  gathering.prepare(4);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
    gathering.call_all();
    ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success);
    if (i == 1) break;
    // Rank 0 sends what it received from rank 1 next time.
    first.use();
    ASSERT_EQ(pair_.driver->cuMemcpyDtoDAsync(gathering.send[0], gathering.recv[0] + 16, 16,
                                              first.stream),
              CuResult::success);
  }
  Words expected = block_of(1, 4);
  expected.insert(expected.end(), expected.begin(), expected.begin() + 4);
  EXPECT_EQ(second.download<std::uint32_t>(gathering.recv[1], 8), expected);
}

TEST_P(NcclContract, LeavesTheCurrentContext) {
  Gathering gathering{pair_, {sessions_[0].get(), sessions_[1].get()}, {0, 1}};
  gathering.prepare(4);
  sessions_[3]->use();
  ASSERT_EQ(pair_.nccl->ncclGroupStart(), NcclResult::success);
  gathering.call_all();
  ASSERT_EQ(pair_.nccl->ncclGroupEnd(), NcclResult::success);
  gpu::CuContext current = nullptr;
  ASSERT_EQ(pair_.driver->cuCtxGetCurrent(&current), CuResult::success);
  EXPECT_EQ(current, sessions_[3]->context);
}

}  // namespace
}  // namespace cpverify::contract
