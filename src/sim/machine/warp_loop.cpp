#include "sim/machine/warp_loop.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/fragments.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

namespace cpverify::sim {
namespace {

void account(Warp& warp, const Insn* insn, std::uint64_t executed, std::uint64_t threads) {
  LaunchState& launch = *warp.cta->launch;
  if (insn != nullptr) warp.next = insn;
  launch.budget_left -= executed;
  launch.warp_instructions += executed;
  launch.thread_instructions += threads;
  if (launch.budget_left > 0 || launch.is_aborted || insn == nullptr) return;
  ViolationEvent event;
  event.kind = FaultKind::deadlock;
  event.lanes = warp.active;
  event.detail = "the launch has used up its instruction budget";
  report(warp, insn, event);
}

/// Where the order of warps may matter.
bool is_point(const Insn& insn) {
  if (insn.space == Space::local || insn.space == Space::param) return false;
  const Effect effect = info(insn.op).effect;
  return effect == Effect::memory || effect == Effect::barrier || insn.op == Op::membar ||
         insn.op == Op::fence || insn.op == Op::bar_warp || insn.op == Op::bar_arrive ||
         insn.op == Op::barrier_arrive;
}

/// A warp's next stretch, and what is left of it.
struct Stretch {
  std::uint64_t instructions = 0;
  std::uint32_t points = 0;
};

/// A warp that is followed, or has a wgmma in flight whose registers must be watched.
bool is_watched(const Warp& warp) {
  return is_followed(warp) || !warp.in_flight.empty();
}

const Insn* step(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask == 0) return insn + 1;
  return warp.cta->launch->is_independent ? step_fragment(warp, insn, mask)
                                          : insn->handler(warp, insn, mask);
}

/// One instruction of a watched warp. Null when it has to stop.
const Insn* step_watched(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask != 0 && !warp.in_flight.empty() && is_reaching_into_flight(warp, insn, mask)) {
    return nullptr;
  }
  return is_followed(warp) ? step_followed(warp, insn, mask) : step(warp, insn, mask);
}

/// What a loop of the machine does beside executing.
struct LoopKind {
  bool is_counting = false;
  bool has_points = false;
  bool is_watching = false;
  bool is_independent = false;
};

/// Kind i of sixteen.
constexpr LoopKind loop_kind(std::size_t i) {
  return {(i & 1U) != 0, (i & 2U) != 0, (i & 4U) != 0, (i & 8U) != 0};
}

/// What has been executed.
struct Tally {
  std::uint64_t warps = 0;
  std::uint64_t threads = 0;
};

/// Executes up to `count` instructions that lead to each other, for all active lanes: nothing but
/// the handlers is left to do per instruction. Null when the warp stops.
template <bool is_counting>
const Insn* run_straight(Warp& warp, const Insn* insn, std::uint64_t count, Tally& tally) {
  const Insn* const first = insn;
  const Insn* const end = insn + count;
  const std::uint32_t mask = warp.active;
  const Insn* next = insn;
  do {
    next = insn->handler(warp, insn, mask);
    ++insn;
  } while (next == insn && insn != end);
  const auto lanes = static_cast<std::uint64_t>(std::popcount(mask));
  tally.warps += static_cast<std::uint64_t>(insn - first);
  tally.threads += lanes * static_cast<std::uint64_t>(insn - first);
  if constexpr (is_counting) {
    std::vector<std::uint64_t>& run_lanes = warp.cta->launch->run_lanes;
    run_lanes[static_cast<std::size_t>(first - warp.code)] += lanes;
    run_lanes[static_cast<std::size_t>(insn - warp.code)] -= lanes;
  }
  return next;
}

