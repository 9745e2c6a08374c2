#include "layout/ring.hpp"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/step.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;

/// Requests with these numbers of new tokens and nothing cached.
RingBatch batch_of(const std::vector<std::int64_t>& scheduled, RingPlacement placement,
                   std::uint32_t cp_size) {
  Step step;
  for (const std::int64_t count : scheduled) {
    StepRow row;
    row.scheduled = count;
    step.rows.push_back(row);
  }
  return make_ring_batch(step, placement, cp_size);
}

/// 17 = 3 + 7 * 2: zigzag blocks on four ranks.
RingBatch example() {
  return batch_of({17}, RingPlacement::zigzag, 4);
}

TEST(Ring, PlacesAnEarlyAndALateBlock) {
  EXPECT_THAT(ring_tokens(example(), CpRank{0}), ElementsAre(0, 1, 2, 15, 16));
  EXPECT_THAT(ring_tokens(example(), CpRank{1}), ElementsAre(3, 4, 13, 14));
  EXPECT_EQ(max_ring_rows(example()), 5);
}

// 17 = 5 + 4 + 4 + 4 and 2 = 1 + 1 + 0 + 0; tokens 17 and 18 are those of the second request.
TEST(Ring, PlacesOnePieceOfEveryRequest) {
  const RingBatch batch = batch_of({17, 2}, RingPlacement::contiguous, 4);
  EXPECT_THAT(ring_tokens(batch, CpRank{0}), ElementsAre(0, 1, 2, 3, 4, 17));
  EXPECT_THAT(ring_tokens(batch, CpRank{1}), ElementsAre(5, 6, 7, 8, 18));
  EXPECT_THAT(ring_tokens(batch, CpRank{3}), ElementsAre(13, 14, 15, 16));
}

TEST(Ring, LeavesRanksWithoutRows) {
  const RingBatch batch = batch_of({1}, RingPlacement::zigzag, 3);
  EXPECT_EQ(ring_rows(batch, CpRank{0}), 1);
  EXPECT_EQ(ring_rows(batch, CpRank{2}), 0);
  EXPECT_THAT(hop_keys(batch, CpRank{2}, CpRank{0}).lengths, Each(0));
}

// After h messages to the right, a rank holds what the rank h places to its left had.
TEST(Ring, TakesBlocksFromTheLeft) {
  EXPECT_EQ(block_source(4, CpRank{1}, 0).value(), 1U);
  EXPECT_EQ(block_source(4, CpRank{1}, 1).value(), 0U);
  EXPECT_EQ(block_source(4, CpRank{1}, 2).value(), 3U);
  EXPECT_EQ(block_source(4, CpRank{0}, 3).value(), 1U);
}

// docs/strategies/ring.md, worked example: tokens 3-4 and 13-14 of rank 1 against each block.
TEST(Ring, SeesEarlierPiecesWholeAndLaterOnesNotAtAll) {
  const RingBatch batch = example();
  EXPECT_THAT(hop_keys(batch, CpRank{1}, CpRank{1}).lengths, ElementsAre(2, 4));
  EXPECT_THAT(hop_keys(batch, CpRank{1}, CpRank{0}).lengths, ElementsAre(3, 3));
  EXPECT_THAT(hop_keys(batch, CpRank{1}, CpRank{3}).lengths, ElementsAre(0, 4));
  // Rows 0-2 of rank 0 are tokens 0-2; rows 3 and 4, tokens 15 and 16, are later than token 14.
  EXPECT_THAT(hop_keys(batch, CpRank{1}, CpRank{0}).rows.back(), ElementsAre(0, 1, 2));
}

TEST(Ring, SeesNothingOfLaterRanksWhenContiguous) {
  const RingBatch batch = batch_of({12}, RingPlacement::contiguous, 3);
  EXPECT_EQ(hop_keys(batch, CpRank{0}, CpRank{2}).longest(), 0);
  EXPECT_EQ(hop_keys(batch, CpRank{2}, CpRank{0}).longest(), 4);
  EXPECT_THAT(hop_keys(batch_of({}, RingPlacement::contiguous, 3), CpRank{0}, CpRank{0}).rows,
              IsEmpty());
}

// Requests do not see each other: each has 2 tokens on each of two ranks, one a block.
TEST(Ring, KeepsRequestsApart) {
  const RingBatch batch = batch_of({4, 4}, RingPlacement::zigzag, 2);
  const HopKeys keys = hop_keys(batch, CpRank{0}, CpRank{1});
  EXPECT_THAT(keys.lengths, ElementsAre(0, 0, 2, 2));
  EXPECT_THAT(keys.rows[2], ElementsAre(0, 2));
  EXPECT_THAT(keys.rows[3], ElementsAre(1, 3));
}

TEST(Ring, SplitsAStepWithAPromptAndMoreThanOneRank) {
  Step step;
  step.rows.resize(2);
  step.rows[0].state = RowState::decode;
  step.rows[0].scheduled = 1;
  step.rows[1].state = RowState::decode;
  step.rows[1].scheduled = 1;
  EXPECT_FALSE(is_ring_applicable(step, 4));
  step.rows[1].state = RowState::prefill;
  EXPECT_TRUE(is_ring_applicable(step, 4));
  EXPECT_FALSE(is_ring_applicable(step, 1));
  step.rows[1].scheduled = 0;
  EXPECT_FALSE(is_ring_applicable(step, 4));
}

}  // namespace
}  // namespace cpverify::layout
