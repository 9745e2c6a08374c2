#pragma once

#include <cstdint>
#include <optional>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"

/// How decode context parallelism divides a KV cache: the tokens of every block are dealt to the
/// shards in runs of `interleave` tokens. Source: vLLM and vllm-ascend, virtual blocks.
namespace cpverify::layout {

/// The shard that holds position `position` of a request. Requests begin with a block.
[[nodiscard]] std::uint32_t shard_of(const KvShard& shard, std::int64_t position) noexcept;

/// Slot in a shard's own pool of slot `slot` of an unsharded pool with blocks of `block_tokens`
/// tokens; nothing when another shard holds it. Unless it is 1, `interleave` divides
/// block_tokens / count.
[[nodiscard]] std::optional<std::int64_t> local_slot(const KvShard& shard,
                                                     std::int64_t block_tokens, std::int64_t slot);

/// How many of the first `length` tokens of a request the shard holds.
[[nodiscard]] std::int64_t local_length(const KvShard& shard, std::int64_t length);

/// Ranks of a decode group with heads of their own; the others of the group, if it spans prefill
/// ranks, have the same ones.
[[nodiscard]] std::uint32_t head_group_size(const TopologySpec& topology);

/// The shard of a rank in a strategy that shards the cache. Source: docs/plan.md, "Shards".
[[nodiscard]] KvShard kv_shard_of(const TopologySpec& topology, const RankPlan& rank);

}  // namespace cpverify::layout
