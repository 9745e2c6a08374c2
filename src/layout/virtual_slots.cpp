#include "layout/virtual_slots.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "support/check.hpp"

namespace cpverify::layout {

std::optional<std::int64_t> stored_slot(DcpOwner owner, const KvShard& shard, std::int64_t position,
                                        std::int64_t virtual_slot) noexcept {
  const std::int64_t number = owner == DcpOwner::position ? position : virtual_slot;
  if (number % shard.count != shard.index) return std::nullopt;
  return virtual_slot / shard.count;
}

std::int64_t VirtualRequest::slot(std::int64_t position) const {
  CPVERIFY_CHECK(row != nullptr);
  const std::int64_t block = row->block_table.at(static_cast<std::size_t>(position / block_tokens));
  return block * block_tokens + position % block_tokens;
}

std::vector<std::int64_t> local_pages(const VirtualRequest& request, const KvShard& shard,
                                      std::int64_t page_tokens, std::int64_t length) {
  CPVERIFY_CHECK(request.block_tokens == page_tokens * shard.count);
  std::vector<std::int64_t> pages;
  for (std::int64_t position = shard.index; position < length; position += request.block_tokens) {
    pages.push_back(request.slot(position) / shard.count / page_tokens);
  }
  return pages;
}

std::vector<std::int64_t> local_slots(const VirtualRequest& request, const KvShard& shard,
                                      std::int64_t length) {
  std::vector<std::int64_t> slots;
  for (std::int64_t position = 0; position < length; ++position) {
    const std::int64_t slot = request.slot(position);
    if (slot % shard.count == shard.index) slots.push_back(slot / shard.count);
  }
  return slots;
}

}  // namespace cpverify::layout
