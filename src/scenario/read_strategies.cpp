#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "cpverify/scenario.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

// Which strategies run, and how those behave that have a choice.
namespace cpverify::scenario {
namespace {

/// Ulysses gives every rank whole query heads, and the KV heads that they read: several each, or
/// one to several ranks.
std::string why_not_ulysses(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  const std::uint32_t heads_q = scenario.model.num_heads_q / topology.tp;
  const std::uint32_t heads_kv = std::max(1U, scenario.model.num_heads_kv / topology.tp);
  if (heads_q % topology.cp != 0) {
    return fmt::format(
        "deals {} query heads of a rank out to {} context-parallel ranks; expected a multiple of "
        "{}",
        heads_q, topology.cp, topology.cp);
  }
  if (heads_kv % topology.cp != 0 && topology.cp % heads_kv != 0) {
    return fmt::format(
        "deals {} KV heads of a rank out to {} context-parallel ranks; expected a multiple or a "
        "divisor of {}",
        heads_kv, topology.cp, topology.cp);
  }
  return {};
}

std::string why_not_dcp(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.kv_sharding == KvSharding::dcp || topology.cp == 1) return {};
  return fmt::format(
      "runs on one context-parallel rank, and kv_sharding pcp_dcp divides the cache among {}; "
      "expected kv_sharding dcp",
      topology.cp);
}

/// Every rank of the prefill group holds a part of each block.
std::string why_not_head_tail(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.cp == 1) return {};
  if (topology.dcp > 1) {
    return fmt::format("has no decode groups here, and dcp is {}; expected dcp 1", topology.dcp);
  }
  if (topology.kv_sharding == KvSharding::pcp_dcp) return {};
  return fmt::format(
      "divides the cache among {} context-parallel ranks, and kv_sharding dcp leaves it whole; "
      "expected kv_sharding pcp_dcp",
      topology.cp);
}

std::string why_not(const Scenario& scenario, StrategyKind strategy) {
  if (strategy == StrategyKind::ulysses) return why_not_ulysses(scenario);
  if (strategy == StrategyKind::dcp) return why_not_dcp(scenario);
  if (strategy == StrategyKind::pcp_head_tail) return why_not_head_tail(scenario);
  return {};
}

}  // namespace

void read_strategies(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("strategies");
  if (!value) return;
  scenario.strategies = choices(*value, kStrategies);
  const std::string text = refused_strategy(scenario);
  if (!text.empty()) value->fail(fmt::format("'strategies' has {}", text));
}

void read_dcp(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("dcp");
  if (!value) return;
  const Map map{*value, Section::dcp};
  const std::optional<Value> visibility = map.find("visibility");
  if (visibility) scenario.dcp.visibility = choice(*visibility, kDcpVisibilities);
  const std::optional<Value> combine = map.find("combine");
  if (!combine) return;
  scenario.dcp.combine = choice(*combine, kDcpCombines);
  const bool is_split = scenario.dcp.visibility == DcpVisibility::split;
  if (scenario.dcp.combine == DcpCombine::ag_rs_f32 && !is_split) {
    combine->fail(
        "'combine' is ag_rs_f32, whose f32 sum becomes the output type in the merge with the new "
        "tokens, and visibility cached has no such merge; expected ag_rs or a2a");
  }
}

}  // namespace cpverify::scenario

namespace cpverify {

std::string refused_strategy(const Scenario& scenario) {
  for (const StrategyKind strategy : scenario.strategies) {
    const std::string reason = scenario::why_not(scenario, strategy);
    if (!reason.empty()) return fmt::format("{}, which {}", name(strategy), reason);
  }
  return {};
}

}  // namespace cpverify
