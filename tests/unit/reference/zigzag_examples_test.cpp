// Worked examples of the zigzag layout. Numbers are written out from the definition (blocks q = L
// div 2C, the first L mod 2C one longer, rank r owns blocks r and 2C-1-r), not computed here.
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;

std::vector<RankIntegers> zigzag(const Problem& problem) {
  return expected_integers(problem, 0, StrategyKind::zigzag);
}

/// The array of every rank, in rank order.
std::vector<Integers> of_ranks(const std::vector<RankIntegers>& ranks, const std::string& name) {
  std::vector<Integers> result;
  result.reserve(ranks.size());
  for (const RankIntegers& rank : ranks) result.push_back(rank.arrays.at(name));
  return result;
}

std::int64_t causal_pairs(const Step& step, const RankIntegers& rank) {
  std::int64_t pairs = 0;
  for (const std::int64_t token : rank.row_tokens) {
    if (token >= 0) pairs += visible_keys(step.rows[0], token);
  }
  return pairs;
}

// 17 tokens, C = 4: 8 blocks, 17 = 8*2 + 1, so blocks 3,2,2,2,2,2,2,2.
TEST(ZigzagExample, SeventeenTokensOnFourRanks) {
  const Problem problem = problem_of({{.scheduled = 17}}, 4);
  const std::vector<RankIntegers> ranks = zigzag(problem);
  ASSERT_EQ(ranks.size(), 4U);
  const RankIntegers& first = ranks[0];
  EXPECT_TRUE(first.is_cp_on);
  EXPECT_EQ(first.arrays.at("logical_rows"), (Integers{5, 4, 4, 4}));
  EXPECT_EQ(first.arrays.at("max_rows"), (Integers{5}));
  EXPECT_EQ(first.arrays.at("physical_rows"), (Integers{8}));
  EXPECT_EQ(first.arrays.at("piece_lens"), (Integers{3, 2, 2, 2, 2, 2, 2, 2}));
  EXPECT_EQ(first.arrays.at("piece_order"), (Integers{0, 2, 4, 6, 7, 5, 3, 1}));
  EXPECT_EQ(of_ranks(ranks, "positions"), (std::vector<Integers>{{0, 1, 2, 15, 16, 0, 0, 0},
                                                                 {3, 4, 13, 14, 0, 0, 0, 0},
                                                                 {5, 6, 11, 12, 0, 0, 0, 0},
                                                                 {7, 8, 9, 10, 0, 0, 0, 0}}));
  EXPECT_EQ(of_ranks(ranks, "shard_index"), (std::vector<Integers>{{0, 1, 2, 15, 16, -1, -1, -1},
                                                                   {3, 4, 13, 14, -1, -1, -1, -1},
                                                                   {5, 6, 11, 12, -1, -1, -1, -1},
                                                                   {7, 8, 9, 10, -1, -1, -1, -1}}));
  EXPECT_EQ(of_ranks(ranks, "kv_lens_prev"), (std::vector<Integers>{{3}, {5}, {7}, {9}}));
  EXPECT_EQ(of_ranks(ranks, "kv_lens_next"), (std::vector<Integers>{{17}, {15}, {13}, {11}}));
  EXPECT_EQ(of_ranks(ranks, "cu_seqlens_q_prev"),
            (std::vector<Integers>{{0, 3}, {0, 2}, {0, 2}, {0, 2}}));
  EXPECT_EQ(of_ranks(ranks, "cu_seqlens_q_next"),
            (std::vector<Integers>{{0, 2}, {0, 2}, {0, 2}, {0, 2}}));
  // Rank 0: 1+2+3 + 16+17 = 39; ranks 1 to 3: 4+5+14+15 = 6+7+12+13 = 8+9+10+11 = 38.
  Integers pairs;
  for (const RankIntegers& rank : ranks) pairs.push_back(causal_pairs(problem.steps[0], rank));
  EXPECT_EQ(pairs, (Integers{39, 38, 38, 38}));
}

