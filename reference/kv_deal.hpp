#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

namespace cpverify::reference {

/// Where a slot of an unsharded pool lies when the cache is divided.
struct ShardSlot {
  std::size_t shard = 0;
  std::int64_t slot = 0;  ///< In the shard's own pool.
};

/// Sharding by its definition: the tokens of every block are dealt to the shards in turn,
/// kv_interleave at a time, and each shard puts what it gets side by side into its own block of the
/// same number. [num_blocks * block_tokens()]
[[nodiscard]] std::vector<ShardSlot> deal_slots(const Problem& problem);

/// Tokens that each shard holds of a request's first `length`, by dealing them. [kv_shards]
[[nodiscard]] std::vector<std::int64_t> deal_length(const Problem& problem, std::int64_t length);

}  // namespace cpverify::reference
