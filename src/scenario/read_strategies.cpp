#include <algorithm>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "cpverify/scenario.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

// Which strategies run, and how those behave that have a choice.
namespace cpverify::scenario {
namespace {

bool has(const Scenario& scenario, StrategyKind strategy) {
  return std::find(scenario.strategies.begin(), scenario.strategies.end(), strategy) !=
         scenario.strategies.end();
}

/// Ulysses gives every rank whole query heads, and the KV heads that they read: several each, or
/// one to several ranks.
void check_ulysses_heads(const Value& value, const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  const std::uint32_t heads_q = scenario.model.num_heads_q / topology.tp;
  const std::uint32_t heads_kv = std::max(1U, scenario.model.num_heads_kv / topology.tp);
  if (heads_q % topology.cp != 0) {
    value.fail(
        fmt::format("'strategies' has ulysses, which deals {} query heads of a rank out to "
                    "{} context-parallel ranks; expected a multiple of {}",
                    heads_q, topology.cp, topology.cp));
  }
  if (heads_kv % topology.cp != 0 && topology.cp % heads_kv != 0) {
    value.fail(
        fmt::format("'strategies' has ulysses, which deals {} KV heads of a rank out to {} "
                    "context-parallel ranks; expected a multiple or a divisor of {}",
                    heads_kv, topology.cp, topology.cp));
  }
}

}  // namespace

void read_strategies(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("strategies");
  if (!value) return;
  scenario.strategies = choices(*value, kStrategies);
  if (has(scenario, StrategyKind::ulysses)) check_ulysses_heads(*value, scenario);
  const TopologySpec& topology = scenario.topology;
  const bool is_over_prefill = topology.kv_sharding == KvSharding::pcp_dcp && topology.cp > 1;
  if (has(scenario, StrategyKind::dcp) && is_over_prefill) {
    value->fail(
        fmt::format("'strategies' has dcp, which runs on one context-parallel rank, and "
                    "kv_sharding pcp_dcp divides the cache among {}; expected kv_sharding "
                    "dcp",
                    topology.cp));
  }
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