// Rank r's rows start at gathered row 5r: rank 0 holds tokens 0 1 2 15 16, rank 1 3 4 13 14, ...
TEST(ZigzagExample, ReorderIndexSkipsThePadRowsOfTheGatherBuffer) {
  const std::vector<RankIntegers> ranks = zigzag(problem_of({{.scheduled = 17}}, 4));
  EXPECT_EQ(ranks[2].arrays.at("reorder_index"),
            (Integers{0, 1, 2, 5, 6, 10, 11, 15, 16, 17, 18, 12, 13, 7, 8, 3, 4}));
  EXPECT_EQ(ranks[2].shapes.at("kv_gathered"), (Integers{20, 2, 2, 64}));
}

TEST(ZigzagExample, ThreeRequestsWithPrefixes) {
  const Problem problem = problem_of({{.scheduled = 9, .computed = 5},
                                      {.scheduled = 16, .computed = 0},
                                      {.scheduled = 11, .computed = 32}},
                                     4);
  const std::vector<RankIntegers> ranks = zigzag(problem);
  EXPECT_EQ(ranks[0].arrays.at("logical_rows"), (Integers{10, 9, 9, 8}));
  EXPECT_EQ(ranks[0].arrays.at("max_rows"), (Integers{10}));
  EXPECT_EQ(ranks[0].arrays.at("physical_rows"), (Integers{16}));
  EXPECT_EQ(of_ranks(ranks, "cu_seqlens_q_prev"),
            (std::vector<Integers>{{0, 2, 4, 6}, {0, 1, 3, 5}, {0, 1, 3, 5}, {0, 1, 3, 4}}));
  EXPECT_EQ(of_ranks(ranks, "cu_seqlens_q_next"),
            (std::vector<Integers>{{0, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 3, 4}, {0, 1, 3, 4}}));
  EXPECT_EQ(of_ranks(ranks, "kv_lens_prev"),
            (std::vector<Integers>{{7, 2, 34}, {8, 4, 36}, {9, 6, 38}, {10, 8, 39}}));
  EXPECT_EQ(of_ranks(ranks, "kv_lens_next"),
            (std::vector<Integers>{{14, 16, 43}, {13, 14, 42}, {12, 12, 41}, {11, 10, 40}}));
  EXPECT_EQ(
      of_ranks(ranks, "cu_seqlens_k_prev"),
      (std::vector<Integers>{{0, 7, 9, 43}, {0, 8, 12, 48}, {0, 9, 15, 53}, {0, 10, 18, 57}}));
  // The combined lists of the next half less the prev total: 57-43=14, 73-43=30, 116-43=73, ...
  EXPECT_EQ(
      of_ranks(ranks, "cu_seqlens_k_next"),
      (std::vector<Integers>{{0, 14, 30, 73}, {0, 13, 27, 69}, {0, 12, 24, 65}, {0, 11, 21, 61}}));
  EXPECT_EQ(of_ranks(ranks, "positions"),
            (std::vector<Integers>{{5, 6, 0, 1, 32, 33, 13, 14, 15, 42, 0, 0, 0, 0, 0, 0},
                                   {7, 2, 3, 34, 35, 12, 12, 13, 41, 0, 0, 0, 0, 0, 0, 0},
                                   {8, 4, 5, 36, 37, 11, 10, 11, 40, 0, 0, 0, 0, 0, 0, 0},
                                   {9, 6, 7, 38, 10, 8, 9, 39, 0, 0, 0, 0, 0, 0, 0, 0}}));
  EXPECT_EQ(ranks[3].arrays.at("piece_lens"),
            (Integers{2, 2, 2, 1, 2, 1, 1, 2, 2, 1, 2, 1, 1, 2, 2, 1, 2, 1, 1, 2, 1, 1, 2, 1}));
  EXPECT_EQ(ranks[3].arrays.at("piece_order"),
            (Integers{0,  6,  12, 18, 21, 15, 9,  3,  1,  7,  13, 19,
                      22, 16, 10, 4,  2,  8,  14, 20, 23, 17, 11, 5}));
}

