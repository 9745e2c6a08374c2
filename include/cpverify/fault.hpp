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
  deadlock,             ///< Warps wait for a barrier that will not complete, or the budget ran out.
  illegal_instruction,  ///< `trap`, or an operation that the machine cannot do with these operands.
  mbarrier_misuse,      ///< An mbarrier object that is not one, or counts what it cannot.
  unfinished_copy,      ///< A CTA ended before a bulk copy of its shared memory was waited for.
};

enum class MemorySpace : std::uint8_t { global, shared, local, param, registers };

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
  std::uint64_t address = 0;     ///< Of the first bad byte; within shared or local, the offset.
  std::uint32_t size_bytes = 0;  ///< Of the access.
  /// Nearest allocation at or below the address, 0 when none (global only).
  std::uint64_t allocation = 0;
  std::uint64_t allocation_bytes = 0;
  std::uint64_t count = 1;  ///< How many lanes and times this instruction did it in this launch.
  std::string detail;
};

}  // namespace cpverify
