#pragma once

#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"

/// Which rank of the world is who: attention TP is innermost, so a CP group is strided by tp.
namespace cpverify::layout {

using CpRank = Id<struct CpRankTag>;  ///< Rank within a context-parallel group: 0 .. cp-1.
using TpRank = Id<struct TpRankTag>;  ///< Rank within a tensor-parallel group: 0 .. tp-1.

/// The ranks that a strategy runs on: strategies that do not split prefills have one CP rank.
[[nodiscard]] TopologySpec world_of(const TopologySpec& topology, StrategyKind strategy) noexcept;

[[nodiscard]] RankId world_rank(const TopologySpec& topology, CpRank cp_rank,
                                TpRank tp_rank) noexcept;

[[nodiscard]] CpRank cp_rank_of(const TopologySpec& topology, RankId rank) noexcept;
[[nodiscard]] TpRank tp_rank_of(const TopologySpec& topology, RankId rank) noexcept;

/// World ranks of the CP group of a tp rank, in the order of their CP ranks. [cp]
[[nodiscard]] std::vector<RankId> cp_group(const TopologySpec& topology, TpRank tp_rank);

/// World ranks of every decode group, `dcp` consecutive TP ranks of one CP rank each, in the order
/// of their shards.
[[nodiscard]] std::vector<std::vector<RankId>> dcp_groups(const TopologySpec& topology);

/// Query heads of a tp rank. num_heads_q must be a multiple of tp.
[[nodiscard]] HeadRange query_heads(const ModelSpec& model, const TopologySpec& topology,
                                    TpRank tp_rank);

/// KV heads that the query heads of a tp rank read. Of tp and num_heads_kv one must divide the
/// other: with fewer heads than ranks, neighbouring ranks hold copies of one head.
[[nodiscard]] HeadRange kv_heads(const ModelSpec& model, const TopologySpec& topology,
                                 TpRank tp_rank);

}  // namespace cpverify::layout
