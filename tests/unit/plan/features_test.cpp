// Soft-cap, sinks and windows in plans: which calls get what, whatever the strategy.

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "plan/launches.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify {
namespace {

using plan::AttentionArguments;
using test::buffer_named;
using testing::ElementsAre;
using testing::SizeIs;

/// Rows of 7 tokens behind 5 and of 9 behind none.
Problem problem_with(const ModelSpec& model, const TopologySpec& topology) {
  Scenario scenario;
  scenario.model = model;
  scenario.topology = topology;
  scenario.cache.block_size = 4;
  return test::hand_made_problem(scenario, {{{5, 7}, {0, 9}}});
}

ModelSpec model_of(std::uint32_t num_heads_q, std::uint32_t num_heads_kv) {
  ModelSpec model;
  model.num_heads_q = num_heads_q;
  model.num_heads_kv = num_heads_kv;
  model.head_dim = 32;
  model.dtype = DType::f32;
  return model;
}

std::vector<const Operation*> attention_of(const RankPlan& rank) {
  std::vector<const Operation*> found;
  for (const Operation& operation : rank.operations) {
    const auto* launch = std::get_if<Launch>(&operation.body);
    if (launch == nullptr || !std::string_view{launch->module}.starts_with("attention")) continue;
    found.push_back(&operation);
  }
  return found;
}

/// "label: sinks+offset" of every call with sinks.
std::vector<std::string> calls_with_sinks(const RankPlan& rank) {
  std::vector<std::string> found;
  for (const Operation* operation : attention_of(rank)) {
    const KernelArgument& sinks =
        std::get<Launch>(operation->body).arguments.at(AttentionArguments::kSinks);
    if (const auto* ref = std::get_if<BufferRef>(&sinks)) {
      found.push_back(operation->label + ": " + test::pointer(rank, *ref));
    } else {
      EXPECT_EQ(std::get<std::int64_t>(sinks), 0) << operation->label;
    }
  }
  return found;
}

constexpr StrategyKind kWholeRows[] = {StrategyKind::zigzag_combined, StrategyKind::interleave,
                                       StrategyKind::contiguous, StrategyKind::pcp_virtual_batch,
                                       StrategyKind::ulysses};

TEST(Features, ReachEveryCallOfStrategiesThatComputeWholeRows) {
  ModelSpec model = model_of(4, 2);
  model.soft_cap = 30.0F;
  model.softmax_scale = 0.25F;
  model.has_sinks = true;
  model.sliding_window = 6;
  const Problem problem = problem_with(model, {2, 1});
  for (const StrategyKind strategy : kWholeRows) {
    SCOPED_TRACE(name(strategy));
    const Plan plan = make_plan(problem, 0, strategy);
    for (const RankPlan& rank : plan.ranks) {
      EXPECT_THAT(calls_with_sinks(rank), SizeIs(1));
      for (const Operation* operation : attention_of(rank)) {
        const auto& arguments = std::get<Launch>(operation->body).arguments;
        EXPECT_EQ(std::get<float>(arguments.at(AttentionArguments::kSoftCapScale)), 0.25F / 30.0F);
        EXPECT_EQ(std::get<float>(arguments.at(AttentionArguments::kSoftmaxScaleLog2)),
                  static_cast<float>(30.0 * std::numbers::log2e));
        EXPECT_EQ(std::get<std::int32_t>(arguments.at(AttentionArguments::kWindow)), 6);
      }
    }
  }
}

// Early and late blocks are other rows: each call counts the sinks of its own.
TEST(Features, ReachBothCallsOfZigzag) {
  ModelSpec model = model_of(4, 2);
  model.has_sinks = true;
  const Plan plan = make_plan(problem_with(model, {2, 1}), 0, StrategyKind::zigzag);
  EXPECT_THAT(calls_with_sinks(plan.ranks[1]), ElementsAre("attention of the early blocks: sinks",
                                                           "attention of the late blocks: sinks"));
}

TEST(Features, AreAbsentFromPlainModels) {
  const Plan plan = make_plan(problem_with(model_of(4, 2), {2, 1}), 0, StrategyKind::zigzag);
  for (const RankPlan& rank : plan.ranks) {
    EXPECT_THAT(calls_with_sinks(rank), SizeIs(0));
    for (const Operation* operation : attention_of(rank)) {
      const auto& arguments = std::get<Launch>(operation->body).arguments;
      EXPECT_EQ(std::get<float>(arguments.at(AttentionArguments::kSoftCapScale)), 0.0F);
      EXPECT_EQ(std::get<std::int32_t>(arguments.at(AttentionArguments::kWindow)), 0);
    }
    for (const Buffer& buffer : rank.buffers) EXPECT_NE(buffer.name, "sinks");
  }
}

// A row's parts are the prefix and the blocks of two hops.
TEST(Features, OfARingCountSinksWithTheOwnBlock) {
  ModelSpec model = model_of(4, 2);
  model.has_sinks = true;
  for (const StrategyKind strategy : {StrategyKind::ring, StrategyKind::ring_contiguous}) {
    const Plan plan = make_plan(problem_with(model, {2, 1}), 0, strategy);
    for (const RankPlan& rank : plan.ranks) {
      EXPECT_THAT(calls_with_sinks(rank), ElementsAre("attention of the block of hop 0: sinks"));
    }
  }
}

// 8 query heads over tp 4 with groups of 2: ranks 2 and 3 have heads 4 to 7 together.
TEST(Features, OfAShardedCacheCountSinksOnce) {
  ModelSpec model = model_of(8, 2);
  model.has_sinks = true;
  TopologySpec topology{1, 4};
  topology.dcp = 2;
  Problem problem = problem_with(model, topology);
  const Plan split = make_plan(problem, 0, StrategyKind::dcp);
  EXPECT_THAT(calls_with_sinks(split.ranks[2]), ElementsAre("attention of the new tokens: sinks"));
  EXPECT_THAT(calls_with_sinks(split.ranks[3]),
              ElementsAre("attention of the new tokens: sinks+2"));
  for (const std::size_t rank : {2U, 3U}) {
    EXPECT_EQ(buffer_named(split.ranks[rank], "sinks").input->heads.first, 4U);
    EXPECT_THAT(buffer_named(split.ranks[rank], "sinks").shape, ElementsAre(4));
  }
  problem.scenario.dcp.visibility = DcpVisibility::cached;
  const Plan cached = make_plan(problem, 0, StrategyKind::dcp);
  EXPECT_THAT(calls_with_sinks(cached.ranks[2]),
              ElementsAre("attention of the sharded cache: sinks"));
  EXPECT_THAT(calls_with_sinks(cached.ranks[3]), SizeIs(0));
}

// Of 8 heads a TP rank has 4, and a CP rank 2 of those.
TEST(Features, OfExchangedHeadsAreThoseOfTheRank) {
  ModelSpec model = model_of(8, 4);
  model.has_sinks = true;
  const Plan plan = make_plan(problem_with(model, {2, 2}), 0, StrategyKind::ulysses);
  const std::vector<std::uint32_t> first_heads{0, 4, 2, 6};
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const Buffer& sinks = buffer_named(plan.ranks[rank], "sinks");
    EXPECT_EQ(sinks.input->heads.first, first_heads[rank]) << rank;
    EXPECT_EQ(sinks.input->heads.count, 2U);
  }
}

}  // namespace
}  // namespace cpverify
