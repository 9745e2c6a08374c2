#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "sim/machine/checked_bytes.hpp"

namespace cpverify::sim {

/// Owner of pinned host memory, which every device reaches.
inline constexpr std::uint32_t kHostOwner = 0xffffffff;

/// One allocation of device memory. Stays known after it is freed, so that late uses are told
/// apart.
struct Allocation {
  std::uint64_t base = 0;
  std::uint64_t size_bytes = 0;
  std::uint32_t device = 0;
  bool is_live = true;
  CheckedBytes bytes;  ///< Empty once freed.
};

/// What is wrong with an access of the host. `address` is that of the first bad byte.
struct MemoryProblem {
  FaultKind kind = FaultKind::out_of_bounds_read;
  std::uint64_t address = 0;
  std::uint64_t allocation = 0;        ///< Base of the nearest allocation at or below; 0 for none.
  std::uint64_t allocation_bytes = 0;  ///< Its size.
  std::uint64_t count = 1;             ///< Uninitialised reads: how many bytes.
};

/// Global memory of all devices: one address space, a red zone of at least 1 MiB and the
/// allocation's size behind each allocation, addresses never reused, fresh bytes 0xFF and
/// unwritten.
class GlobalMemory {
 public:
  /// Base address, a multiple of 256. `size_bytes` must not be 0.
  [[nodiscard]] std::uint64_t allocate(std::uint32_t device, std::uint64_t size_bytes);
  /// False when `address` is not the base of a live allocation.
  [[nodiscard]] bool free(std::uint64_t address);
  /// Bytes of the live allocations of a device.
  [[nodiscard]] std::uint64_t live_bytes(std::uint32_t device) const noexcept;

  /// Lets kernels of `device` access the memory of `owner`, or no longer. False when they could, or
  /// could not, before.
  [[nodiscard]] bool set_reachable(std::uint32_t device, std::uint32_t owner, bool is_reachable);
  [[nodiscard]] bool is_reachable(std::uint32_t device, std::uint32_t owner) const noexcept {
    return device == owner || owner == kHostOwner || peers_.contains({device, owner});
  }

  /// The four below do nothing and say what is wrong when a byte is out of bounds or freed. read()
  /// delivers unwritten bytes as 0xFF, and reports them; copy() carries "unwritten" along.
  [[nodiscard]] std::optional<MemoryProblem> read(std::span<std::byte> target,
                                                  std::uint64_t source) const;
  [[nodiscard]] std::optional<MemoryProblem> write(std::uint64_t target,
                                                   std::span<const std::byte> source);
  /// Overlapping ranges are copied as by memmove.
  [[nodiscard]] std::optional<MemoryProblem> copy(std::uint64_t target, std::uint64_t source,
                                                  std::uint64_t size_bytes);
  /// Repeats `pattern` until `size_bytes` are written.
  [[nodiscard]] std::optional<MemoryProblem> fill(std::uint64_t target,
                                                  std::span<const std::byte> pattern,
                                                  std::uint64_t size_bytes);

  /// The allocation (live or freed) that holds `address`; null when none does.
  [[nodiscard]] Allocation* find(std::uint64_t address) noexcept;
  [[nodiscard]] const Allocation* find(std::uint64_t address) const noexcept;
  /// The allocation (live or freed) with the greatest base at or below `address`; null for none.
  [[nodiscard]] const Allocation* nearest(std::uint64_t address) const noexcept;

 private:
  [[nodiscard]] std::optional<MemoryProblem> check(std::uint64_t address, std::uint64_t size_bytes,
                                                   FaultKind outside) const noexcept;

  std::vector<std::unique_ptr<Allocation>> allocations_;     ///< By base, ascending.
  std::set<std::pair<std::uint32_t, std::uint32_t>> peers_;  ///< Device and owner that it reaches.
  std::uint64_t next_base_ = 0x7000'0000'0000;
};

}  // namespace cpverify::sim
