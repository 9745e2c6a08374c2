// Virtual slots worked by hand, for the oracle.
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;

/// One request of 5 tokens after 2, on two ranks.
Problem problem_with(DcpOwner owner, CacheUnit unit, std::vector<std::int32_t> blocks) {
  Problem problem;
  problem.scenario.topology = {1, 2, 2};
  problem.scenario.model.num_heads_kv = 1;
  problem.scenario.dcp = {DcpVisibility::split, DcpCombine::a2a, owner};
  problem.scenario.cache.block_size = 2;
  problem.scenario.cache.unit = unit;
  problem.scenario.requests.resize(1);
  problem.num_blocks = 12;
  StepRow row;
  row.computed = 2;
  row.scheduled = 5;
  row.block_table = std::move(blocks);
  for (std::int64_t position = 2; position < 7; ++position) {
    const std::int64_t tokens = problem.block_tokens();
    const auto block = static_cast<std::size_t>(position / tokens);
    row.slots.push_back(row.block_table.at(block) * tokens + position % tokens);
  }
  problem.steps.push_back({0, {row}});
  return problem;
}

// Blocks 3 and 1 of 4 slots: 12 13 14 15 4 5 6. The context is slots 12 and 13, the first of page 3
// on each rank; the new tokens are slots 14 to 6.
TEST(VirtualOracle, DealsBlocksByPosition) {
  const Problem problem = problem_with(DcpOwner::position, CacheUnit::block, {3, 1});
  const auto ranks = expected_integers(problem, 0, StrategyKind::dcp_virtual);
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[0].arrays.at("slot_mapping"), (Integers{7, -1, 2, -1, 3}));
  EXPECT_EQ(ranks[1].arrays.at("slot_mapping"), (Integers{-1, 7, -1, 2, -1}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_context"), (Integers{1}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_context"), (Integers{1}));
  EXPECT_EQ(ranks[1].arrays.at("local_pages"), (Integers{3}));
  EXPECT_EQ(ranks[1].shapes.at("k_pool"), (Integers{12, 2, 1, 64}));
}

// Slots 2 8 9 6 3 10 4: rank 0 has both of the context, as 1 and 4, and rank 1 none, so that its
// table is one column of nothing.
TEST(VirtualOracle, DealsSingleSlotsByNumber) {
  const Problem problem = problem_with(DcpOwner::slot, CacheUnit::slot, {2, 8, 9, 6, 3, 10, 4});
  const auto ranks = expected_integers(problem, 0, StrategyKind::dcp_virtual);
  EXPECT_EQ(ranks[0].arrays.at("slot_mapping"), (Integers{-1, 3, -1, 5, 2}));
  EXPECT_EQ(ranks[1].arrays.at("slot_mapping"), (Integers{4, -1, 1, -1, -1}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_context"), (Integers{2}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_context"), (Integers{0}));
  EXPECT_EQ(ranks[0].arrays.at("local_slots"), (Integers{1, 4}));
  EXPECT_EQ(ranks[1].arrays.at("local_slots"), (Integers{0}));
  EXPECT_EQ(ranks[1].shapes.at("k_pool"), (Integers{6, 1, 1, 64}));
}

// Token 3 of the request, slot 6, is the third of rank 0's pool from slot 1 on.
TEST(VirtualOracle, PutsTokensIntoThePoolsOfTheirRanks) {
  const Problem problem = problem_with(DcpOwner::slot, CacheUnit::slot, {2, 8, 9, 6, 3, 10, 4});
  const RankSlots slots{problem, 0, StrategyKind::dcp_virtual};
  ASSERT_EQ(slots.of(RankId{0}).size(), 6U);
  EXPECT_TRUE(slots.of(RankId{0})[3].is_written);
  EXPECT_EQ(slots.of(RankId{0})[3].position, 3);
  EXPECT_EQ(slots.of(RankId{1})[4].position, 2);
  EXPECT_EQ(slots.of(RankId{1})[1].position, 4);
  EXPECT_FALSE(slots.of(RankId{1})[5].is_written);
}

}  // namespace
}  // namespace cpverify::reference
