#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "property/plan/host_walk.hpp"
#include "support/hand_made_problem.hpp"

namespace cpverify {
namespace {

using test::HandMadeRow;
using test::HandMadeStep;
using test::HostWalk;

Scenario any_scenario() {
  Scenario scenario;
  scenario.topology.cp = *rc::gen::inRange<std::uint32_t>(1, 5).as("cp");
  scenario.topology.tp = *rc::gen::element(1U, 2U, 4U).as("tp");
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = *rc::gen::element(1U, 2U, 4U).as("num_heads_kv");
  scenario.model.head_dim = 32;
  scenario.model.dtype = *rc::gen::element(DType::f32, DType::bf16);
  scenario.cache.block_size = *rc::gen::element(1U, 3U, 16U).as("block_size");
  scenario.padding.token_multiple = *rc::gen::element(1, 4, 7).as("token_multiple");
  return scenario;
}

/// Two steps of 1 to 4 requests: a first chunk over a cached prefix, then the next chunk of as many
/// tokens as may be, one of them sometimes in decode.
Problem any_problem(KvSharding sharding = KvSharding::dcp) {
  Scenario scenario = any_scenario();
  scenario.topology.kv_sharding = sharding;
  scenario.topology.kv_interleave =
      *rc::gen::element(1U, scenario.cache.block_size).as("interleave");
  HandMadeStep first;
  HandMadeStep second;
  const auto requests = *rc::gen::inRange<std::size_t>(1, 5).as("requests");
  for (std::size_t i = 0; i < requests; ++i) {
    const auto prefix = *rc::gen::inRange<std::int64_t>(0, 20).as("prefix");
    const auto shortest = *rc::gen::element<std::int64_t>(1, 8, 8, 8).as("shortest");
    const auto chunk = *rc::gen::inRange<std::int64_t>(shortest, 24).as("chunk");
    const bool is_decode = *rc::gen::inRange(0, 8).as("decode") == 0;
    first.push_back({prefix, chunk, RowState::prefill});
    second.push_back(
        {prefix + chunk, is_decode ? 1 : chunk, is_decode ? RowState::decode : RowState::prefill});
  }
  Problem problem = test::hand_made_problem(scenario, {first, second});
  for (const StepRow& row : problem.steps.front().rows) {
    for (std::int64_t token = 0; token < row.computed; ++token) {
      const std::int64_t block_size = problem.block_tokens();
      const std::int64_t block = row.block_table.at(static_cast<std::size_t>(token / block_size));
      problem.cached.push_back({row.request, token, block * block_size + token % block_size});
    }
  }
  return problem;
}

void walk(const Problem& problem, StrategyKind strategy) {
  HostWalk walk{problem};
  for (std::uint32_t step = 0; step < problem.steps.size(); ++step) {
    const Plan plan = make_plan(problem, step, strategy);
    RC_CLASSIFY(plan.is_cp_on);
    walk.run(plan);
  }
  if (!walk.complaints().empty()) {
    RC_FAIL(fmt::format("{}", fmt::join(walk.complaints(), "\n")));
  }
}

// Every element that an operation touches lies in its buffer and has been written, every query sees
// the keys 0 .. its own position, and every output row is the token that the plan says it is.
RC_GTEST_PROP(PlanProperty, SingleComputesEveryToken, ()) {
  walk(any_problem(), StrategyKind::single);
}

RC_GTEST_PROP(PlanProperty, ZigzagComputesEveryToken, ()) {
  walk(any_problem(), StrategyKind::zigzag);
}

// With rows of their own for chunks, decodes on every rank.
RC_GTEST_PROP(PlanProperty, PcpVirtualBatchComputesEveryToken, ()) {
  walk(any_problem(), StrategyKind::pcp_virtual_batch);
}

// Over a cache that the ranks share: every key of a query is in one chunk or one shard.
RC_GTEST_PROP(PlanProperty, PcpHeadTailComputesEveryToken, ()) {
  walk(any_problem(KvSharding::pcp_dcp), StrategyKind::pcp_head_tail);
}

// A group's ranks issue the same collectives at the same places, or none of them any.
RC_GTEST_PROP(PlanProperty, RanksIssueTheSameOperations, ()) {
  const Problem problem = any_problem();
  for (std::uint32_t step = 0; step < problem.steps.size(); ++step) {
    const Plan plan = make_plan(problem, step, StrategyKind::zigzag);
    const std::vector<Operation>& expected = plan.ranks.front().operations;
    for (const RankPlan& rank : plan.ranks) {
      RC_ASSERT(rank.operations.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) {
        RC_ASSERT(rank.operations[i].label == expected[i].label);
        RC_ASSERT(rank.operations[i].body.index() == expected[i].body.index());
      }
    }
  }
}

// CP off means the plan of strategy single on every rank, so its bits cannot differ.
RC_GTEST_PROP(PlanProperty, ZigzagWithCpOffIsSingleOnEveryRank, ()) {
  const Problem problem = any_problem();
  const std::uint32_t tp = problem.scenario.topology.tp;
  for (std::uint32_t step = 0; step < problem.steps.size(); ++step) {
    const Plan plan = make_plan(problem, step, StrategyKind::zigzag);
    if (plan.is_cp_on) {
      continue;
    }
    const Plan single = make_plan(problem, step, StrategyKind::single);
    RC_ASSERT(single.ranks.size() == tp);
    for (const RankPlan& rank : plan.ranks) {
      const RankPlan& twin = single.ranks.at(rank.tp_rank);
      RC_ASSERT(rank.buffers.size() == twin.buffers.size());
      for (std::size_t i = 0; i < twin.buffers.size(); ++i) {
        RC_ASSERT(rank.buffers[i].name == twin.buffers[i].name);
        RC_ASSERT(rank.buffers[i].shape == twin.buffers[i].shape);
        RC_ASSERT(rank.buffers[i].values == twin.buffers[i].values);
      }
    }
  }
}

}  // namespace
}  // namespace cpverify
