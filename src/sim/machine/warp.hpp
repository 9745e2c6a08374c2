#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/isa/insn.hpp"
#include "sim/machine/async_copy.hpp"
#include "sim/machine/checked_bytes.hpp"

namespace cpverify::sim {

struct Cta;

inline constexpr std::uint32_t kLanes = 32;
inline constexpr std::uint32_t kFullMask = 0xffffffffU;

enum class WarpState : std::uint8_t {
  ready,
  at_barrier,
  at_cluster_barrier,
  at_warpgroup,  ///< Its instruction needs the other three warps of the warpgroup.
  done,          ///< All lanes have exited.
};

/// Lanes that wait: for the others to arrive at a join (resume is null), or to run from `resume`.
struct StackEntry {
  const Insn* join = nullptr;  ///< Null: they meet again at the exit only.
  const Insn* resume = nullptr;
  std::uint32_t lanes = 0;
};

/// 32 lanes in lockstep. Registers are rows of 32 lanes; `active` says which lanes execute.
struct Warp {
  std::byte* registers = nullptr;  ///< 64-byte aligned.
  const Insn* code = nullptr;
  const std::uint32_t* wide = nullptr;  ///< Operands of instructions with more than six.
  std::uint32_t active = 0;
  std::uint32_t exited = 0;  ///< Lanes beyond the CTA's threads count as exited.
  WarpState state = WarpState::ready;
  std::uint32_t index = 0;
  const Insn* next = nullptr;  ///< Where a ready or waiting warp goes on.
  std::vector<StackEntry> stack;
  std::uint32_t barrier = 0;          ///< While at_barrier: which.
  std::uint32_t barrier_threads = 0;  ///< And for how many threads; kFullMask for all.
  /// A wait for an mbarrier has just failed: others should run before it is tried again.
  bool has_polled = false;
  /// Offset of the mbarrier object whose wait failed last; kNoIndex when it has succeeded since.
  std::uint32_t awaited = kNoIndex;
  const Insn* awaited_at = nullptr;
  AsyncCopies async;
  /// Registers that wgmma owns until it has been waited for, a bit for each 64 bytes; may be short.
  std::vector<std::uint64_t> in_flight;
  std::uint32_t cluster_arrivals = 0;  ///< How often at the barrier of the cluster.
  std::uint32_t cluster_waits = 0;     ///< And how often it has waited since.
  std::uint32_t register_limit = 0;    ///< Of setmaxnreg, or .maxnreg; 0 when unknown.
  bool has_fenced_registers = false;   ///< Has executed wgmma.fence.
  CheckedBytes local;                  ///< Frame of lane 0, frame of lane 1, ...
  Cta* cta = nullptr;

  template <class T>
  [[nodiscard]] T* row(std::uint32_t offset) const noexcept {
    return static_cast<T*>(__builtin_assume_aligned(registers + offset, 64));
  }
  [[nodiscard]] std::uint32_t& predicate(std::uint32_t offset) const noexcept {
    return *reinterpret_cast<std::uint32_t*>(registers + offset);
  }
};

}  // namespace cpverify::sim
