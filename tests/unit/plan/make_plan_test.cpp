#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify {
namespace {

using test::argument_texts;
using test::buffer_named;
using test::launch_labelled;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;

Scenario small_scenario(std::uint32_t cp, std::uint32_t tp = 1) {
  Scenario scenario;
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = 2;
  scenario.model.head_dim = 32;
  scenario.model.dtype = DType::f32;
  scenario.topology = {cp, tp};
  scenario.cache.block_size = 16;
  return scenario;
}

// Two requests, 3 tokens after a prefix of 18 and 2 tokens, padded from 5 to 8 rows. Blocks are 1,
// 2 for request 0 and 3, 4 for request 1: tokens 18-20 of request 0 are slots 2*16 + 2 .. 4.
class SinglePlan : public testing::Test {
 protected:
  SinglePlan() {
    Scenario scenario = small_scenario(4);
    scenario.padding.token_multiple = 4;
    problem_ = test::hand_made_problem(scenario, {{{18, 3}, {0, 2}}});
    plan_ = make_plan(problem_, 0, StrategyKind::single);
  }
  const RankPlan& rank() { return plan_.ranks.front(); }
  std::vector<std::int64_t> values(const std::string& name) {
    return buffer_named(rank(), name).values;
  }

  Problem problem_;
  Plan plan_;
};

TEST_F(SinglePlan, RunsOnOneRankWhateverCpIs) {
  EXPECT_EQ(plan_.ranks.size(), 1U);
  EXPECT_FALSE(plan_.is_cp_on);
  EXPECT_FALSE(plan_.is_bitwise);
  EXPECT_THAT(plan_.groups, IsEmpty());
}

TEST_F(SinglePlan, PutsPadRowsLast) {
  EXPECT_THAT(values("slot_mapping"), ElementsAre(34, 35, 36, 48, 49, -1, -1, -1));
  EXPECT_THAT(values("positions"), ElementsAre(18, 19, 20, 0, 1, 0, 0, 0));
  EXPECT_THAT(buffer_named(rank(), "out").output->row_tokens,
              ElementsAre(0, 1, 2, 3, 4, -1, -1, -1));
  EXPECT_THAT(buffer_named(rank(), "q").shape, ElementsAre(8, 4, 32));
  EXPECT_THAT(buffer_named(rank(), "k").shape, ElementsAre(8, 2, 32));
}

TEST_F(SinglePlan, CountsPrefixesInKvLengthsOnly) {
  EXPECT_THAT(values("cu_seqlens_q"), ElementsAre(0, 3, 5));
  EXPECT_THAT(values("cu_seqlens_k"), ElementsAre(0, 21, 23));
  EXPECT_THAT(values("kv_lens"), ElementsAre(21, 2));
}

TEST_F(SinglePlan, FillsShortBlockTablesWithTheNullBlock) {
  EXPECT_THAT(values("block_table"), ElementsAre(1, 2, 3, 0));
  EXPECT_THAT(buffer_named(rank(), "block_table").shape, ElementsAre(2, 2));
}

TEST_F(SinglePlan, WritesTheCacheBeforeItAttends) {
  EXPECT_THAT(test::labels(rank()),
              ElementsAre("zero out", "set lse to -inf", "write k and v to the pools",
                          "attention of all rows"));
}

// A row of 2 heads of 32 f32 is 256 bytes; 8 padded rows are 2 thread blocks of 4.
TEST_F(SinglePlan, PassesKernelArgumentsInTheContractsOrder) {
  const Launch& write = launch_labelled(rank(), "write k and v to the pools");
  EXPECT_EQ(write.grid[0], 2U);
  EXPECT_THAT(argument_texts(rank(), write), ElementsAre("k", "v", "slot_mapping", "k_pool",
                                                         "v_pool", "s32 8", "s32 256", "s64 256"));
  const Launch& attention = launch_labelled(rank(), "attention of all rows");
  EXPECT_THAT(argument_texts(rank(), attention),
              ElementsAre("q", "k_pool", "v_pool", "cu_seqlens_q", "kv_lens", "block_table", "out",
                          "lse", "s32 2", "s32 2", "s32 16", "s32 4", "s32 2", "f32", "s32 1",
                          "f32", "s64 0", "s32 0"));
  EXPECT_EQ(attention.entry, "attention_fma_f32_d32");
  EXPECT_THAT(attention.grid, ElementsAre(1, 4, 2));
  EXPECT_EQ(attention.shared_bytes, 0U);
}

// 0.125 * log2(e) = 0.18033688011112042..; the nearest f32 is 0x3e38aa3b.
TEST_F(SinglePlan, ScalesSoftmaxInBaseTwo) {
  const Launch& attention = launch_labelled(rank(), "attention of all rows");
  EXPECT_EQ(std::get<float>(attention.arguments.at(13)), 0x1.715476p-3F);
}

TEST_F(SinglePlan, FillsLseWithNegativeInfinity) {
  const auto& fill = std::get<Fill>(test::operation_labelled(rank(), "set lse to -inf").body);
  EXPECT_EQ(fill.pattern, 0xff800000U);
  EXPECT_EQ(fill.count, 8 * 4);
}

// 17 tokens on 4 ranks: blocks 3,2,2,2,2,2,2,2; M = 5, Pm = 8. Padded to 20 input rows.
class ZigzagPlan : public testing::Test {
 protected:
  ZigzagPlan() {
    Scenario scenario = small_scenario(4);
    scenario.padding.token_multiple = 10;
    problem_ = test::hand_made_problem(scenario, {{{0, 17}}});
    plan_ = make_plan(problem_, 0, StrategyKind::zigzag);
  }
  std::vector<std::int64_t> values(std::size_t rank, const std::string& name) {
    return buffer_named(plan_.ranks.at(rank), name).values;
  }
  std::vector<std::int64_t> shape(const std::string& name) {
    return buffer_named(plan_.ranks.front(), name).shape;
  }

