#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/places.hpp"
#include "sim/machine/warp.hpp"

/// Branches, exits and barriers: the SIMT stack. Lanes that a branch separates run one side after
/// the other and meet again at the branch's immediate post-dominator.
namespace cpverify::sim {
namespace {

const Insn* branch(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const Insn* const target = warp.code + insn->target;
  const std::uint32_t rest = warp.active & ~mask;
  if (rest == 0) return target;
  const Insn* const join = insn->reconverge == kNoIndex ? nullptr : warp.code + insn->reconverge;
  // In a loop that lanes leave one by one, the first to leave has already noted the join.
  if (join != nullptr && (warp.stack.empty() || warp.stack.back().join != join)) {
    warp.stack.push_back({join, nullptr, warp.active});
  }
  if (target == join) {
    warp.active = rest;
    return insn + 1;
  }
  warp.active = mask;
  if (insn + 1 != join) warp.stack.push_back({join, insn + 1, rest});
  return target;
}

/// Lanes that have arrived wait here until no others are on their way.
const Insn* join(Warp& warp, const Insn* insn, std::uint32_t /*mask*/) {
  while (!warp.stack.empty() && warp.stack.back().join == insn) {
    const StackEntry entry = warp.stack.back();
    warp.stack.pop_back();
    const std::uint32_t lanes = entry.lanes & ~warp.exited;
    if (lanes == 0) continue;
    warp.active = lanes;
    if (entry.resume != nullptr) return entry.resume;
  }
  return insn + 1;
}

const Insn* exit_lanes(Warp& warp, const Insn* insn, std::uint32_t mask) {
  warp.exited |= mask;
  warp.active &= ~mask;
  if (warp.active != 0) return insn + 1;
  while (!warp.stack.empty()) {
    const StackEntry entry = warp.stack.back();
    warp.stack.pop_back();
    warp.active = entry.lanes & ~warp.exited;
    if (warp.active != 0) return entry.resume != nullptr ? entry.resume : entry.join;
  }
  warp.state = WarpState::done;
  return nullptr;
}

void report_text(Warp& warp, const Insn* insn, FaultKind kind, std::uint32_t lanes,
                 const std::string& detail) {
  ViolationEvent event;
  event.kind = kind;
  event.lanes = lanes;
  event.detail = detail;
  report(warp, insn, event);
}

/// The index of a brx.idx against how many labels there are; branches follow that go there.
const Insn* check_index(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto* const index = warp.row<const std::uint32_t>(insn->r[0]);
  const std::uint32_t count = warp.row<const std::uint32_t>(insn->r[1])[0];
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    if (index[lane] < count) continue;
    report_text(warp, insn, FaultKind::illegal_instruction, 1U << lane,
                fmt::format("brx.idx with index {}, and {} labels", index[lane], count));
    return nullptr;
  }
  return insn + 1;
}

const Insn* trap(Warp& warp, const Insn* insn, std::uint32_t mask) {
  report_text(warp, insn, FaultKind::illegal_instruction, mask, "trap");
  return nullptr;
}

/// Without a debugger a breakpoint ends the launch, as the hardware does.
const Insn* breakpoint(Warp& warp, const Insn* insn, std::uint32_t mask) {
  report_text(warp, insn, FaultKind::illegal_instruction, mask, "breakpoint");
  return nullptr;
}

/// What a barrier instruction names.
struct BarrierUse {
  std::uint32_t id = 0;
  std::uint32_t threads = kFullMask;  ///< All ones for all threads of the CTA.
};

/// Threads of the CTA, in whole warps.
std::uint32_t cta_threads(const Warp& warp) {
  return static_cast<std::uint32_t>(warp.cta->warps.size()) * kLanes;
}

/// What is wrong with the operands of a barrier instruction; empty when nothing is. Source: PTX
/// ISA, "bar, barrier": 16 barriers, thread counts in multiples of the warp size.
std::string describe_bad(const BarrierUse& use, const Warp& warp) {
  if (use.id >= kBarrierCount) {
    return fmt::format("barrier {}, a CTA has barriers 0 to {}", use.id, kBarrierCount - 1);
  }
  if (use.threads == kFullMask) return {};
  if (use.threads == 0 || use.threads % kLanes != 0) {
    return fmt::format("barrier {} for {} threads, not a multiple of {}", use.id, use.threads,
                       kLanes);
  }
  if (use.threads > cta_threads(warp)) {
    return fmt::format("barrier {} for {} threads, the CTA has {}", use.id, use.threads,
                       cta_threads(warp));
  }
  return {};
}

/// How many threads others wait for at the same barrier, when it is another number.
std::string describe_other_count(const BarrierUse& use, const Warp& warp) {
  const auto count = [&warp](std::uint32_t threads) {
    return threads == kFullMask ? cta_threads(warp) : threads;
  };
  const std::uint32_t own = count(use.threads);
  for (const Warp& other : warp.cta->warps) {
    if (other.state != WarpState::at_barrier || other.barrier != use.id) continue;
    if (count(other.barrier_threads) == own) continue;
    return fmt::format("barrier {} for {} threads, but warp {} waits there for {} at {}", use.id,
                       own, other.index, count(other.barrier_threads),
                       place(other, other.next - 1));
  }
  const BarrierArrivals& arrivals = warp.cta->arrivals[use.id];
  if (arrivals.threads == 0 || count(arrivals.expected) == own) return {};
  return fmt::format("barrier {} for {} threads, but a bar.arrive there was for {}", use.id, own,
                     count(arrivals.expected));
}

bool is_uniform(const std::uint32_t* row, std::uint32_t mask) {
  const std::uint32_t value = row[std::countr_zero(mask)];
  for (; mask != 0; mask &= mask - 1) {
    if (row[std::countr_zero(mask)] != value) return false;
  }
  return true;
}

/// The barrier that operands `first` and `first` + 1 name; false when it cannot be, after reporting
/// it.
bool find_barrier(Warp& warp, const Insn* insn, std::uint32_t mask, std::size_t first,
                  BarrierUse& use) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  const auto* const ids = warp.row<const std::uint32_t>(insn->r[first]);
  const auto* const threads = warp.row<const std::uint32_t>(insn->r[first + 1]);
  use = {ids[lane], threads[lane]};
  const std::uint32_t missing = ~warp.exited & ~mask;
  if (missing != 0) {
    report_text(warp, insn, FaultKind::barrier_divergence, mask,
                fmt::format("{} of the warp wait for all of it at barrier {} in divergent code; {}",
                            lane_names(mask), use.id, whereabouts(warp, missing)));
    return false;
  }
  std::string bad = describe_bad(use, warp);
  if (bad.empty() && !(is_uniform(ids, mask) && is_uniform(threads, mask))) {
    bad = "lanes of the warp name different barriers";
  }
  if (!bad.empty()) {
    report_text(warp, insn, FaultKind::invalid_barrier, mask, bad);
    return false;
  }
  const std::string other = describe_other_count(use, warp);
  if (other.empty()) return true;
  report_text(warp, insn, FaultKind::barrier_mismatch, mask, other);
  return false;
}

