#include "layout/kv_shard.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "support/check.hpp"

namespace cpverify::layout {

std::uint32_t shard_of(const KvShard& shard, std::int64_t position) noexcept {
  return static_cast<std::uint32_t>(position / shard.interleave % shard.count);
}

std::optional<std::int64_t> local_slot(const KvShard& shard, std::int64_t block_tokens,
                                       std::int64_t slot) {
  if (shard.interleave == 1) {
    // Dealt out one by one, and then the blocks do not matter: they may be single slots.
    if (slot % shard.count != shard.index) return std::nullopt;
    return slot / shard.count;
  }
  CPVERIFY_CHECK(block_tokens % (std::int64_t{shard.count} * shard.interleave) == 0);
  const std::int64_t in_block = slot % block_tokens;
  if (shard_of(shard, in_block) != shard.index) return std::nullopt;
  const std::int64_t round = std::int64_t{shard.count} * shard.interleave;
  const std::int64_t local = in_block / round * shard.interleave + in_block % shard.interleave;
  return slot / block_tokens * (block_tokens / shard.count) + local;
}

std::int64_t local_length(const KvShard& shard, std::int64_t length) {
  CPVERIFY_CHECK(length >= 0);
  const std::int64_t interleave = shard.interleave;
  const std::int64_t round = shard.count * interleave;
  const std::int64_t rest = length % round - shard.index * interleave;
  return length / round * interleave + std::clamp<std::int64_t>(rest, 0, interleave);
}

std::uint32_t head_group_size(const TopologySpec& topology) {
  if (topology.kv_sharding != KvSharding::dcp_over_pcp) return topology.dcp;
  CPVERIFY_CHECK(topology.dcp % topology.cp == 0);
  return topology.dcp / topology.cp;
}

KvShard kv_shard_of(const TopologySpec& topology, const RankPlan& rank) {
  CPVERIFY_CHECK(topology.dcp > 0);
  const std::uint32_t dcp_rank = rank.tp_rank % topology.dcp;
  KvShard shard{topology.kv_shards(), dcp_rank, topology.kv_interleave};
  switch (topology.kv_sharding) {
    case KvSharding::dcp:
      break;
    case KvSharding::pcp_dcp:
      shard.index = rank.cp_rank * topology.dcp + dcp_rank;
      break;
    case KvSharding::dcp_over_pcp:
      shard.index = (rank.tp_rank * topology.cp + rank.cp_rank) % topology.dcp;
      break;
  }
  return shard;
}

}  // namespace cpverify::layout
