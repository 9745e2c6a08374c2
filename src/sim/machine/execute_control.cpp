#include <bit>
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

const Insn* trap(Warp& warp, const Insn* insn, std::uint32_t mask) {
  report_text(warp, insn, FaultKind::illegal_instruction, mask, "trap");
  return nullptr;
}

const Insn* barrier(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
  const std::uint32_t barrier_id = warp.row<const std::uint32_t>(insn->r[0])[lane];
  const std::uint32_t threads = warp.row<const std::uint32_t>(insn->r[1])[lane];
  if (barrier_id >= kBarrierCount) {
    report_text(warp, insn, FaultKind::illegal_instruction, mask,
                fmt::format("barrier {} of {}", barrier_id, kBarrierCount));
    return nullptr;
  }
  if (threads != kFullMask && (threads == 0 || threads % kLanes != 0)) {
    report_text(warp, insn, FaultKind::illegal_instruction, mask,
                fmt::format("barrier for {} threads, not a multiple of 32", threads));
    return nullptr;
  }
  const std::uint32_t missing = ~warp.exited & ~mask;
  if (missing != 0) {
    report_text(
        warp, insn, FaultKind::deadlock, mask,
        fmt::format("barrier {} in divergent code: lanes {:#010x} of the warp are elsewhere",
                    barrier_id, missing));
    return nullptr;
  }
  warp.state = WarpState::at_barrier;
  warp.barrier = barrier_id;
  warp.barrier_threads = threads;
  warp.next = insn + 1;
  return nullptr;
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
Handler select<Op::trap>(const Form& /*form*/) {
  return &trap;
}
template <>
Handler select<Op::bar_sync>(const Form& /*form*/) {
  return &barrier;
}
template <>
Handler select<Op::barrier_sync>(const Form& /*form*/) {
  return &barrier;
}

}  // namespace cpverify::sim
