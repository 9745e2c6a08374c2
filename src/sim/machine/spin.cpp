#include "sim/machine/spin.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

bool is_equal(const StackEntry& left, const StackEntry& right) noexcept {
  return left.join == right.join && left.resume == right.resume && left.lanes == right.lanes;
}

/// Everything that decides what a warp does next, but for memory. A warp that reads the clock moves
/// it on, and so does not repeat its state.
struct WarpSnapshot {
  WarpSnapshot(const Warp& warp, std::uint32_t register_bytes)
      : next{warp.next},
        active{warp.active},
        exited{warp.exited},
        clock{warp.cta->clock},
        stack{warp.stack},
        registers(warp.registers, warp.registers + register_bytes) {}

  [[nodiscard]] bool is_state_of(const Warp& warp) const noexcept {
    return next == warp.next && active == warp.active && exited == warp.exited &&
           clock == warp.cta->clock &&
           std::equal(stack.begin(), stack.end(), warp.stack.begin(), warp.stack.end(), is_equal) &&
           std::memcmp(registers.data(), warp.registers, registers.size()) == 0;
  }

  const Insn* next;
  std::uint32_t active;
  std::uint32_t exited;
  std::uint64_t clock;
  std::vector<StackEntry> stack;
  std::vector<std::byte> registers;
};

bool is_load(Op op) noexcept {
  return op == Op::ld || op == Op::ldu || op == Op::ldmatrix_x1 || op == Op::ldmatrix_x2 ||
         op == Op::ldmatrix_x4;
}

/// A wait for an mbarrier reads it. One that lets the machine complete a phase succeeds.
bool is_wait(Op op) noexcept {
  return op == Op::mbarrier_test || op == Op::mbarrier_test_parity || op == Op::mbarrier_try ||
         op == Op::mbarrier_try_parity;
}

/// Atomics do not count as writes: one that changes memory returns another value the next time, so
/// that the registers do not repeat.
bool is_atomic(Op op) noexcept {
  return op == Op::atom || op == Op::atom_cas || op == Op::atom_half;
}

/// What others see: memory, and what bar.arrive adds to a barrier.
bool is_write(Op op) noexcept {
  if (op == Op::bar_arrive || op == Op::barrier_arrive) return true;
  return info(op).effect == Effect::memory && !is_load(op) && !is_atomic(op) && !is_wait(op);
}

}  // namespace

Spin run_probe(Warp& warp, std::uint32_t register_bytes) {
  const LaunchState& launch = *warp.cta->launch;
  WarpSnapshot start{warp, register_bytes};
  bool has_polled = false;
  bool has_returned = false;
  for (std::uint64_t i = 0; i < kProbeInstructions; ++i) {
    const Insn& insn = *warp.next;
    const bool is_executed = (warp.active & (warp.predicate(insn.guard) ^ insn.guard_flip)) != 0;
    const bool is_strong =
        launch.code->forms[static_cast<std::size_t>(warp.next - warp.code)].modifiers.order !=
        MemoryOrder::weak;
    has_polled =
        has_polled || is_atomic(insn.op) || is_wait(insn.op) || (is_strong && is_load(insn.op));
    if (is_executed && is_write(insn.op)) {
      run_warp(warp, kProbeInstructions - i);
      return Spin::none;
    }
    run_warp(warp, 1);
    if (launch.is_aborted || warp.state != WarpState::ready) return Spin::none;
    const bool has_failed = std::exchange(warp.has_polled, false);
    if (warp.next == start.next) {
      if (start.is_state_of(warp)) return Spin::endless;
      has_returned = true;
    }
    // Whatever came before it, the loop around a wait that fails begins here.
    if (has_failed) start = WarpSnapshot{warp, register_bytes};
  }
  return has_returned && has_polled ? Spin::polling : Spin::none;
}

}  // namespace cpverify::sim
