// Subject and oracle were written apart, one by closed forms, one token by token. On random batches
// they must agree on every integer; and when one of the subject's integers is changed, whichever it
// is, the judge must say so.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/judge.hpp"
#include "scenario/schema.hpp"

namespace cpverify {
namespace {

/// What the reader of scenarios asks of heads and shards.
bool is_valid(Scenario scenario, StrategyKind strategy) {
  scenario.strategies = {strategy};
  return refused_strategy(scenario).empty();
}

RequestSpec any_request(std::size_t index) {
  RequestSpec request;
  request.id = "r" + std::to_string(index);
  request.cached_prefix = *rc::gen::inRange<std::int64_t>(0, 40);
  request.prompt = *rc::gen::inRange<std::int64_t>(1, 60);
  request.decode = *rc::gen::inRange<std::int64_t>(0, 3);
  request.arrival_step = *rc::gen::inRange<std::int64_t>(0, 3);
  return request;
}

Scenario any_scenario() {
  Scenario scenario;
  scenario.model.num_heads_q = 8;
  scenario.model.num_heads_kv = *rc::gen::element(1U, 2U, 4U, 8U);
  scenario.model.head_dim = 32;
  scenario.topology.cp = *rc::gen::inRange(1U, 9U);
  scenario.topology.tp = *rc::gen::element(1U, 2U, 4U);
  const std::uint32_t copies = scenario.topology.tp / scenario.model.num_heads_kv;
  if (copies > 1) scenario.topology.dcp = *rc::gen::element(1U, 2U, copies);
  scenario.topology.kv_sharding = *rc::gen::element(KvSharding::dcp, KvSharding::pcp_dcp);
  scenario.topology.kv_interleave = *rc::gen::element(1U, 1U, 2U, 4U);
  if (*rc::gen::inRange(0, 4) == 0) {
    scenario.topology.kv_sharding = KvSharding::dcp_over_pcp;
    const bool is_all = scenario.model.num_heads_kv == 1 && *rc::gen::arbitrary<bool>();
    scenario.topology.dcp = scenario.topology.cp * (is_all ? scenario.topology.tp : 1);
  }
  scenario.dcp.visibility = *rc::gen::element(DcpVisibility::split, DcpVisibility::cached);
  scenario.dcp.combine = *rc::gen::element(DcpCombine::ag_rs, DcpCombine::ag_ar, DcpCombine::a2a);
  scenario.cache.block_size = scenario.topology.kv_interleave * *rc::gen::inRange(1U, 20U);
  scenario.padding.token_multiple = *rc::gen::inRange<std::int64_t>(1, 9);
  scenario.scheduler.max_batched_tokens = *rc::gen::inRange<std::int64_t>(0, 80);
  const std::size_t count = *rc::gen::inRange<std::size_t>(1, 5);
  for (std::size_t i = 0; i < count; ++i) scenario.requests.push_back(any_request(i));
  if (*rc::gen::arbitrary<bool>()) scenario.cache.shuffle_seed = 5;
  scenario.dcp.owner = *rc::gen::element(DcpOwner::position, DcpOwner::slot);
  scenario.cache.unit = *rc::gen::element(CacheUnit::block, CacheUnit::block, CacheUnit::slot);
  scenario.cache.reuse = *rc::gen::element(CacheReuse::never, CacheReuse::finished);
  scenario.checks = {Check::metadata, Check::collectives};
  return scenario;
}

RC_GTEST_PROP(Oracle, AgreesWithEveryPlan, ()) {
  const Problem problem = make_problem(any_scenario());
  for (const Step& step : problem.steps) {
    for (const StrategyKind strategy : scenario::kStrategies) {
      if (!is_valid(problem.scenario, strategy)) continue;
      const Plan plan = make_plan(problem, step.index, strategy);
      const std::vector<Finding> findings = judge::judge_plan(problem, plan, DataMode::random);
      if (!findings.empty()) RC_FAIL(findings.front().buffer + ": " + findings.front().detail);
    }
  }
}

RC_GTEST_PROP(Oracle, SeesAnyChangedInteger, ()) {
  const Problem problem = make_problem(any_scenario());
  const auto step = *rc::gen::inRange<std::size_t>(0, problem.steps.size());
  const StrategyKind strategy = *rc::gen::elementOf(scenario::kStrategies);
  RC_PRE(is_valid(problem.scenario, strategy));
  Plan plan = make_plan(problem, static_cast<std::uint32_t>(step), strategy);
  RankPlan& rank = plan.ranks[*rc::gen::inRange<std::size_t>(0, plan.ranks.size())];
  std::vector<Buffer*> arrays;
  for (Buffer& buffer : rank.buffers) {
    if (!buffer.values.empty()) arrays.push_back(&buffer);
  }
  Buffer& changed = *arrays.at(*rc::gen::inRange<std::size_t>(0, arrays.size()));
  const auto element = *rc::gen::inRange<std::size_t>(0, changed.values.size());
  changed.values[element] += *rc::gen::element(-1, 1);

  const std::vector<Finding> findings = judge::judge_plan(problem, plan, DataMode::random);
  RC_ASSERT(findings.size() == 1U);
  RC_ASSERT(findings.front().rank == rank.rank);
  RC_ASSERT(findings.front().buffer == changed.name);
  RC_ASSERT(findings.front().element == static_cast<std::int64_t>(element));
}

}  // namespace
}  // namespace cpverify