/// The loop of the machine, compiled for each kind: most launches do not count, most schedules do
/// not stop at points, most warps are not watched and most keep their lanes together. True when the
/// stretch goes on in another kind of loop.
template <std::size_t kind>
bool execute(Warp& warp, Stretch& stretch) {
  constexpr LoopKind kKind = loop_kind(kind);
  LaunchState& launch = *warp.cta->launch;
  const std::uint64_t limit = std::min(stretch.instructions, launch.budget_left);
  Tally tally;
  bool has_changed = false;
  const Insn* insn = warp.next;
  while (insn != nullptr && tally.warps < limit) {
    if constexpr (kKind.is_watching) {
      has_changed = !is_watched(warp);
      if (has_changed) break;
    }
    if constexpr (kKind.has_points) {
      if (is_point(*insn)) {
        if (stretch.points == 0) break;
        --stretch.points;
      }
    }
    if constexpr (!kKind.is_watching && !kKind.has_points && !kKind.is_independent) {
      const std::uint64_t run = launch.straight[static_cast<std::size_t>(insn - warp.code)];
      if (run != 0) {
        const std::uint64_t count = std::min(run, limit - tally.warps);
        insn = run_straight<kKind.is_counting>(warp, insn, count, tally);
        continue;
      }
    }
    if constexpr (kKind.is_independent) {
      if (!arrive_fragment(warp, insn)) {
        insn = nullptr;
        break;
      }
    }
    ++tally.warps;
    const std::uint32_t mask = warp.active & (warp.predicate(insn->guard) ^ insn->guard_flip);
    const auto lanes = static_cast<std::uint64_t>(std::popcount(mask));
    tally.threads += lanes;
    if constexpr (kKind.is_counting) {
      InstructionCount& count = launch.counts[static_cast<std::size_t>(insn - warp.code)];
      count.executed += lanes;
      count.skipped += static_cast<std::uint64_t>(std::popcount(warp.active & ~mask));
    }
    if constexpr (kKind.is_watching) {
      insn = step_watched(warp, insn, mask);
    } else if constexpr (kKind.is_independent) {
      insn = step(warp, insn, mask);
    } else {
      insn = mask != 0 ? insn->handler(warp, insn, mask) : insn + 1;
    }
  }
  account(warp, insn, tally.warps, tally.threads);
  stretch.instructions -= tally.warps;
  return has_changed;
}

using Loop = bool (*)(Warp&, Stretch&);

template <std::size_t... kinds>
constexpr std::array<Loop, sizeof...(kinds)> make_loops(std::index_sequence<kinds...> /*all*/) {
  return {&execute<kinds>...};
}

constexpr auto kLoops = make_loops(std::make_index_sequence<16>{});

bool execute(Warp& warp, Stretch& stretch, bool has_points) {
  const LaunchState& launch = *warp.cta->launch;
  const std::size_t kind = (launch.counts.empty() ? 0U : 1U) | (has_points ? 2U : 0U) |
                           (is_watched(warp) ? 4U : 0U) | (launch.is_independent ? 8U : 0U);
  return kLoops[kind](warp, stretch);
}

/// A load that was refused (see begin_access) has been counted, and is executed now.
bool execute_refused(Warp& warp) {
  const Insn* const insn = warp.next;
  const std::uint32_t mask = warp.active & (warp.predicate(insn->guard) ^ insn->guard_flip);
  const Insn* const next = step_followed(warp, insn, mask);
  if (next != nullptr) warp.next = next;
  return next != nullptr;
}

void run(Warp& warp, Stretch stretch, bool has_points) {
  bool goes_on = true;
  while (goes_on) {
    goes_on = execute(warp, stretch, has_points);
    if (warp.wants_undefined) goes_on = execute_refused(warp) && stretch.instructions > 0;
  }
}

}  // namespace

void run_warp(Warp& warp, std::uint64_t slice) {
  run(warp, {slice, 0}, false);
}

void run_warp_to_point(Warp& warp, std::uint64_t slice, std::uint32_t points) {
  run(warp, {slice, points}, true);
}

}  // namespace cpverify::sim
