#include "reference/integer_oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;

TEST(ExpectedIntegers, SingleRunsOnTheRanksOfOneCpRankOnly) {
  const Problem problem = problem_of({{.scheduled = 20}}, 4, 2);
  EXPECT_EQ(expected_integers(problem, 0, StrategyKind::single).size(), 2U);
  EXPECT_EQ(expected_integers(problem, 0, StrategyKind::zigzag).size(), 8U);
}

// Rows of 3 (after 14 computed) and 2 tokens; 5 tokens padded to 8. Blocks of 16: row 0 holds
// positions 14, 15 in block 1 and 16 in block 2; row 1 starts block 3.
TEST(ExpectedIntegers, SinglePadsRowsToTheTokenMultiple) {
  Problem problem = problem_of({{.scheduled = 3, .computed = 14}, {.scheduled = 2}}, 1);
  problem.scenario.padding.token_multiple = 4;
  const std::vector<RankIntegers> ranks = expected_integers(problem, 0, StrategyKind::single);
  ASSERT_EQ(ranks.size(), 1U);
  const RankIntegers& rank = ranks[0];
  EXPECT_FALSE(rank.is_cp_on);
  EXPECT_EQ(rank.arrays.at("slot_mapping"), (Integers{30, 31, 32, 48, 49, -1, -1, -1}));
  EXPECT_EQ(rank.arrays.at("positions"), (Integers{14, 15, 16, 0, 1, 0, 0, 0}));
  EXPECT_EQ(rank.arrays.at("block_table"), (Integers{1, 2, 3, 0}));
  EXPECT_EQ(rank.arrays.at("cu_seqlens_q"), (Integers{0, 3, 5}));
  EXPECT_EQ(rank.arrays.at("cu_seqlens_k"), (Integers{0, 17, 19}));
  EXPECT_EQ(rank.arrays.at("kv_lens"), (Integers{17, 2}));
  EXPECT_EQ(rank.row_tokens, (Integers{0, 1, 2, 3, 4, -1, -1, -1}));
  EXPECT_EQ(rank.shapes.at("q"), (Integers{8, 4, 64}));
  EXPECT_EQ(rank.shapes.at("v"), (Integers{8, 2, 64}));
  EXPECT_EQ(rank.shapes.at("out"), (Integers{8, 4, 64}));
  EXPECT_EQ(rank.shapes.at("lse"), (Integers{8, 4}));
  EXPECT_EQ(rank.shapes.at("k_pool"), (Integers{4, 16, 2, 64}));
  EXPECT_EQ(rank.shapes.at("block_table"), (Integers{2, 2}));
}

// 5 tokens at C = 2, padded input rows 6: blocks 2,1,1,1; rows 3 and 2, M = 3, Pm = 4.
TEST(ExpectedIntegers, TokenPaddingDoesNotReachTheSplit) {
  Problem problem = problem_of({{.scheduled = 5}}, 2);
  problem.scenario.padding.token_multiple = 6;
  const std::vector<RankIntegers> ranks = expected_integers(problem, 0, StrategyKind::zigzag);
  const RankIntegers& rank = ranks[1];
  EXPECT_EQ(rank.arrays.at("logical_rows"), (Integers{3, 2}));
  EXPECT_EQ(rank.arrays.at("shard_index"), (Integers{2, 3, -1, -1}));
  EXPECT_EQ(rank.arrays.at("reorder_index"), (Integers{0, 1, 3, 4, 2, -1}));
  EXPECT_EQ(rank.shapes.at("q"), (Integers{6, 4, 64}));
  EXPECT_EQ(rank.shapes.at("q_local"), (Integers{4, 4, 64}));
  EXPECT_EQ(rank.shapes.at("kv_send"), (Integers{3, 2, 2, 64}));
  EXPECT_EQ(rank.shapes.at("kv_full"), (Integers{6, 2, 2, 64}));
  EXPECT_EQ(rank.shapes.at("out_local"), (Integers{4, 4, 64}));
  EXPECT_EQ(rank.shapes.at("lse_local"), (Integers{4, 4}));
  EXPECT_EQ(rank.shapes.at("out_gathered"), (Integers{6, 4, 64}));
  EXPECT_EQ(rank.shapes.at("out"), (Integers{6, 4, 64}));
}

TEST(ExpectedIntegers, DecodeRowTurnsCpOffWhateverItsLength) {
  const Problem problem = problem_of(
      {{.scheduled = 64}, {.scheduled = 8, .computed = 9, .state = RowState::decode}}, 2);
  for (const RankIntegers& rank : expected_integers(problem, 0, StrategyKind::zigzag)) {
    EXPECT_FALSE(rank.is_cp_on);
  }
}