/// bar.sync, and with `first` = 1 bar.red, whose result is written when the barrier opens.
template <std::size_t first>
const Insn* barrier(Warp& warp, const Insn* insn, std::uint32_t mask) {
  BarrierUse use;
  if (!find_barrier(warp, insn, mask, first, use)) return nullptr;
  warp.state = WarpState::at_barrier;
  warp.barrier = use.id;
  warp.barrier_threads = use.threads;
  warp.next = insn + 1;
  return nullptr;
}

/// bar.arrive counts the warp and goes on.
const Insn* arrive(Warp& warp, const Insn* insn, std::uint32_t mask) {
  BarrierUse use;
  if (!find_barrier(warp, insn, mask, 0, use)) return nullptr;
  BarrierArrivals& arrivals = warp.cta->arrivals[use.id];
  arrivals.threads += kLanes;
  arrivals.warps |= 1U << warp.index;
  arrivals.expected = use.threads;
  arrivals.last = insn;
  return insn + 1;
}

}  // namespace

template <>
Handler select<Op::bra>(const Form& /*form*/) {
  return &branch;
}
template <>
Handler select<Op::join>(const Form& /*form*/) {
  return &join;
}
template <>
Handler select<Op::ret>(const Form& /*form*/) {
  return &exit_lanes;
}
template <>
Handler select<Op::exit_thread>(const Form& /*form*/) {
  return &exit_lanes;
}
template <>
Handler select<Op::brx>(const Form& /*form*/) {
  return &check_index;
}
template <>
Handler select<Op::trap>(const Form& /*form*/) {
  return &trap;
}
template <>
Handler select<Op::brkpt>(const Form& /*form*/) {
  return &breakpoint;
}
template <>
Handler select<Op::bar_sync>(const Form& /*form*/) {
  return &barrier<0>;
}
template <>
Handler select<Op::barrier_sync>(const Form& /*form*/) {
  return &barrier<0>;
}
template <>
Handler select<Op::bar_arrive>(const Form& /*form*/) {
  return &arrive;
}
template <>
Handler select<Op::barrier_arrive>(const Form& /*form*/) {
  return &arrive;
}
template <>
Handler select<Op::bar_red>(const Form& /*form*/) {
  return &barrier<1>;
}
template <>
Handler select<Op::bar_red_bool>(const Form& form) {
  return form.modifiers.bool_op == BoolOp::xor_op ? nullptr : &barrier<1>;
}
template <>
Handler select<Op::barrier_red>(const Form& /*form*/) {
  return &barrier<1>;
}
template <>
Handler select<Op::barrier_red_bool>(const Form& form) {
  return form.modifiers.bool_op == BoolOp::xor_op ? nullptr : &barrier<1>;
}

}  // namespace cpverify::sim
