#include <cstdint>

#include <fmt/format.h>

#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"
#include "layout/zigzag.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"
#include "plan/zigzag.hpp"
#include "support/check.hpp"

namespace cpverify {
namespace {

RankPlan make_rank(const ModelSpec& model, const TopologySpec& topology, RankId rank) {
  const layout::TpRank tp_rank = layout::tp_rank_of(topology, rank);
  RankPlan plan;
  plan.rank = rank;
  plan.cp_rank = layout::cp_rank_of(topology, rank).value();
  plan.tp_rank = tp_rank.value();
  plan.heads_q = layout::query_heads(model, topology, tp_rank);
  plan.heads_kv = layout::kv_heads(model, topology, tp_rank);
  return plan;
}

/// Strategy single has one CP rank: world ranks 0 .. tp-1.
TopologySpec topology_of(const Scenario& scenario, StrategyKind strategy) {
  TopologySpec topology = scenario.topology;
  if (strategy == StrategyKind::single) {
    topology.cp = 1;
  }
  return topology;
}

}  // namespace

Plan make_plan(const Problem& problem, std::uint32_t step, StrategyKind strategy) {
  CPVERIFY_CHECK(strategy != StrategyKind::launch);
  CPVERIFY_CHECK(step < problem.steps.size());
  const Step& work = problem.steps[step];
  const ModelSpec& model = problem.scenario.model;
  const TopologySpec topology = topology_of(problem.scenario, strategy);
  CPVERIFY_CHECK(topology.cp > 0);
  CPVERIFY_CHECK(topology.tp > 0);

  Plan plan;
  plan.strategy = strategy;
  plan.step = step;
  if (strategy == StrategyKind::zigzag) {
    plan.is_cp_on = layout::is_zigzag_applicable(work, topology.cp);
    // Both calls walk keys in tiles from key 0, so a row's bits do not depend on the split.
    plan.is_bitwise = true;
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      plan.groups.push_back(
          {fmt::format("cp[tp={}]", tp_rank), layout::cp_group(topology, layout::TpRank{tp_rank})});
    }
  }
  for (std::uint32_t rank = 0; rank < topology.cp * topology.tp; ++rank) {
    plan.ranks.push_back(make_rank(model, topology, RankId{rank}));
    RankPlan& rank_plan = plan.ranks.back();
    if (plan.is_cp_on) {
      plan::build_zigzag_step(problem, work, rank_plan.tp_rank, rank_plan);
    } else {
      plan::build_whole_step(problem, work, rank_plan);
    }
  }
  plan.numerics =
      plan::attention_numerics(plan::make_rank_shape(problem, work, plan.ranks.front()));
  return plan;
}

}  // namespace cpverify