TEST(ExpectedIntegers, OneTokenFewerThanTwoPerRankTurnsCpOff) {
  EXPECT_FALSE(
      expected_integers(problem_of({{.scheduled = 3}}, 2), 0, StrategyKind::zigzag)[0].is_cp_on);
  EXPECT_TRUE(
      expected_integers(problem_of({{.scheduled = 4}}, 2), 0, StrategyKind::zigzag)[0].is_cp_on);
}

TEST(ExpectedIntegers, CpOfOneIsOff) {
  EXPECT_FALSE(
      expected_integers(problem_of({{.scheduled = 64}}, 1), 0, StrategyKind::zigzag)[0].is_cp_on);
}

// World rank = cp_rank * tp + tp_rank: ranks 0,1 hold CP rank 0's tokens, ranks 2,3 CP rank 1's.
TEST(ExpectedIntegers, TensorParallelRanksShareTheirCpRanksTokens) {
  const Problem problem = problem_of({{.scheduled = 8}}, 2, 2);
  const std::vector<RankIntegers> ranks = expected_integers(problem, 0, StrategyKind::zigzag);
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_EQ(ranks[0].row_tokens, (Integers{0, 1, 6, 7}));
  EXPECT_EQ(ranks[1].row_tokens, (Integers{0, 1, 6, 7}));
  EXPECT_EQ(ranks[2].row_tokens, (Integers{2, 3, 4, 5}));
  EXPECT_EQ(ranks[3].row_tokens, (Integers{2, 3, 4, 5}));
  EXPECT_EQ(ranks[3].shapes.at("q"), (Integers{8, 2, 64}));
  EXPECT_EQ(ranks[3].shapes.at("k"), (Integers{8, 1, 64}));
}

// 8 query heads on 2 KV heads at tp 4: two query heads per rank, both of the same KV head.
TEST(ExpectedIntegers, KvHeadIsCopiedWhenThereAreMoreRanksThanKvHeads) {
  Problem problem = problem_of({{.scheduled = 8}}, 1, 4);
  problem.scenario.model.num_heads_q = 8;
  for (const RankIntegers& rank : expected_integers(problem, 0, StrategyKind::single)) {
    EXPECT_EQ(rank.shapes.at("q"), (Integers{8, 2, 64}));
    EXPECT_EQ(rank.shapes.at("k_pool"), (Integers{2, 16, 1, 64}));
  }
}

TEST(ExpectedIntegers, RefusesAStepThatIsNotThere) {
  EXPECT_THROW(static_cast<void>(
                   expected_integers(problem_of({{.scheduled = 8}}, 1), 1, StrategyKind::single)),
               std::out_of_range);
}

TEST(VisibleKeys, CountsThePrefixAndTheTokenItself) {
  StepRow row;
  row.computed = 0;
  row.scheduled = 2;
  EXPECT_EQ(visible_keys(row, 0), 1);
  EXPECT_EQ(visible_keys(row, 1), 2);
  row.computed = 100;
  EXPECT_EQ(visible_keys(row, 0), 101);
}

TEST(ExpectedSlots, NamesCachedAndComputedTokensAndNobodyElse) {
  Problem problem = problem_of({{.scheduled = 2, .computed = 1}}, 1);
  problem.cached.push_back({.request = RequestId{0}, .position = 0, .slot = 16});
  const std::vector<SlotOwner> slots = expected_slots(problem, 0);
  ASSERT_EQ(slots.size(), 32U);
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    EXPECT_EQ(slots[slot].is_written, slot >= 16 && slot < 19) << slot;
  }
  EXPECT_EQ(slots[16].position, 0);
  EXPECT_EQ(slots[17].position, 1);
  EXPECT_EQ(slots[18].position, 2);
}

// A block that was freed and handed out again holds the later request's token, from that step on.
TEST(ExpectedSlots, LastWriterOwnsTheSlot) {
  Problem problem = problem_of({{.scheduled = 1}}, 1);
  Step second = problem.steps[0];
  second.index = 1;
  second.rows[0].request = RequestId{7};
  second.rows[0].computed = 16;
  second.rows[0].block_table = {5, 1};
  problem.steps.push_back(second);
  EXPECT_EQ(expected_slots(problem, 0)[16].request, RequestId{0});
  EXPECT_EQ(expected_slots(problem, 0)[16].position, 0);
  EXPECT_EQ(expected_slots(problem, 1)[16].request, RequestId{7});
  EXPECT_EQ(expected_slots(problem, 1)[16].position, 16);
}

}  // namespace
}  // namespace cpverify::reference