// One token per block: each rank holds 2 of the 8 tokens in 8 physical rows.
TEST(ZigzagExample, TwoTokensPerRankIsTheLeastThatTurnsCpOn) {
  const std::vector<RankIntegers> ranks = zigzag(problem_of({{.scheduled = 8, .computed = 3}}, 4));
  ASSERT_TRUE(ranks[0].is_cp_on);
  EXPECT_EQ(ranks[0].arrays.at("logical_rows"), (Integers{2, 2, 2, 2}));
  EXPECT_EQ(ranks[0].arrays.at("physical_rows"), (Integers{8}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_prev"), (Integers{4}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_next"), (Integers{11}));
  EXPECT_EQ(ranks[0].arrays.at("positions"), (Integers{3, 10, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(ranks[3].arrays.at("kv_lens_prev"), (Integers{7}));
  EXPECT_EQ(ranks[3].arrays.at("kv_lens_next"), (Integers{8}));
  EXPECT_EQ(ranks[3].arrays.at("positions"), (Integers{6, 7, 0, 0, 0, 0, 0, 0}));
}

TEST(ZigzagExample, OneShortRequestTurnsCpOffForTheWholeBatch) {
  const std::vector<RankIntegers> ranks =
      zigzag(problem_of({{.scheduled = 7, .computed = 100}, {.scheduled = 4096}}, 4));
  ASSERT_EQ(ranks.size(), 4U);
  for (const RankIntegers& rank : ranks) {
    EXPECT_FALSE(rank.is_cp_on);
    EXPECT_EQ(rank.arrays.at("kv_lens"), (Integers{107, 4096}));
    EXPECT_EQ(rank.arrays.at("cu_seqlens_q"), (Integers{0, 7, 4103}));
    EXPECT_EQ(rank.arrays.at("cu_seqlens_k"), (Integers{0, 107, 4203}));
    EXPECT_EQ(rank.row_tokens.size(), 4103U);
    EXPECT_EQ(rank.arrays.count("shard_index"), 0U);
    EXPECT_EQ(rank.shapes.count("kv_send"), 0U);
  }
}

// [8,7] at C = 2: blocks 2,2,2,2 and 2,2,2,1; rank 0 owns blocks 0 and 3, rank 1 owns 1 and 2.
TEST(ZigzagExample, RankZeroNeedNotBeTheLargest) {
  const std::vector<RankIntegers> ranks =
      zigzag(problem_of({{.scheduled = 8}, {.scheduled = 7}}, 2));
  EXPECT_EQ(ranks[0].arrays.at("logical_rows"), (Integers{7, 8}));
  EXPECT_EQ(ranks[0].arrays.at("max_rows"), (Integers{8}));
}

// [7,7,7] at C = 2: each row 2,2,2,1, so rank 1 holds 3*4 = 12 rows while ceil(21/2) = 11.
TEST(ZigzagExample, LargestRankExceedsTheCeilingOfTheMean) {
  const std::vector<RankIntegers> ranks =
      zigzag(problem_of({{.scheduled = 7}, {.scheduled = 7}, {.scheduled = 7}}, 2));
  EXPECT_EQ(ranks[0].arrays.at("logical_rows"), (Integers{9, 12}));
  EXPECT_EQ(ranks[0].arrays.at("max_rows"), (Integers{12}));
  EXPECT_EQ(ranks[0].shapes.at("kv_gathered"), (Integers{24, 2, 2, 64}));
}

TEST(ZigzagExample, TwoRequestsOnTwoRanks) {
  const std::vector<RankIntegers> ranks =
      zigzag(problem_of({{.scheduled = 4, .computed = 10}, {.scheduled = 6}}, 2));
  EXPECT_EQ(ranks[0].arrays.at("logical_rows"), (Integers{5, 5}));
  EXPECT_EQ(of_ranks(ranks, "kv_lens_prev"), (std::vector<Integers>{{11, 2}, {12, 4}}));
  EXPECT_EQ(of_ranks(ranks, "kv_lens_next"), (std::vector<Integers>{{14, 6}, {13, 5}}));
  // M = 5, padded to the next multiple of 4.
  EXPECT_EQ(of_ranks(ranks, "positions"),
            (std::vector<Integers>{{10, 0, 1, 13, 5, 0, 0, 0}, {11, 2, 3, 12, 4, 0, 0, 0}}));
  EXPECT_EQ(ranks[1].arrays.at("piece_order"), (Integers{0, 4, 6, 2, 1, 5, 7, 3}));
}

}  // namespace
}  // namespace cpverify::reference
