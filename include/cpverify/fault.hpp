#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace cpverify {

enum class FaultKind : std::uint8_t {
  out_of_bounds_read,
  out_of_bounds_write,
  use_after_free,
  misaligned,
  uninitialised_read,
  race,                 ///< Two accesses in no order, at least one a write; detail names the first.
  nan_produced,         ///< Stored, and made by an instruction of operands that are none.
  infinity_produced,    ///< Stored, positive, and made of finite operands.
  nan_read,             ///< Stored, and computed from a NaN that no kernel has made.
  deadlock,             ///< Warps wait for a barrier that will not complete, or the budget ran out.
  barrier_divergence,   ///< A part of a warp is at a barrier, the rest of it elsewhere.
  barrier_mismatch,     ///< Warps name different counts for a barrier, or one stays half full.
  invalid_barrier,      ///< No barrier of this number, or none for so many threads.
  warp_divergence,      ///< Lanes that a `.sync` instruction needs do not execute it.
  invalid_membermask,   ///< A lane executes a `.sync` instruction whose membermask lacks it.
  illegal_instruction,  ///< `trap`, or an operation that the machine cannot do with these operands.
  mbarrier_misuse,      ///< An mbarrier object that is not one, or counts what it cannot.
  unfinished_copy,      ///< A CTA ended before a bulk copy of its shared memory was waited for.
};

/// What synccheck is for: barriers and warp-wide instructions that do not meet.
[[nodiscard]] constexpr bool is_of_synchronisation(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::deadlock:
    case FaultKind::barrier_divergence:
    case FaultKind::barrier_mismatch:
    case FaultKind::invalid_barrier:
    case FaultKind::warp_divergence:
    case FaultKind::invalid_membermask:
    case FaultKind::mbarrier_misuse:
    case FaultKind::unfinished_copy:
      return true;
    default:
      return false;
  }
}

/// `host`: pinned memory that an asynchronous copy reads or writes; `registers`: a value that never
/// was in memory.
enum class MemorySpace : std::uint8_t { global, shared, local, param, host, registers };

/// One defect that the machine saw, in the machine's terms; the runner adds the plan's.
struct Fault {
  FaultKind kind = FaultKind::illegal_instruction;
  MemorySpace space = MemorySpace::global;
  std::uint32_t device = 0;
  std::string kernel;       ///< Entry name, or the API call for copies and collectives.
  std::string source_file;  ///< From .loc; empty when the PTX has no line table.
  std::uint32_t source_line = 0;
  std::uint32_t ptx_line = 0;
  std::array<std::uint32_t, 3> cta{};
  std::array<std::uint32_t, 3> thread{};
  std::uint64_t address = 0;  ///< Of the first bad byte; within shared, local or host, the offset.
  std::uint32_t size_bytes = 0;  ///< Of the access.
  /// Nearest allocation at or below the address, 0 when none (global only).
  std::uint64_t allocation = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t count = 1;  ///< How many lanes and times this instruction did it in this launch.
  std::string detail;
};

}  // namespace cpverify