  Problem problem_;
  Plan plan_;
};

TEST_F(ZigzagPlan, PromisesTheBitsOfSingle) {
  EXPECT_TRUE(plan_.is_cp_on);
  EXPECT_TRUE(plan_.is_bitwise);
  EXPECT_EQ(plan_.ranks.size(), 4U);
}

TEST_F(ZigzagPlan, SizesBuffersByMaximumAndPhysicalRows) {
  EXPECT_THAT(shape("q_local"), ElementsAre(8, 4, 32));
  EXPECT_THAT(shape("kv_send"), ElementsAre(5, 2, 2, 32));
  EXPECT_THAT(shape("kv_gathered"), ElementsAre(20, 2, 2, 32));
  EXPECT_THAT(shape("kv_full"), ElementsAre(20, 2, 2, 32));
  EXPECT_THAT(shape("out_local"), ElementsAre(8, 4, 32));
  EXPECT_THAT(shape("lse_local"), ElementsAre(8, 4));
  EXPECT_THAT(shape("out_gathered"), ElementsAre(20, 4, 32));
  EXPECT_THAT(shape("out"), ElementsAre(20, 4, 32));
}

TEST_F(ZigzagPlan, PadsTheShardToPhysicalRows) {
  EXPECT_THAT(values(0, "shard_index"), ElementsAre(0, 1, 2, 15, 16, -1, -1, -1));
  EXPECT_THAT(values(0, "positions"), ElementsAre(0, 1, 2, 15, 16, 0, 0, 0));
  EXPECT_THAT(values(3, "shard_index"), ElementsAre(7, 8, 9, 10, -1, -1, -1, -1));
  EXPECT_THAT(buffer_named(plan_.ranks[3], "lse_local").output->row_tokens,
              ElementsAre(7, 8, 9, 10, -1, -1, -1, -1));
  EXPECT_THAT(values(2, "logical_rows"), ElementsAre(5, 4, 4, 4));
  EXPECT_THAT(values(2, "max_rows"), ElementsAre(5));
  EXPECT_THAT(values(2, "physical_rows"), ElementsAre(8));
}

TEST_F(ZigzagPlan, PadsTheReorderIndexToInputRows) {
  EXPECT_THAT(values(1, "reorder_index"),
              ElementsAre(0, 1, 2, 5, 6, 10, 11, 15, 16, 17, 18, 12, 13, 7, 8, 3, 4, -1, -1, -1));
}

TEST_F(ZigzagPlan, GivesEachHalfItsOwnLengths) {
  EXPECT_THAT(values(0, "cu_seqlens_q_prev"), ElementsAre(0, 3));
  EXPECT_THAT(values(0, "cu_seqlens_q_next"), ElementsAre(0, 2));
  EXPECT_THAT(values(0, "cu_seqlens_k_prev"), ElementsAre(0, 3));
  EXPECT_THAT(values(0, "cu_seqlens_k_next"), ElementsAre(0, 17));
  EXPECT_THAT(values(3, "kv_lens_prev"), ElementsAre(9));
  EXPECT_THAT(values(3, "kv_lens_next"), ElementsAre(11));
}

TEST_F(ZigzagPlan, OrdersOperationsSoThatKeysAreInThePoolsFirst) {
  const std::array<std::string, 12> expected{"gather the rank's query rows",
                                             "gather the rank's k rows",
                                             "gather the rank's v rows",
                                             "all-gather k and v rows",
                                             "reorder k and v rows",
                                             "write k and v to the pools",
                                             "zero out_local",
                                             "set lse_local to -inf",
                                             "attention of the early blocks",
                                             "attention of the late blocks",
                                             "all-gather attention rows",
                                             "reorder attention rows"};
  EXPECT_THAT(test::labels(plan_.ranks[2]), ElementsAreArray(expected));
}

// Row bytes of k are 256; a row of kv_send is K then V, 512. Rank 0 has 3 early rows, so the late
// call starts 3 * 128 elements into q and out and 3 * 4 into lse.
TEST_F(ZigzagPlan, PassesKernelArgumentsInTheContractsOrder) {
  const RankPlan& rank = plan_.ranks.front();
  EXPECT_THAT(
      argument_texts(rank, launch_labelled(rank, "gather the rank's v rows")),
      ElementsAre("v", "shard_index", "kv_send+64", "s32 5", "s32 256", "s64 256", "s64 512"));
  EXPECT_THAT(argument_texts(rank, launch_labelled(rank, "reorder k and v rows")),
              ElementsAre("kv_gathered", "reorder_index", "kv_full", "s32 20", "s32 512", "s64 512",
                          "s64 512"));
  EXPECT_THAT(argument_texts(rank, launch_labelled(rank, "write k and v to the pools")),
              ElementsAre("kv_full", "kv_full+64", "slot_mapping", "k_pool", "v_pool", "s32 20",
                          "s32 256", "s64 512"));
  EXPECT_THAT(argument_texts(rank, launch_labelled(rank, "attention of the late blocks")),
              ElementsAre("q_local+384", "k_pool", "v_pool", "cu_seqlens_q_next", "kv_lens_next",
                          "block_table", "out_local+384", "lse_local+12", "s32 1", "s32 2",
                          "s32 16", "s32 4", "s32 2", "f32", "s32 1", "f32", "s64 0", "s32 0"));
}

// M rows of 2 * 2 * 32 elements, and of 4 * 32.
TEST_F(ZigzagPlan, SendsMaximumRowsInBothCollectives) {
  for (const RankPlan& rank : plan_.ranks) {
    const auto& kv =
        std::get<Collective>(test::operation_labelled(rank, "all-gather k and v rows").body);
    const auto& out =
        std::get<Collective>(test::operation_labelled(rank, "all-gather attention rows").body);
    EXPECT_EQ(kv.count, 5 * 128);
    EXPECT_EQ(out.count, 5 * 128);
    EXPECT_EQ(kv.meaning, "k and v rows of step 0");
    EXPECT_EQ(out.meaning, "attention rows of step 0");
    EXPECT_EQ(kv.dtype, DType::f32);
  }
}

TEST(MakePlan, TurnsCpOffForShortRequestsOnEveryRank) {
  const Problem problem = test::hand_made_problem(small_scenario(4), {{{0, 7}, {0, 30}}});
  const Plan plan = make_plan(problem, 0, StrategyKind::zigzag);
  EXPECT_FALSE(plan.is_cp_on);
  ASSERT_EQ(plan.ranks.size(), 4U);
  for (const RankPlan& rank : plan.ranks) {
    EXPECT_THAT(buffer_named(rank, "kv_lens").values, ElementsAre(7, 30));
    EXPECT_EQ(rank.operations.size(), 4U);
  }
}

TEST(MakePlan, NamesOneCpGroupPerTpRank) {
  const Problem problem = test::hand_made_problem(small_scenario(2, 2), {{{0, 8}}});
  const Plan plan = make_plan(problem, 0, StrategyKind::zigzag);
  ASSERT_EQ(plan.groups.size(), 2U);
  EXPECT_EQ(plan.groups[1].name, "cp[tp=1]");
  EXPECT_THAT(plan.groups[1].members, ElementsAre(RankId{1}, RankId{3}));
  const RankPlan& rank = plan.ranks[3];
  EXPECT_EQ(rank.cp_rank, 1U);
  EXPECT_EQ(rank.heads_q.first, 2U);
  EXPECT_EQ(rank.heads_kv.first, 1U);
  EXPECT_EQ(rank.heads_kv.count, 1U);
  EXPECT_EQ(
      std::get<Collective>(test::operation_labelled(rank, "all-gather k and v rows").body).group,
      1U);
}

// 65 queries need two thread blocks of 64. 384 bytes of shared memory per dimension.
TEST(MakePlan, TakesTensorCoresFor16BitTypes) {
  Scenario scenario = small_scenario(2);
  scenario.model.dtype = DType::bf16;
  const Problem problem = test::hand_made_problem(scenario, {{{0, 65}}});
  const Plan plan = make_plan(problem, 0, StrategyKind::single);
  const Launch& launch = launch_labelled(plan.ranks.front(), "attention of all rows");
  EXPECT_EQ(launch.module, "attention_mma");
  EXPECT_EQ(launch.entry, "attention_mma_bf16_d32");
  EXPECT_EQ(launch.grid[0], 2U);
  EXPECT_EQ(launch.shared_bytes, 384U * 32U);
  EXPECT_EQ(plan.numerics.p_dtype, DType::bf16);
  EXPECT_TRUE(plan.numerics.is_tensor_core);
  EXPECT_EQ(plan.numerics.kv_tile, 32);
}

// 129 queries need two thread blocks of 128. 768 bytes of shared memory per dimension, and one
// warpgroup that copies beside two that compute.
TEST(MakePlan, LaunchesWarpgroupsWhereTheScenarioAsksForHopper) {
  Scenario scenario = small_scenario(2);
  scenario.model.dtype = DType::bf16;
  scenario.model.head_dim = 64;
  scenario.attention_kernel = AttentionKernel::hopper;
  const Problem problem = test::hand_made_problem(scenario, {{{0, 129}}});
  const Plan plan = make_plan(problem, 0, StrategyKind::single);
  const Launch& launch = launch_labelled(plan.ranks.front(), "attention of all rows");
  EXPECT_EQ(launch.module, "attention_hopper");
  EXPECT_EQ(launch.entry, "attention_hopper_bf16_d64");
  EXPECT_EQ(launch.grid[0], 2U);
  EXPECT_EQ(launch.block[0], 384U);
  EXPECT_EQ(launch.shared_bytes, 49152U);
  EXPECT_EQ(plan.numerics.p_dtype, DType::bf16);
  EXPECT_TRUE(plan.numerics.is_tensor_core);
  EXPECT_EQ(plan.numerics.kv_tile, 64);
}

TEST(MakePlan, KeepsProbabilitiesInF32WithoutTensorCores) {
  Scenario scenario = small_scenario(2);
  scenario.model.dtype = DType::f16;
  scenario.attention_kernel = AttentionKernel::fma;
  const Problem problem = test::hand_made_problem(scenario, {{{0, 9}}});
  const Plan plan = make_plan(problem, 0, StrategyKind::zigzag);
  EXPECT_EQ(plan.numerics.p_dtype, DType::f32);
  EXPECT_FALSE(plan.numerics.is_tensor_core);
  // Rank 0's early block of 9 tokens on 2 ranks has 3: one thread block of 4.
  const Launch& launch = launch_labelled(plan.ranks.front(), "attention of the early blocks");
  EXPECT_EQ(launch.entry, "attention_fma_f16_d32");
  EXPECT_EQ(launch.grid[0], 1U);
}

TEST(MakePlan, LaunchesNothingForAStepWithoutRows) {
  const Problem problem = test::hand_made_problem(small_scenario(2), {{}});
  const Plan plan = make_plan(problem, 0, StrategyKind::zigzag);
  ASSERT_EQ(plan.ranks.size(), 2U);
  EXPECT_THAT(plan.ranks.front().operations, IsEmpty());
  EXPECT_THAT(buffer_named(plan.ranks.front(), "cu_seqlens_q").values, ElementsAre(0));
}

}  // namespace
}  // namespace cpverify
