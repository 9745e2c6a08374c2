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
  if (topology.kv_sharding == KvSharding::dcp_over_pcp) {
    return "has decode groups of tensor-parallel ranks; expected kv_sharding dcp, or strategy "
           "pcp_dcp";
  }
  if (topology.kv_sharding == KvSharding::dcp || topology.cp == 1) return {};
  return fmt::format(
      "runs on one context-parallel rank, and kv_sharding pcp_dcp divides the cache among {}; "
      "expected kv_sharding dcp",
      topology.cp);
}

/// Blocks of one slot have no tokens to divide; the owner is then told by the slot's number.
std::string why_not_blocks(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.dcp == 1 || scenario.cache.unit == CacheUnit::block) return {};
  return fmt::format(
      "divides blocks among {} ranks, and unit slot hands out single slots; expected unit block, "
      "or strategy dcp_virtual with owner slot",
      topology.dcp);
}

std::string why_not_dcp_virtual(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.dcp > 1 && topology.kv_interleave != 1) {
    return fmt::format(
        "deals tokens out one by one, and kv_interleave is {}; expected 1, or strategy dcp",
        topology.kv_interleave);
  }
  if (scenario.dcp.owner == DcpOwner::position) {
    const std::string text = why_not_blocks(scenario);
    if (!text.empty()) return text;
  }
  return why_not_dcp(scenario);
}

/// What is not modelled is refused: other combines, and decodes that find their own key in the
/// cache.
std::string why_not_pcp_dcp(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.cp == 1) {
    return "splits prefills over cp ranks, and there is one; expected cp 2 or more, or strategy "
           "dcp";
  }
  if (topology.kv_sharding == KvSharding::dcp) {
    return "divides the cache among prefill ranks too; expected kv_sharding pcp_dcp or "
           "dcp_over_pcp";
  }
  if (scenario.dcp.visibility != DcpVisibility::split || scenario.dcp.combine != DcpCombine::a2a) {
    return fmt::format(
        "attends context and new tokens apart and combines by all-to-all, and dcp is {}, {}; "
        "expected visibility split, combine a2a",
        name(scenario.dcp.visibility), name(scenario.dcp.combine));
  }
  if (scenario.cache.unit == CacheUnit::slot) {
    return "divides blocks among ranks, and unit slot hands out single slots; expected unit block";
  }
  return {};
}

/// Every rank of the prefill group holds a part of each block.
std::string why_not_head_tail(const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.cp == 1) return {};
  if (scenario.cache.unit == CacheUnit::slot) {
    return "divides blocks among ranks, and unit slot hands out single slots; expected unit block";
  }
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
  if (strategy == StrategyKind::pcp_dcp) return why_not_pcp_dcp(scenario);
  if (strategy == StrategyKind::pcp_head_tail) return why_not_head_tail(scenario);
  if (strategy == StrategyKind::ulysses) return why_not_ulysses(scenario);
  if (strategy == StrategyKind::dcp_virtual) return why_not_dcp_virtual(scenario);
  if (strategy != StrategyKind::dcp) return {};
  const std::string text = why_not_dcp(scenario);
  return text.empty() ? why_not_blocks(scenario) : text;
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
  const std::optional<Value> owner = map.find("owner");
  if (owner) scenario.dcp.owner = choice(*owner, kDcpOwners);
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
