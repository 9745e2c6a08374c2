#include "sim/machine/bulk_access.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/mbarrier_access.hpp"

namespace cpverify::sim {

bool find_range(const BulkLane& lane, const BulkRange& range, BulkCopy::Side& side,
                std::uint64_t& offset) {
  const std::uint32_t mask = 1U << lane.lane;
  Access access;
  // The first block says which object it is.
  const std::uint32_t block = std::min<std::uint32_t>(range.align_bytes, 16);
  if (!locate(*lane.warp, lane.insn, mask, {{range.row, 8, range.space, 0}, {range.kind, block}},
              access)) {
    return false;
  }
  offset = access.offsets[lane.lane];
  side.bytes = access.bytes;
  side.space = range.space == Space::shared ? MemorySpace::shared : MemorySpace::global;
  const auto address = lane.value<std::uint64_t>(range.row);
  side.base = range.space == Space::shared ? 0 : address - offset;
  const bool is_aligned = address % range.align_bytes == 0;
  if (is_aligned && range.size_bytes <= access.bytes->size() - offset) return true;
  ViolationEvent event;
  event.kind = !is_aligned                             ? FaultKind::misaligned
               : range.kind == AccessKind::async_write ? FaultKind::out_of_bounds_write
                                                       : FaultKind::out_of_bounds_read;
  event.space = side.space;
  event.lanes = mask;
  event.size_bytes = static_cast<std::uint32_t>(range.size_bytes);
  event.address = is_aligned ? side.base + side.bytes->size() : address;
  if (event.space == MemorySpace::global) {
    event.allocation = side.base;
    event.allocation_bytes = side.bytes->size();
  }
  report(*lane.warp, lane.insn, event);
  return false;
}

bool report_operands(const BulkLane& lane, const std::string& detail) {
  ViolationEvent event;
  event.kind = FaultKind::illegal_instruction;
  event.lanes = 1U << lane.lane;
  event.detail = detail;
  report(*lane.warp, lane.insn, event);
  return false;
}

bool find_counter(const BulkLane& lane, std::uint32_t row, BulkCopy& copy) {
  constexpr std::uint32_t kObjectBytes = 8;
  BulkCopy::Side side;
  std::uint64_t offset = 0;
  const BulkRange range{row, Space::shared, AccessKind::atomic, kObjectBytes, kObjectBytes};
  if (!find_range(lane, range, side, offset)) return false;
  copy.mbarrier = static_cast<std::uint32_t>(offset);
  return find_mbarrier({lane.warp, lane.insn, lane.lane, copy.mbarrier}) != nullptr;
}

}  // namespace cpverify::sim
