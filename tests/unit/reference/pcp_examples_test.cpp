// The worked examples of docs/strategies/pcp_virtual_batch.md, for the oracle.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;

std::vector<RankIntegers> virtual_batch(const Problem& problem) {
  return expected_integers(problem, 0, StrategyKind::pcp_virtual_batch);
}

// Positions 0-6 are slots 16-22 of block 1. The pad of rank 0 is the fourth gathered row.
TEST(PcpVirtualBatchOracle, CutsSevenTokensInTwoRowsEach) {
  const std::vector<RankIntegers> ranks = virtual_batch(problem_of({{.scheduled = 7}}, 2));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].arrays.at("local_index"), (Integers{6, 0, 1, -1}));
  EXPECT_EQ(ranks[1].arrays.at("local_index"), (Integers{2, 3, 4, 5}));
  EXPECT_EQ(ranks[0].arrays.at("row_starts"), (Integers{6, 0}));
  EXPECT_EQ(ranks[0].arrays.at("row_kv_lens"), (Integers{7, 2}));
  EXPECT_EQ(ranks[1].arrays.at("row_starts"), (Integers{2, 4}));
  EXPECT_EQ(ranks[1].arrays.at("row_kv_lens"), (Integers{4, 6}));
  EXPECT_EQ(ranks[0].arrays.at("rank_rows"), (Integers{3, 4}));
  EXPECT_EQ(ranks[0].arrays.at("hidden_restore"), (Integers{1, 2, 4, 5, 6, 7, 0}));
  EXPECT_EQ(ranks[0].arrays.at("gather_index"), (Integers{6, 0, 1, 0, 2, 3, 4, 5}));
  EXPECT_EQ(ranks[0].arrays.at("kv_write_mask"), (Integers{1, 1, 1, 0, 1, 1, 1, 1}));
  EXPECT_EQ(ranks[0].arrays.at("kv_slots"), (Integers{22, 16, 17, -1, 18, 19, 20, 21}));
}

TEST(PcpVirtualBatchOracle, OrdersDecodesThenContinuedThenFreshRows) {
  const std::vector<RankIntegers> ranks =
      virtual_batch(problem_of({{.scheduled = 1, .computed = 20, .state = RowState::decode},
                                {.scheduled = 5},
                                {.scheduled = 10, .computed = 32}},
                               2));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].arrays.at("row_starts"), (Integers{20, 32, 41, 0}));
  EXPECT_EQ(ranks[0].arrays.at("row_cu_seqlens_q"), (Integers{0, 1, 4, 5, 7}));
  EXPECT_EQ(ranks[1].arrays.at("row_starts"), (Integers{20, 2, 4, 35, 38}));
  EXPECT_EQ(ranks[1].arrays.at("row_cu_seqlens_q"), (Integers{0, 1, 3, 4, 7, 10}));
  EXPECT_EQ(ranks[0].arrays.at("max_rows"), (Integers{10}));
  EXPECT_EQ(ranks[0].arrays.at("hidden_restore"),
            (Integers{0, 5, 6, 11, 12, 13, 1, 2, 3, 14, 15, 16, 17, 18, 19, 4}));
  // One decode and nine rows of each rank.
  EXPECT_EQ(ranks[0].shapes.at("kv_written"), (Integers{19, 2, 2, 64}));
  // Blocks: 1, 2 of the decode, 3 of the fresh request, 4-6 of the continued one. The decode at
  // position 20 is slot 36; positions 32-34 and 41 are 96-98 and 105; fresh ones begin at 48.
  EXPECT_EQ(ranks[1].arrays.at("kv_slots"), (Integers{36, 96, 97, 98, 105, 48, 49, -1, -1, -1, 50,
                                                      51, 52, 99, 100, 101, 102, 103, 104}));
}

TEST(PcpVirtualBatchOracle, GivesARankWithNothingOneRowOfNoTokens) {
  const std::vector<RankIntegers> ranks = virtual_batch(problem_of({{.scheduled = 3}}, 4));
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_EQ(ranks[3].arrays.at("rank_rows"), (Integers{1, 1, 1, 0}));
  EXPECT_EQ(ranks[3].arrays.at("row_cu_seqlens_q"), (Integers{0, 0}));
  EXPECT_EQ(ranks[3].arrays.at("row_kv_lens"), (Integers{0}));
  EXPECT_EQ(ranks[3].arrays.at("row_block_table"), (Integers{0}));
  EXPECT_EQ(ranks[3].row_tokens, (Integers{-1}));
}

TEST(PcpVirtualBatchOracle, LeavesDecodesWhole) {
  const std::vector<RankIntegers> ranks =
      virtual_batch(problem_of({{.scheduled = 1, .computed = 3, .state = RowState::decode}}, 2));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_FALSE(ranks[0].is_cp_on);
  EXPECT_EQ(ranks[1].arrays.at("kv_lens"), (Integers{4}));
}

}  // namespace
}  // namespace cpverify::reference
