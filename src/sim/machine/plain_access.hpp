#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/warp.hpp"

/// Most loads and stores are of all lanes, in one object, and either side by side or all at one
/// place. These need one range check and one look at the written bits, and no 32 offsets.
namespace cpverify::sim {

struct PlainAccess {
  /// Null when the access is of another shape, or anything may be wrong with it: begin_access()
  /// finds out what.
  CheckedBytes* bytes = nullptr;
  std::uint64_t offset = 0;  ///< Of lane 0.
  bool is_uniform = false;   ///< All lanes there; else lane i at offset + i * size_bytes.
};

template <class Address>
inline bool find_pattern(const Address* __restrict row, std::uint32_t size_bytes,
                         PlainAccess& access) {
  const Address first = row[0];
  Address not_dense = 0;
  Address not_uniform = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    not_dense |= row[lane] ^ static_cast<Address>(first + lane * size_bytes);
    not_uniform |= row[lane] ^ first;
  }
  access.is_uniform = not_uniform == 0;
  return access.is_uniform || not_dense == 0;
}

/// Bounds and alignment of an access whose first byte is `offset`.
inline bool is_inside(std::uint64_t offset, std::uint64_t extent, std::uint64_t size_bytes) {
  return offset <= size_bytes && extent <= size_bytes - offset;
}

/// Tells those who watch accesses. False when one of them wants to know more than this.
[[nodiscard]] bool notify_plain(const Warp& warp, const PlainAccessEvent& event) noexcept;
[[nodiscard]] bool notify_rows(const Warp& warp, const PlainRowsEvent& event) noexcept;

/// A load or store by all lanes with `address` as operand. Does all that begin_access() does: marks
/// what is stored as written. An unwritten byte that is read is not plain.
template <AccessKind kind, std::uint32_t size_bytes>
inline PlainAccess plain_access(Warp& warp, const Insn* insn, std::uint32_t row) {
  static_assert(kind == AccessKind::read || kind == AccessKind::write);
  LaunchState& launch = *warp.cta->launch;
  PlainAccess access;
  if (insn->space == Space::local || warp.trace != nullptr) return access;
  std::uint64_t address = 0;
  if (insn->address_bytes == 8) {
    const auto* const addresses = warp.row<const std::uint64_t>(row);
    if (!find_pattern(addresses, size_bytes, access)) return access;
    address = addresses[0] + static_cast<std::uint64_t>(insn->offset);
  } else {
    // Sums wrap at 32 bits, and then are outside of every object.
    const auto* const addresses = warp.row<const std::uint32_t>(row);
    if (!find_pattern(addresses, size_bytes, access)) return access;
    address = addresses[0] + static_cast<std::uint32_t>(insn->offset);
  }
  CheckedBytes* bytes = &warp.cta->shared;
  std::uint64_t base = 0;
  if (insn->space != Space::shared) {
    Allocation* const cached = launch.last_allocation[static_cast<std::size_t>(insn - warp.code)];
    if (cached == nullptr) return access;
    bytes = &cached->bytes;
    base = cached->base;
  }
  const std::uint64_t extent = access.is_uniform ? size_bytes : size_bytes * kLanes;
  access.offset = address - base;
  if (!is_inside(access.offset, extent, bytes->size()) || address % size_bytes != 0) return access;
  const bool is_all_written = bytes->is_all_written();
  if constexpr (kind == AccessKind::read) {
    if (!is_all_written && !bytes->is_written(access.offset, extent)) return access;
  }
  if (!launch.access_observers.empty()) {
    PlainAccessEvent event;
    event.kind = kind;
    event.space = insn->space == Space::shared ? MemorySpace::shared : MemorySpace::global;
    event.is_uniform = access.is_uniform;
    event.size_bytes = size_bytes;
    event.instruction = static_cast<std::uint32_t>(insn - warp.code);
    event.warp = warp.index;
    event.base = base;
    event.object_bytes = bytes->size();
    event.offset = access.offset;
    if (!notify_plain(warp, event)) return access;
  }
  if constexpr (kind == AccessKind::write) {
    if (!is_all_written) bytes->mark_written(access.offset, extent);
  }
  access.bytes = bytes;
  return access;
}

/// Rows of `size_bytes` bytes, one per lane, anywhere in the CTA's shared memory. Fills their
/// offsets and gives that memory when all are inside, aligned and written and nobody wants to know
/// more; null else: begin_access() finds out why.
template <std::uint32_t size_bytes>
inline const CheckedBytes* plain_rows(Warp& warp, const Insn* insn, std::uint32_t row,
                                      PlainRowsEvent& event) {
  const CheckedBytes& shared = warp.cta->shared;
  if (insn->space != Space::shared || insn->address_bytes != 4) return nullptr;
  if (warp.trace != nullptr) return nullptr;
  std::array<std::uint32_t, kLanes>& offsets = event.offsets;
  if (shared.size() < size_bytes) return nullptr;
  const auto* const addresses = warp.row<const std::uint32_t>(row);
  const auto last = static_cast<std::uint32_t>(shared.size() - size_bytes);
  std::uint32_t bits = 0;
  std::uint32_t greatest = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    offsets[lane] = addresses[lane] + static_cast<std::uint32_t>(insn->offset);
    bits |= offsets[lane];
    greatest = offsets[lane] > greatest ? offsets[lane] : greatest;
  }
  if (greatest > last || bits % size_bytes != 0) return nullptr;
  bool is_plain = true;
  if (!shared.is_all_written()) {
    for (const std::uint32_t offset : offsets) {
      is_plain = is_plain && shared.is_block_written(offset, size_bytes);
    }
  }
  if (is_plain && !warp.cta->launch->access_observers.empty()) {
    event.size_bytes = size_bytes;
    event.instruction = static_cast<std::uint32_t>(insn - warp.code);
    event.warp = warp.index;
    is_plain = notify_rows(warp, event);
  }
  return is_plain ? &shared : nullptr;
}

}  // namespace cpverify::sim
