#include "layout/topology.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "support/check.hpp"

namespace cpverify::layout {

TopologySpec world_of(const TopologySpec& topology, StrategyKind strategy) noexcept {
  TopologySpec world = topology;
  if (strategy == StrategyKind::single || strategy == StrategyKind::dcp ||
      strategy == StrategyKind::dcp_virtual) {
    world.cp = 1;
  }
  return world;
}

RankId world_rank(const TopologySpec& topology, CpRank cp_rank, TpRank tp_rank) noexcept {
  return RankId{cp_rank.value() * topology.tp + tp_rank.value()};
}

CpRank cp_rank_of(const TopologySpec& topology, RankId rank) noexcept {
  return CpRank{rank.value() / topology.tp};
}

TpRank tp_rank_of(const TopologySpec& topology, RankId rank) noexcept {
  return TpRank{rank.value() % topology.tp};
}

std::vector<RankId> cp_group(const TopologySpec& topology, TpRank tp_rank) {
  std::vector<RankId> members;
  members.reserve(topology.cp);
  for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
    members.push_back(world_rank(topology, CpRank{cp_rank}, tp_rank));
  }
  return members;
}

std::vector<std::vector<RankId>> dcp_groups(const TopologySpec& topology) {
  CPVERIFY_CHECK(topology.dcp > 0);
  CPVERIFY_CHECK(topology.tp % topology.dcp == 0);
  std::vector<std::vector<RankId>> groups;
  for (std::uint32_t first = 0; first < topology.cp * topology.tp; first += topology.dcp) {
    std::vector<RankId>& members = groups.emplace_back();
    for (std::uint32_t i = 0; i < topology.dcp; ++i) members.emplace_back(first + i);
  }
  return groups;
}

HeadRange query_heads(const ModelSpec& model, const TopologySpec& topology, TpRank tp_rank) {
  CPVERIFY_CHECK(topology.tp > 0);
  CPVERIFY_CHECK(model.num_heads_q % topology.tp == 0);
  const std::uint32_t count = model.num_heads_q / topology.tp;
  return {tp_rank.value() * count, count};
}

HeadRange kv_heads(const ModelSpec& model, const TopologySpec& topology, TpRank tp_rank) {
  CPVERIFY_CHECK(topology.tp > 0);
  CPVERIFY_CHECK(model.num_heads_kv % topology.tp == 0 || topology.tp % model.num_heads_kv == 0);
  const std::uint32_t first = tp_rank.value() * model.num_heads_kv / topology.tp;
  return {first, std::max(1U, model.num_heads_kv / topology.tp)};
}

}  // namespace cpverify::layout
