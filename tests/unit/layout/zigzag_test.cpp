#include "layout/zigzag.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/step.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Values = std::vector<std::int64_t>;

Step make_step(const std::vector<RowExtent>& rows) {
  Step step;
  for (const RowExtent& extent : rows) {
    StepRow row;
    row.computed = extent.prefix;
    row.scheduled = extent.extend;
    step.rows.push_back(row);
  }
  return step;
}

Values block_sizes(std::int64_t extend, std::uint32_t cp_size) {
  Values sizes;
  for (std::uint32_t j = 0; j < 2 * cp_size; ++j) {
    sizes.push_back(block_size(extend, cp_size, BlockIndex{j}));
  }
  return sizes;
}

Values rank_rows(const ZigzagBatch& batch) {
  Values rows;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    rows.push_back(logical_rows(batch, CpRank{rank}));
  }
  return rows;
}

Values kv(const ZigzagBatch& batch, std::uint32_t rank, Half half) {
  return half_lengths(batch, CpRank{rank}, half).seqlens_k;
}

Values queries(const ZigzagBatch& batch, std::uint32_t rank, Half half) {
  return half_lengths(batch, CpRank{rank}, half).seqlens_q;
}

Values positions(const ZigzagBatch& batch, std::uint32_t rank) {
  return shard_positions(batch, CpRank{rank});
}

/// Visible (query, key) pairs of a rank: query i of a block with u queries and v keys sees v-u+i+1.
std::int64_t causal_pairs(const ZigzagBatch& batch, std::uint32_t rank) {
  std::int64_t pairs = 0;
  for (const Half half : {Half::prev, Half::next}) {
    const HalfLengths lengths = half_lengths(batch, CpRank{rank}, half);
    for (std::size_t row = 0; row < lengths.seqlens_q.size(); ++row) {
      for (std::int64_t i = 0; i < lengths.seqlens_q[row]; ++i) {
        pairs += lengths.seqlens_k[row] - lengths.seqlens_q[row] + i + 1;
      }
    }
  }
  return pairs;
}

// Gathered rows of whole pieces: M rows a rank, `first` rows into it, `count` rows.
void append(Values& index, std::int64_t first, std::int64_t count) {
  index.resize(index.size() + static_cast<std::size_t>(count));
  std::iota(index.end() - count, index.end(), first);
}

// 17 = 8 * 2 + 1: the first of 8 blocks gets the odd token.
class Seventeen : public testing::Test {
 protected:
  const ZigzagBatch batch_{4, {{0, 17}}};
};

TEST_F(Seventeen, GivesTheRemainderToTheFirstBlock) {
  EXPECT_THAT(block_sizes(17, 4), ElementsAre(3, 2, 2, 2, 2, 2, 2, 2));
}

// Rank 0 owns blocks 0 and 7 (3 + 2), the others 2 + 2. 5 rows rounded up to a multiple of 8.
TEST_F(Seventeen, HasFiveRowsOnRankZeroAndEightPhysicalOnes) {
  EXPECT_THAT(rank_rows(batch_), ElementsAre(5, 4, 4, 4));
  EXPECT_EQ(max_rows(batch_), 5);
  EXPECT_EQ(physical_rows(batch_), 8);
}

TEST_F(Seventeen, PairsAnEarlyBlockWithALateOne) {
  EXPECT_THAT(positions(batch_, 0), ElementsAre(0, 1, 2, 15, 16));
  EXPECT_THAT(positions(batch_, 1), ElementsAre(3, 4, 13, 14));
  EXPECT_THAT(positions(batch_, 2), ElementsAre(5, 6, 11, 12));
  EXPECT_THAT(positions(batch_, 3), ElementsAre(7, 8, 9, 10));
}

TEST_F(Seventeen, EndsEachKvRangeAtTheBlocksLastToken) {
  EXPECT_THAT(kv(batch_, 0, Half::prev), ElementsAre(3));
  EXPECT_THAT(kv(batch_, 1, Half::prev), ElementsAre(5));
  EXPECT_THAT(kv(batch_, 2, Half::prev), ElementsAre(7));
  EXPECT_THAT(kv(batch_, 3, Half::prev), ElementsAre(9));
  EXPECT_THAT(kv(batch_, 0, Half::next), ElementsAre(17));
  EXPECT_THAT(kv(batch_, 1, Half::next), ElementsAre(15));
  EXPECT_THAT(kv(batch_, 2, Half::next), ElementsAre(13));
  EXPECT_THAT(kv(batch_, 3, Half::next), ElementsAre(11));
}

