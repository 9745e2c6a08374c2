// What each defect of pcp_dcp changes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/mutants/defect_subject.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify::mutants {
namespace {

using testing::ElementsAre;

/// One new token after two, on two prefill ranks by two; blocks of 4 tokens, one for each shard.
class ProductDefects : public DefectSubject {
 protected:
  ProductDefects() { plan_with({2, 2, 2, KvSharding::pcp_dcp}); }

  void plan_with(TopologySpec topology) {
    Scenario scenario = small_scenario();
    scenario.topology = topology;
    scenario.model.num_heads_kv = 1;
    scenario.dcp.combine = DcpCombine::a2a;
    scenario.cache.block_size = 4 / topology.kv_shards();
    problem() = test::hand_made_problem(scenario, {{{2, 1}}});
    plan_by(StrategyKind::pcp_dcp);
  }
};

// Positions 0, 1 and 2 are shards 0, 1 and 2. Block 1 is slot 1 of every rank.
TEST_F(ProductDefects, CountShardsAlongTheOtherAxis) {
  EXPECT_THAT(values(1, "kv_lens_context"), ElementsAre(1));
  EXPECT_THAT(values(2, "slot_mapping"), ElementsAre(1));
  put_in("pcp_dcp_shard_order");
  EXPECT_THAT(values(1, "kv_lens_context"), ElementsAre(0));
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(1));
  EXPECT_THAT(values(2, "kv_lens_context"), ElementsAre(1));
  EXPECT_THAT(values(2, "slot_mapping"), ElementsAre(-1));
  EXPECT_THAT(values(0, "kv_lens_context"), ElementsAre(1));
}

// And back, where prefill ranks are counted first: rank 1, of tp rank 1, is shard 2 there.
TEST_F(ProductDefects, CountShardsOfTheOtherModelToo) {
  plan_with({2, 2, 4, KvSharding::dcp_over_pcp});
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(1));
  put_in("pcp_dcp_shard_order");
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(-1));
  EXPECT_THAT(values(2, "slot_mapping"), ElementsAre(1));
}

TEST_F(ProductDefects, OrdersAgreeAlongOneAxis) {
  plan_with({2, 1, 1, KvSharding::pcp_dcp});
  EXPECT_THROW(put_in("pcp_dcp_shard_order"), InputError);
}

TEST_F(ProductDefects, MergeTwoPartialsOfFour) {
  const auto merged = [this] {
    return std::get<std::int32_t>(
        test::launch_labelled(rank(3), "merge the partials").arguments[3]);
  };
  EXPECT_EQ(merged(), 4);
  put_in("pcp_dcp_one_prefill_rank");
  EXPECT_EQ(merged(), 2);
}

// Prefill rank 0 has the token; ranks 2 and 3 have none.
TEST_F(ProductDefects, LeaveTheContextToOthers) {
  const auto has_attention = [this](std::size_t index) {
    for (const Operation& operation : rank(index).operations) {
      if (operation.label == "attention of the cached shard") return true;
    }
    return false;
  };
  EXPECT_TRUE(has_attention(2));
  put_in("pcp_dcp_context_by_rank");
  EXPECT_TRUE(has_attention(0));
  EXPECT_TRUE(has_attention(1));
  EXPECT_FALSE(has_attention(2));
  EXPECT_FALSE(has_attention(3));
  // What is left are the gathers of K and V and of the outputs.
  std::size_t collectives = 0;
  for (const Operation& operation : rank(3).operations) {
    if (std::holds_alternative<Collective>(operation.body)) ++collectives;
  }
  EXPECT_EQ(collectives, 2U);
}

TEST_F(ProductDefects, NeedTheirStrategy) {
  plan_by(StrategyKind::single);
  for (const std::string defect :
       {"pcp_dcp_shard_order", "pcp_dcp_one_prefill_rank", "pcp_dcp_context_by_rank"}) {
    EXPECT_THROW(put_in(defect), InputError) << defect;
  }
}

}  // namespace
}  // namespace cpverify::mutants
