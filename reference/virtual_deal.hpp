#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "reference/kv_deal.hpp"

namespace cpverify::reference {

/// Virtual slots by their definition: all slots of the pool that the allocator knows are dealt to
/// the ranks one by one, and each rank puts its own side by side. [num_blocks * block_tokens()]
[[nodiscard]] std::vector<ShardSlot> deal_virtual_slots(const Problem& problem);

/// Own slots, in the order of positions, of the tokens of a row's first `length` that the shard
/// stores; the scenario says whether positions or slots decide. `dealt` is all of the pool.
[[nodiscard]] std::vector<std::int64_t> stored_by_shard(const Problem& problem,
                                                        const std::vector<ShardSlot>& dealt,
                                                        const StepRow& row, std::int64_t length,
                                                        std::size_t shard);

}  // namespace cpverify::reference
