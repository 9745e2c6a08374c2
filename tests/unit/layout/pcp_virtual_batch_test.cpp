#include "layout/pcp_virtual_batch.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr CpRank kRank0{0};
constexpr CpRank kRank1{1};

StepRow row_of(std::int64_t computed, std::int64_t scheduled, RowState state = RowState::prefill) {
  StepRow row;
  row.computed = computed;
  row.scheduled = scheduled;
  row.state = state;
  return row;
}

Step step_of(std::vector<StepRow> rows) {
  Step step;
  step.rows = std::move(rows);
  return step;
}

std::vector<std::int64_t> counts(const VirtualBatch& batch) {
  std::vector<std::int64_t> result;
  result.reserve(batch.rows.size());
  for (std::uint32_t rank = 0; rank < batch.rows.size(); ++rank) {
    result.push_back(local_rows(batch, CpRank{rank}));
  }
  return result;
}

// c = ceil(7 / 4) = 2: chunks {0,1} {2,3} {4,5} {6}. Rank 0 owns the first and the last, and what
// starts the request comes last.
TEST(PcpVirtualBatch, CutsSevenTokensInTwoRowsEach) {
  const VirtualBatch batch = make_virtual_batch(step_of({row_of(0, 7)}), 2);
  EXPECT_THAT(local_tokens(batch, kRank0), ElementsAre(6, 0, 1));
  EXPECT_THAT(local_tokens(batch, kRank1), ElementsAre(2, 3, 4, 5));
  EXPECT_EQ(max_rows(batch), 4);
  EXPECT_THAT(hidden_restore(batch), ElementsAre(1, 2, 4, 5, 6, 7, 0));
  EXPECT_THAT(gather_index(batch), ElementsAre(6, 0, 1, 0, 2, 3, 4, 5));
  EXPECT_THAT(kv_write_mask(batch), ElementsAre(1, 1, 1, 0, 1, 1, 1, 1));
}

// A decode after 20, 5 fresh tokens (c = 2), 10 after 32 (c = 3).
TEST(PcpVirtualBatch, OrdersDecodesThenContinuedThenFreshRows) {
  const VirtualBatch batch = make_virtual_batch(
      step_of({row_of(20, 1, RowState::decode), row_of(0, 5), row_of(32, 10)}), 2);
  EXPECT_THAT(local_positions(batch, kRank0), ElementsAre(20, 32, 33, 34, 41, 0, 1));
  EXPECT_THAT(local_positions(batch, kRank1), ElementsAre(20, 2, 3, 4, 35, 36, 37, 38, 39, 40));
  EXPECT_EQ(max_rows(batch), 10);
  EXPECT_EQ(decode_rows(batch), 1);
  EXPECT_THAT(hidden_restore(batch),
              ElementsAre(0, 5, 6, 11, 12, 13, 1, 2, 3, 14, 15, 16, 17, 18, 19, 4));
  // Rank 1's replica of the decode, gathered row 10, is not written.
  EXPECT_THAT(kv_write_mask(batch),
              ElementsAre(1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1));
}

TEST(PcpVirtualBatch, LeavesRanksWithDifferentCounts) {
  EXPECT_THAT(counts(make_virtual_batch(step_of({row_of(0, 9)}), 2)), ElementsAre(3, 6));
  EXPECT_THAT(counts(make_virtual_batch(step_of({row_of(0, 13)}), 2)), ElementsAre(5, 8));
}

TEST(PcpVirtualBatch, LeavesARankWithNothing) {
  const VirtualBatch batch = make_virtual_batch(step_of({row_of(0, 3)}), 4);
  EXPECT_THAT(counts(batch), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(batch.rows[3], IsEmpty());
  EXPECT_THAT(kv_write_mask(batch), ElementsAre(1, 1, 1, 0));
}

// The chunk has the length of a decode and is not one: only rank 0 has it, and after the decode,
// although the batch has it before.
TEST(PcpVirtualBatch, TakesAChunkOfOneTokenForAPrefill) {
  const VirtualBatch batch =
      make_virtual_batch(step_of({row_of(8, 1), row_of(5, 1, RowState::decode)}), 2);
  EXPECT_THAT(local_tokens(batch, kRank0), ElementsAre(1, 0));
  EXPECT_THAT(local_tokens(batch, kRank1), ElementsAre(1));
  EXPECT_EQ(decode_rows(batch), 1);
  EXPECT_THAT(hidden_restore(batch), ElementsAre(1, 0));
  EXPECT_THAT(kv_write_mask(batch), ElementsAre(1, 1, 0, 0));
}

// Three tokens of a decode row, as with speculative decoding.
TEST(PcpVirtualBatch, ReplicatesEveryTokenOfADecode) {
  const VirtualBatch batch =
      make_virtual_batch(step_of({row_of(9, 3, RowState::decode), row_of(0, 2)}), 2);
  EXPECT_THAT(local_tokens(batch, kRank0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(local_tokens(batch, kRank1), ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(hidden_restore(batch), ElementsAre(0, 1, 2, 3, 7));
}

// A decode of a request without anything in the cache starts at 0 and is first all the same.
TEST(PcpVirtualBatch, PutsADecodeFromPositionZeroFirst) {
  const VirtualBatch batch =
      make_virtual_batch(step_of({row_of(4, 4), row_of(0, 1, RowState::decode)}), 2);
  EXPECT_THAT(local_tokens(batch, kRank0), ElementsAre(4, 0, 3));
}

TEST(PcpBatch, IsSplitOnlyWithAPrefillAndTwoRanks) {
  const Step prefill = step_of({row_of(5, 1), row_of(5, 1, RowState::decode)});
  EXPECT_TRUE(is_pcp_applicable(prefill, 2));
  EXPECT_FALSE(is_pcp_applicable(prefill, 1));
  EXPECT_FALSE(is_pcp_applicable(step_of({row_of(5, 1, RowState::decode)}), 2));
  EXPECT_FALSE(is_pcp_applicable(step_of({}), 2));
}

}  // namespace
}  // namespace cpverify::layout
