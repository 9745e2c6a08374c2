// Whole runs on small random batches: every strategy, with its kernels and collectives, computes
// what one device does, whatever the lengths, prefixes, chunks, pages, pads and ranks.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"
#include "scenario/schema.hpp"

namespace cpverify {
namespace {

void choose_topology(Scenario& scenario) {
  scenario.topology.cp = *rc::gen::inRange(1U, 5U);
  scenario.topology.tp = *rc::gen::element(1U, 1U, 2U);
  const bool has_copies = scenario.topology.tp > scenario.model.num_heads_kv;
  if (has_copies) scenario.topology.dcp = *rc::gen::element(1U, 2U);
  scenario.topology.kv_sharding = *rc::gen::elementOf(scenario::kKvShardings);
  // As the reader asks: such groups are those of the prefill ranks.
  const bool is_over_prefill = scenario.topology.kv_sharding == KvSharding::dcp_over_pcp;
  if (is_over_prefill) scenario.topology.dcp = scenario.topology.cp;
  scenario.topology.kv_interleave = *rc::gen::element(1U, 2U, 4U);
  scenario.dcp.visibility = *rc::gen::elementOf(scenario::kDcpVisibilities);
  scenario.dcp.combine = *rc::gen::element(DcpCombine::ag_rs, DcpCombine::ag_ar, DcpCombine::a2a);
}

void choose_requests(Scenario& scenario) {
  const std::size_t count = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t i = 0; i < count; ++i) {
    RequestSpec request;
    request.id = fmt::format("r{}", i);
    request.cached_prefix = *rc::gen::inRange<std::int64_t>(0, 12);
    request.prompt = *rc::gen::inRange<std::int64_t>(1, 14);
    request.decode = *rc::gen::inRange<std::int64_t>(0, 2);
    request.arrival_step = *rc::gen::inRange<std::int64_t>(0, 2);
    scenario.requests.push_back(request);
  }
}

Scenario any_scenario() {
  Scenario scenario;
  scenario.path = "random.yaml";
  scenario.name = "random";
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = *rc::gen::element(1U, 2U, 4U);
  scenario.model.head_dim = 32;
  scenario.model.dtype = *rc::gen::element(DType::f32, DType::bf16, DType::f16);
  scenario.model.softmax_scale = 0.17677669F;
  scenario.model.soft_cap = *rc::gen::element(0.0F, 0.0F, 4.0F);
  scenario.model.has_sinks = *rc::gen::inRange(0, 3) == 0;
  scenario.model.sliding_window = *rc::gen::element<std::int64_t>(0, 0, 0, 1, 5, 16);
  choose_topology(scenario);
  scenario.cache.block_size = scenario.topology.kv_interleave * *rc::gen::inRange(1U, 5U);
  if (*rc::gen::arbitrary<bool>()) scenario.cache.shuffle_seed = 5;
  scenario.padding.token_multiple = *rc::gen::element<std::int64_t>(1, 1, 4);
  scenario.scheduler.max_batched_tokens = *rc::gen::inRange<std::int64_t>(0, 30);
  choose_requests(scenario);
  scenario.data.modes = {*rc::gen::elementOf(scenario::kDataModes)};
  scenario.data.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  scenario.checks.assign(scenario::kChecks.begin(), scenario::kChecks.end());
  std::erase(scenario.checks, Check::nancheck);
  return scenario;
}

std::string told(const Verdict& verdict) {
  std::string text{name(verdict.outcome)};
  for (const Finding& finding : verdict.unexpected_findings) {
    text += fmt::format("\n{} {} {}: {}", name(finding.strategy), finding.kind, finding.buffer,
                        finding.detail);
  }
  return text;
}

RC_GTEST_PROP(Strategies, ComputeWhatOneDeviceDoes, ()) {
  Scenario scenario = any_scenario();
  scenario.strategies = {*rc::gen::elementOf(scenario::kStrategies)};
  if (scenario.strategies.front() == StrategyKind::pcp_dcp) {
    // The one way in which it works.
    scenario.dcp.visibility = DcpVisibility::split;
    scenario.dcp.combine = DcpCombine::a2a;
  }
  RC_PRE(refused_strategy(scenario).empty());
  RC_TAG(std::string{name(scenario.strategies.front())});
  VerifyOptions options;
  options.jobs = 1;
  const Verdict verdict = verify(scenario, options);
  if (verdict.outcome != Outcome::passed) RC_FAIL(told(verdict));
}

}  // namespace
}  // namespace cpverify
