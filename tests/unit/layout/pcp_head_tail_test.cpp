#include "layout/pcp_head_tail.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/step.hpp"
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

HeadTailBatch batch_of(std::vector<StepRow> rows, std::uint32_t pcp_size) {
  Step step;
  step.rows = std::move(rows);
  return make_head_tail_batch(step, pcp_size);
}

// A decode is token 0, then tokens 1-5 and 6-13. Chunks of 2 both: 1 + 4 + 4 rows on each rank.
class PublishedBatch : public testing::Test {
 protected:
  const HeadTailBatch batch_ =
      batch_of({row_of(3, 1, RowState::decode), row_of(0, 5), row_of(0, 8)}, 2);
};

TEST_F(PublishedBatch, GivesRanksEquallyManyRows) {
  EXPECT_EQ(batch_.decode_rows(), 1);
  EXPECT_EQ(batch_.half_rows(), 4);
  EXPECT_EQ(batch_.local_rows(), 9);
  EXPECT_EQ(batch_.padded_decode_rows(), 2);
  EXPECT_EQ(batch_.padded_prefill_rows(), 16);
  // Positions 0 1 6 7 and 2 3 4 5 of each prefill; 5, 6 and 7 of the first one are pads.
  EXPECT_THAT(padded_local_tokens(batch_, kRank0), ElementsAre(0, 1, 2, -1, -1, 6, 7, 12, 13));
  EXPECT_THAT(padded_local_tokens(batch_, kRank1), ElementsAre(0, 3, 4, 5, -1, 8, 9, 10, 11));
}

TEST_F(PublishedBatch, IsRestoredByThePublishedIndex) {
  EXPECT_THAT(restore_index(batch_),
              ElementsAre(0, 9, 1, 2, 10, 11, 12, 13, 3, 4, 5, 6, 14, 15, 16, 17, 7, 8));
  EXPECT_THAT(unpad_mask(batch_),
              ElementsAre(1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(unpad_index(batch_), ElementsAre(0, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17));
  // Without decodes a rank gives 8 rows.
  EXPECT_THAT(prefill_restore_index(batch_),
              ElementsAre(0, 1, 8, 9, 10, 11, 2, 3, 4, 5, 12, 13, 14, 15, 6, 7));
}

// Rows 1-2, 5-6 are heads and 3-4, 7-8 tails.
TEST_F(PublishedBatch, PutsHeadsBeforeTails) {
  EXPECT_THAT(head_tail_index(batch_), ElementsAre(0, 1, 2, 5, 6, 3, 4, 7, 8));
  EXPECT_THAT(full_index(batch_), ElementsAre(0, 1, 2, 5, 6, 3, 4, 7, 8));
}

// Three prefills of one row a chunk: heads are local rows 0, 2, 4. This order is not its own
// inverse: row 1, a tail, is in place 3.
TEST(PcpHeadTail, UndoesTheOrderOfHalves) {
  const HeadTailBatch batch = batch_of({row_of(0, 4), row_of(0, 4), row_of(0, 3)}, 2);
  EXPECT_THAT(head_tail_index(batch), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(full_index(batch), ElementsAre(0, 3, 1, 4, 2, 5));
}

// The second published example: two decodes, 3 tokens padded to 4, 10 to 12.
TEST(PcpHeadTail, RestoresTwoDecodesAndTwoPrefills) {
  const HeadTailBatch batch =
      batch_of({row_of(9, 1, RowState::decode), row_of(20, 1, RowState::decode), row_of(0, 3),
                row_of(0, 10)},
               2);
  EXPECT_THAT(restore_index(batch),
              ElementsAre(0, 10, 1, 11, 2, 12, 13, 3, 4, 5, 6, 14, 15, 16, 17, 18, 19, 7, 8, 9));
  EXPECT_THAT(padded_local_tokens(batch, kRank0), ElementsAre(0, 1, 2, -1, 5, 6, 7, 14, -1, -1));
  EXPECT_THAT(padded_local_tokens(batch, kRank1), ElementsAre(0, 1, 3, 4, 8, 9, 10, 11, 12, 13));
}

// Three tokens in eight chunks: ranks 0 to 2 have one each as their heads, rank 3 has only pads.
TEST(PcpHeadTail, LeavesARankWithNothingButPads) {
  const HeadTailBatch batch = batch_of({row_of(0, 3)}, 4);
  EXPECT_THAT(padded_local_tokens(batch, kRank0), ElementsAre(0, -1));
  EXPECT_THAT(padded_local_tokens(batch, CpRank{2}), ElementsAre(2, -1));
  EXPECT_THAT(padded_local_tokens(batch, CpRank{3}), ElementsAre(-1, -1));
  EXPECT_THAT(unpad_mask(batch), ElementsAre(1, 1, 1, 0, 0, 0, 0, 0));
}

// By its state a prefill of one token: padded to four, while the decode behind it is not.
TEST(PcpHeadTail, TakesAChunkOfOneTokenForAPrefill) {
  const HeadTailBatch batch = batch_of({row_of(32, 1), row_of(5, 1, RowState::decode)}, 2);
  EXPECT_THAT(padded_local_tokens(batch, kRank0), ElementsAre(1, 0, -1));
  EXPECT_THAT(padded_local_tokens(batch, kRank1), ElementsAre(1, -1, -1));
  EXPECT_THAT(unpad_index(batch), ElementsAre(2, 0));
}

// One decode of three tokens: restored t0 t1 t2 t0 t1 t2, and the published mask 1 0 1 0 1 0, which
// does not select the replicas of one rank. The index does.
TEST(PcpHeadTail, KeepsThePublishedMaskOfLongDecodes) {
  const HeadTailBatch batch = batch_of({row_of(9, 3, RowState::decode)}, 2);
  EXPECT_THAT(restore_index(batch), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(unpad_mask(batch), ElementsAre(1, 0, 1, 0, 1, 0));
  EXPECT_THAT(unpad_index(batch), ElementsAre(0, 1, 2));
  EXPECT_THAT(prefill_restore_index(batch), IsEmpty());
}

// Of decodes of 1 and 3 tokens every rank has four rows.
TEST(PcpHeadTail, ReplicatesDecodesOfDifferentLengths) {
  const HeadTailBatch batch =
      batch_of({row_of(9, 1, RowState::decode), row_of(9, 3, RowState::decode)}, 2);
  EXPECT_EQ(batch.local_rows(), 4);
  EXPECT_THAT(restore_index(batch), ElementsAre(0, 4, 1, 2, 3, 5, 6, 7));
  EXPECT_THAT(unpad_index(batch), ElementsAre(0, 2, 3, 4));
}

TEST(PcpHeadTail, NumbersChunksFromBothEnds) {
  const HeadTailBatch batch = batch_of({row_of(0, 8)}, 3);
  EXPECT_EQ(chunk_of(batch, kRank0, Half::head), 0);
  EXPECT_EQ(chunk_of(batch, kRank0, Half::tail), 5);
  EXPECT_EQ(chunk_of(batch, CpRank{2}, Half::head), 2);
  EXPECT_EQ(chunk_of(batch, CpRank{2}, Half::tail), 3);
}

TEST(PcpHeadTail, OfNothingIsEmpty) {
  const HeadTailBatch batch = batch_of({}, 2);
  EXPECT_EQ(batch.local_rows(), 0);
  EXPECT_THAT(restore_index(batch), IsEmpty());
  EXPECT_THAT(unpad_index(batch), IsEmpty());
}

}  // namespace
}  // namespace cpverify::layout
