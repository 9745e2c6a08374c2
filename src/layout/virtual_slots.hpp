#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

/// A cache divided by the numbers of its slots: an allocator that knows of no ranks hands out
/// virtual slots, and virtual slot v is slot v div N of rank v mod N. Source: SGLang's decode
/// context parallelism; docs/strategies/dcp_virtual.md.
namespace cpverify::layout {

/// Slot in the rank's own pool where it stores the token at `position`; nothing when another rank
/// does.
[[nodiscard]] std::optional<std::int64_t> stored_slot(DcpOwner owner, const KvShard& shard,
                                                      std::int64_t position,
                                                      std::int64_t virtual_slot) noexcept;

/// A request's tokens in the virtual pool. Not owned; outlives the object.
struct VirtualRequest {
  const StepRow* row = nullptr;
  std::int64_t block_tokens = 1;

  [[nodiscard]] std::int64_t slot(std::int64_t position) const;
};

/// Pages of `page_tokens` slots with the rank's tokens among the first `length` when owners go by
/// position: local page k begins with the token at position index + k * page_tokens * count.
[[nodiscard]] std::vector<std::int64_t> local_pages(const VirtualRequest& request,
                                                    const KvShard& shard, std::int64_t page_tokens,
                                                    std::int64_t length);

/// The rank's slots with tokens among the first `length` when owners go by slot, in the order of
/// positions.
[[nodiscard]] std::vector<std::int64_t> local_slots(const VirtualRequest& request,
                                                    const KvShard& shard, std::int64_t length);

}  // namespace cpverify::layout
