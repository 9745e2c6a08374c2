#include <cstdint>

#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"
#include "plan/dcp.hpp"
#include "plan/launches.hpp"
#include "plan/pcp_dcp.hpp"
#include "plan/pcp_head_tail.hpp"
#include "plan/pcp_virtual_batch.hpp"
#include "plan/rank_builder.hpp"
#include "plan/ring.hpp"
#include "plan/row_split.hpp"
#include "plan/single.hpp"
#include "plan/ulysses.hpp"
#include "plan/zigzag.hpp"
#include "support/check.hpp"

namespace cpverify {
namespace {

/// A rank with its heads and nothing to do.
RankPlan make_rank(const ModelSpec& model, const TopologySpec& world, RankId rank) {
  const layout::TpRank tp_rank = layout::tp_rank_of(world, rank);
  RankPlan plan;
  plan.rank = rank;
  plan.cp_rank = layout::cp_rank_of(world, rank).value();
  plan.tp_rank = tp_rank.value();
  plan.heads_q = layout::query_heads(model, world, tp_rank);
  plan.heads_kv = layout::kv_heads(model, world, tp_rank);
  return plan;
}

/// The one place that knows every strategy's file.
void build(const Problem& problem, const Step& step, Plan& plan) {
  switch (plan.strategy) {
    case StrategyKind::single:
      plan::build_single(problem, step, plan);
      return;
    case StrategyKind::zigzag:
    case StrategyKind::zigzag_combined:
      plan::build_zigzag(problem, step, plan);
      return;
    case StrategyKind::interleave:
      plan::build_interleave(problem, step, plan);
      return;
    case StrategyKind::contiguous:
      plan::build_contiguous(problem, step, plan);
      return;
    case StrategyKind::dcp:
    case StrategyKind::dcp_virtual:
      plan::build_dcp(problem, step, plan);
      return;
    case StrategyKind::pcp_dcp:
      plan::build_pcp_dcp(problem, step, plan);
      return;
    case StrategyKind::pcp_head_tail:
      plan::build_pcp_head_tail(problem, step, plan);
      return;
    case StrategyKind::pcp_virtual_batch:
      plan::build_pcp_virtual_batch(problem, step, plan);
      return;
    case StrategyKind::ring:
    case StrategyKind::ring_contiguous:
      plan::build_ring(problem, step, plan);
      return;
    case StrategyKind::ulysses:
      plan::build_ulysses(problem, step, plan);
      return;
    case StrategyKind::launch:
      break;
  }
  CPVERIFY_CHECK(false);
}

}  // namespace

Plan make_plan(const Problem& problem, std::uint32_t step, StrategyKind strategy) {
  CPVERIFY_CHECK(step < problem.steps.size());
  const Step& work = problem.steps[step];
  const TopologySpec world = layout::world_of(problem.scenario.topology, strategy);
  CPVERIFY_CHECK(world.cp > 0);
  CPVERIFY_CHECK(world.tp > 0);

  Plan plan;
  plan.strategy = strategy;
  plan.step = step;
  for (std::uint32_t rank = 0; rank < world.cp * world.tp; ++rank) {
    plan.ranks.push_back(make_rank(problem.scenario.model, world, RankId{rank}));
  }
  plan.numerics =
      plan::attention_numerics(plan::make_rank_shape(problem, work, plan.ranks.front()));
  build(problem, work, plan);
  return plan;
}

}  // namespace cpverify