// 39 + 3 * 38 = 153 = 17 * 18 / 2, all pairs of a causal square.
TEST_F(Seventeen, BalancesCausalWork) {
  EXPECT_EQ(causal_pairs(batch_, 0), 39);
  EXPECT_EQ(causal_pairs(batch_, 1), 38);
  EXPECT_EQ(causal_pairs(batch_, 2), 38);
  EXPECT_EQ(causal_pairs(batch_, 3), 38);
}

// Gathered pieces are rank 0 early, rank 0 late, rank 1 early, ..: blocks 0 7 1 6 2 5 3 4.
TEST_F(Seventeen, ListsPiecesInGatheredOrder) {
  EXPECT_THAT(piece_lens(batch_), ElementsAre(3, 2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(piece_order(batch_), ElementsAre(0, 2, 4, 6, 7, 5, 3, 1));
}

// Rank r's rows start at 5r; its late block starts after 3 (rank 0) or 2 early rows.
TEST_F(Seventeen, FindsEveryTokenInTheGatheredBuffer) {
  EXPECT_THAT(reorder_index(batch_),
              ElementsAre(0, 1, 2, 5, 6, 10, 11, 15, 16, 17, 18, 12, 13, 7, 8, 3, 4));
}

// 9 = 8 + 1, 16 = 8 * 2, 11 = 8 + 3.
class ThreeRequests : public testing::Test {
 protected:
  const ZigzagBatch batch_{4, {{5, 9}, {0, 16}, {32, 11}}};
};

TEST_F(ThreeRequests, SplitsEachRequestOnItsOwn) {
  EXPECT_THAT(block_sizes(9, 4), ElementsAre(2, 1, 1, 1, 1, 1, 1, 1));
  EXPECT_THAT(block_sizes(16, 4), ElementsAre(2, 2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(block_sizes(11, 4), ElementsAre(2, 2, 2, 1, 1, 1, 1, 1));
}

// Rank 0: (2+1) + (2+2) + (2+1) = 10; rank 3: (1+1) + (2+2) + (1+1) = 8. 10 up to a multiple of 8.
TEST_F(ThreeRequests, AddsRowsOverRequests) {
  EXPECT_THAT(rank_rows(batch_), ElementsAre(10, 9, 9, 8));
  EXPECT_EQ(max_rows(batch_), 10);
  EXPECT_EQ(physical_rows(batch_), 16);
}

TEST_F(ThreeRequests, AddsThePrefixToKvLengths) {
  EXPECT_THAT(queries(batch_, 0, Half::prev), ElementsAre(2, 2, 2));
  EXPECT_THAT(queries(batch_, 3, Half::prev), ElementsAre(1, 2, 1));
  EXPECT_THAT(queries(batch_, 0, Half::next), ElementsAre(1, 2, 1));
  EXPECT_THAT(kv(batch_, 0, Half::prev), ElementsAre(7, 2, 34));
  EXPECT_THAT(kv(batch_, 1, Half::prev), ElementsAre(8, 4, 36));
  EXPECT_THAT(kv(batch_, 2, Half::prev), ElementsAre(9, 6, 38));
  EXPECT_THAT(kv(batch_, 3, Half::prev), ElementsAre(10, 8, 39));
  EXPECT_THAT(kv(batch_, 0, Half::next), ElementsAre(14, 16, 43));
  EXPECT_THAT(kv(batch_, 1, Half::next), ElementsAre(13, 14, 42));
  EXPECT_THAT(kv(batch_, 2, Half::next), ElementsAre(12, 12, 41));
  EXPECT_THAT(kv(batch_, 3, Half::next), ElementsAre(11, 10, 40));
}

// The exclusive prefix sums that the plan uploads are those of these two lists, one after the
// other: rank 0 has 0 7 9 43 57 73 116.
TEST_F(ThreeRequests, HasKvLengthsThatSumTo116OnRankZero) {
  const Values prev = kv(batch_, 0, Half::prev);
  const Values next = kv(batch_, 0, Half::next);
  EXPECT_EQ(std::accumulate(prev.begin(), prev.end(), std::int64_t{0}), 43);
  EXPECT_EQ(std::accumulate(next.begin(), next.end(), std::int64_t{43}), 116);
}

TEST_F(ThreeRequests, PutsEarlyBlocksOfAllRequestsFirst) {
  EXPECT_THAT(positions(batch_, 0), ElementsAre(5, 6, 0, 1, 32, 33, 13, 14, 15, 42));
  EXPECT_THAT(positions(batch_, 1), ElementsAre(7, 2, 3, 34, 35, 12, 12, 13, 41));
  EXPECT_THAT(positions(batch_, 2), ElementsAre(8, 4, 5, 36, 37, 11, 10, 11, 40));
  EXPECT_THAT(positions(batch_, 3), ElementsAre(9, 6, 7, 38, 10, 8, 9, 39));
}

// Request 1 starts at flattened token 9, request 2 at 25.
TEST_F(ThreeRequests, NamesLocalRowsByFlattenedToken) {
  EXPECT_THAT(shard_tokens(batch_, CpRank{0}), ElementsAre(0, 1, 9, 10, 25, 26, 8, 23, 24, 35));
}

TEST_F(ThreeRequests, ListsPiecesInGatheredOrder) {
  EXPECT_THAT(piece_lens(batch_), ElementsAre(2, 2, 2, 1, 2, 1, 1, 2, 2, 1, 2, 1,  //
                                              1, 2, 2, 1, 2, 1, 1, 2, 1, 1, 2, 1));
  EXPECT_THAT(piece_order(batch_), ElementsAre(0, 6, 12, 18, 21, 15, 9, 3,   //
                                               1, 7, 13, 19, 22, 16, 10, 4,  //
                                               2, 8, 14, 20, 23, 17, 11, 5));
}

// One token in each of 8 blocks; 2 rows a rank still make 8 physical ones.
TEST(Zigzag, SplitsTheShortestRequestIntoSingleTokens) {
  const ZigzagBatch batch{4, {{3, 8}}};
  EXPECT_THAT(rank_rows(batch), ElementsAre(2, 2, 2, 2));
  EXPECT_EQ(physical_rows(batch), 8);
  EXPECT_THAT(kv(batch, 0, Half::prev), ElementsAre(4));
  EXPECT_THAT(kv(batch, 0, Half::next), ElementsAre(11));
  EXPECT_THAT(positions(batch, 0), ElementsAre(3, 10));
  EXPECT_THAT(kv(batch, 3, Half::prev), ElementsAre(7));
  EXPECT_THAT(kv(batch, 3, Half::next), ElementsAre(8));
  EXPECT_THAT(positions(batch, 3), ElementsAre(6, 7));
  EXPECT_TRUE(is_zigzag_applicable(make_step({{3, 8}}), 4));
}

TEST(Zigzag, IsOffForTheBatchWhenOneRequestIsShort) {
  EXPECT_FALSE(is_zigzag_applicable(make_step({{100, 7}}), 4));
  EXPECT_FALSE(is_zigzag_applicable(make_step({{100, 7}, {0, 4096}}), 4));
  EXPECT_FALSE(is_zigzag_applicable(make_step({{0, 4096}, {100, 7}}), 4));
}

// What a build that forced the split would hold: blocks 1,1,1,1,1,1,1,0. Rank 0's late block has
// no query and must not be counted as one.
TEST(Zigzag, HasEmptyBlocksBelowTwoTokensPerRank) {
  const ZigzagBatch batch{4, {{100, 7}}};
  EXPECT_THAT(block_sizes(7, 4), ElementsAre(1, 1, 1, 1, 1, 1, 1, 0));
  EXPECT_THAT(queries(batch, 0, Half::next), ElementsAre(0));
  EXPECT_THAT(kv(batch, 0, Half::next), ElementsAre(107));
  EXPECT_THAT(rank_rows(batch), ElementsAre(1, 2, 2, 2));
}

// [2,2,2,2] and [2,2,2,1]: rank 0 owns blocks 0 and 3, 4 + 3 rows; rank 1 owns 1 and 2, 4 + 4.
TEST(Zigzag, CanGiveTheMostRowsToTheLastRank) {
  EXPECT_THAT(rank_rows({2, {{0, 8}, {0, 7}}}), ElementsAre(7, 8));
}

// 3 * (2+1) = 9 and 3 * (2+2) = 12, while ceil(21 / 2) = 11.
TEST(Zigzag, CanNeedMoreRowsThanAnEvenShare) {
  const ZigzagBatch batch{2, {{0, 7}, {0, 7}, {0, 7}}};
  EXPECT_THAT(rank_rows(batch), ElementsAre(9, 12));
  EXPECT_EQ(max_rows(batch), 12);
}

TEST(Zigzag, KeepsPositionsGlobalAfterPrefixes) {
  const ZigzagBatch batch{2, {{10, 4}, {0, 6}}};
  EXPECT_THAT(block_sizes(4, 2), ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(block_sizes(6, 2), ElementsAre(2, 2, 1, 1));
  EXPECT_THAT(rank_rows(batch), ElementsAre(5, 5));
  EXPECT_THAT(kv(batch, 0, Half::prev), ElementsAre(11, 2));
  EXPECT_THAT(kv(batch, 0, Half::next), ElementsAre(14, 6));
  EXPECT_THAT(positions(batch, 0), ElementsAre(10, 0, 1, 13, 5));
  EXPECT_THAT(kv(batch, 1, Half::prev), ElementsAre(12, 4));
  EXPECT_THAT(kv(batch, 1, Half::next), ElementsAre(13, 5));
  EXPECT_THAT(positions(batch, 1), ElementsAre(11, 2, 3, 12, 4));
  EXPECT_THAT(piece_order(batch), ElementsAre(0, 4, 6, 2, 1, 5, 7, 3));
  // Local rows: rank 0 holds a0 b0 b1 a3 b5, rank 1 (from 5) holds a1 b2 b3 a2 b4.
  EXPECT_THAT(reorder_index(batch), ElementsAre(0, 5, 8, 3, 1, 2, 6, 7, 9, 4));
}

// m = 1..C gives ranks 0..m-1 one more row; m > C gives ranks 2C-m..C-1 two more.
TEST(Zigzag, GivesTwoExtraRowsToMiddleRanksWhenTheRemainderIsLarge) {
  EXPECT_THAT(rank_rows({4, {{0, 8 + 3}}}), ElementsAre(3, 3, 3, 2));
  EXPECT_THAT(rank_rows({4, {{0, 8 + 6}}}), ElementsAre(3, 3, 4, 4));
}

TEST(Zigzag, FindsWholePiecesOfThreeRequests) {
  const ZigzagBatch batch{4, {{5, 9}, {0, 16}, {32, 11}}};
  // Request 0, M = 10: block 0 at 0, 1 at 10, 2 at 20, 3 at 30, then the late halves: rank 3 after
  // 1+2+1 early rows, rank 2 and rank 1 after 1+2+2, rank 0 after 2+2+2.
  Values first_request;
  append(first_request, 0, 2);
  for (const std::int64_t row : {10, 20, 30, 34, 25, 15, 6}) {
    append(first_request, row, 1);
  }
  Values index = reorder_index(batch);
  index.resize(9);
  EXPECT_EQ(index, first_request);
}

TEST(Zigzag, IsOffForOneRankAndForNothing) {
  EXPECT_FALSE(is_zigzag_applicable(make_step({{0, 64}}), 1));
  EXPECT_FALSE(is_zigzag_applicable(make_step({}), 2));
}

// A decode row of a multi-token decode is long enough and still no prefill.
TEST(Zigzag, IsOffForADecodeRowOfAnyLength) {
  Step step = make_step({{10, 8}, {4, 8}});
  EXPECT_TRUE(is_zigzag_applicable(step, 4));
  step.rows[1].state = RowState::decode;
  EXPECT_FALSE(is_zigzag_applicable(step, 4));
}

TEST(Zigzag, HasEmptyListsForAnEmptyBatch) {
  const ZigzagBatch batch{2, {}};
  EXPECT_EQ(max_rows(batch), 0);
  EXPECT_EQ(physical_rows(batch), 0);
  EXPECT_THAT(reorder_index(batch), IsEmpty());
  EXPECT_THAT(piece_lens(batch), IsEmpty());
}

// A prompt of 2^40 tokens: sizes and starts are 64-bit throughout.
TEST(Zigzag, DoesNotOverflowForHugeRequests) {
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(block_start(huge + 1, 4, BlockIndex{7}), 7 * (huge / 8) + 1);
  EXPECT_EQ(max_rows({4, {{huge, huge}}}), huge / 4);
}

}  // namespace
}  // namespace cpverify::layout
