#include "sim/machine/fragments.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/exchange.hpp"
#include "sim/machine/places.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// For whom an instruction waits.
enum class Gather : std::uint8_t {
  nobody,
  warp,     ///< All lanes that have not exited, at the same instruction.
  members,  ///< Those that its membermask names.
};

constexpr Gather gather_of(const OpInfo& op) {
  const std::string_view syntax = op.syntax;
  if (op.effect == Effect::barrier || syntax.find(".sync.aligned") != std::string_view::npos ||
      op.name == "bar_arrive" || op.name == "barrier_arrive") {
    return Gather::warp;
  }
  return syntax.find(".sync") != std::string_view::npos ? Gather::members : Gather::nobody;
}

constexpr auto kGathers = [] {
  std::array<Gather, kOpCount> gathers{};
  for (std::size_t i = 0; i < kOpCount; ++i) gathers[i] = gather_of(kOps[i]);
  return gathers;
}();

constexpr bool has_every_membermask() {
  for (std::size_t i = 0; i < kOpCount; ++i) {
    if (kGathers[i] == Gather::members && membermask_operand(static_cast<Op>(i)) == kNoOperand) {
      return false;
    }
  }
  return true;
}
static_assert(has_every_membermask(), "a .sync instruction: say where its membermask is");

Gather gather(const Insn& insn) {
  return kGathers[static_cast<std::size_t>(insn.op)];
}

std::uint32_t lowest(std::uint32_t lanes) {
  return static_cast<std::uint32_t>(std::countr_zero(lanes));
}

void put(Warp& warp, const Fragment& fragment) {
  warp.fragments[lowest(fragment.lanes)] = fragment;
}

/// Lanes of `mask` whose membermask is that of the lowest of them.
std::uint32_t same_members(const Warp& warp, const Insn& insn, std::uint32_t mask) {
  const auto* const named = warp.row<const std::uint32_t>(insn.r[membermask_operand(insn.op)]);
  std::uint32_t same = 0;
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const std::uint32_t lane = lowest(left);
    if (named[lane] == named[lowest(mask)]) same |= 1U << lane;
  }
  return same;
}

const Insn* branch(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const Insn* const target = warp.code + insn->target;
  const std::uint32_t rest = warp.active & ~mask;
  if (rest == 0) return target;
  const bool is_rest_low = lowest(rest) < lowest(mask);
  if (is_rest_low == warp.cta->launch->prefers_high_lanes) {
    warp.active = mask;
    put(warp, {rest, insn + 1});
    return target;
  }
  warp.active = rest;
  put(warp, {mask, target});
  return insn + 1;
}

const Insn* exit_lanes(Warp& warp, const Insn* insn, std::uint32_t mask) {
  warp.exited |= mask;
  warp.active &= ~mask;
  if (warp.active != 0) return insn + 1;
  if (warp.exited == kFullMask) warp.state = WarpState::done;
  return nullptr;
}

/// Whether two waiting fragments meet. Equal handlers: equal suffixes.
bool do_meet(const Fragment& left, const Fragment& right) {
  if (gather(*left.next) == Gather::warp) return left.next == right.next;
  return left.members == right.members && left.next->op == right.next->op &&
         left.next->handler == right.next->handler;
}

/// Takes the fragments that have met with this one out of the table.
std::vector<Fragment> take_meeting(Warp& warp, const Fragment& first) {
  std::vector<Fragment> taken;
  for (Fragment& fragment : warp.fragments) {
    if (fragment.lanes == 0 || !fragment.is_waiting || !do_meet(first, fragment)) continue;
    taken.push_back(std::exchange(fragment, {}));
  }
  return taken;
}

std::uint32_t lanes_meeting(const Warp& warp, const Fragment& first) {
  std::uint32_t lanes = 0;
  for (const Fragment& fragment : warp.fragments) {
    if (fragment.lanes != 0 && fragment.is_waiting && do_meet(first, fragment)) {
      lanes |= fragment.lanes;
    }
  }
  return lanes;
}

/// Lanes at one instruction go on together, and execute it then. Others have executed it when they
/// go on, each behind its own.
void let_go_on(Warp& warp, const std::vector<Fragment>& meeting) {
  bool is_one_place = true;
  std::uint32_t lanes = 0;
  for (const Fragment& fragment : meeting) {
    is_one_place = is_one_place && fragment.next == meeting.front().next;
    lanes |= fragment.lanes;
  }
  if (is_one_place) {
    put(warp, {lanes, meeting.front().next});
    return;
  }
  exchange(warp, meeting);
  std::vector<InstructionCount>& counts = warp.cta->launch->counts;
  for (const Fragment& fragment : meeting) {
    put(warp, {fragment.lanes, fragment.next + 1});
    if (counts.empty()) continue;
    counts[static_cast<std::size_t>(fragment.next - warp.code)].executed +=
        static_cast<std::uint64_t>(std::popcount(fragment.lanes));
  }
}

/// Lanes that a fragment waits for.
std::uint32_t awaited(const Warp& warp, const Fragment& fragment) {
  return fragment.members & ~warp.exited & ~lanes_meeting(warp, fragment);
}

void report_stuck(Warp& warp) {
  const Fragment* worst = nullptr;
  for (const Fragment& fragment : warp.fragments) {
    if (fragment.lanes == 0) continue;
    const bool is_barrier = info(fragment.next->op).effect == Effect::barrier;
    if (worst == nullptr || (is_barrier && info(worst->next->op).effect != Effect::barrier)) {
      worst = &fragment;
    }
  }
  if (worst == nullptr) return;
  const std::string detail = "no lane of the warp can go on: " + describe_fragments(warp, "are");
  ViolationEvent event;
  event.kind = info(worst->next->op).effect == Effect::barrier ? FaultKind::barrier_divergence
                                                               : FaultKind::warp_divergence;
  event.lanes = worst->lanes;
  event.detail = detail;
  report(warp, worst->next, event);
}

}  // namespace

void start_fragments(Warp& warp) {
  warp.fragments.assign(kLanes, {});
  put(warp, {warp.active, warp.code});
}

void load_fragment(Warp& warp, std::uint32_t place) {
  const Fragment fragment = std::exchange(warp.fragments[place], {});
  warp.active = fragment.lanes;
  warp.next = fragment.next;
}

bool is_fragment_ready(const Warp& warp, std::uint32_t place) noexcept {
  const Fragment& fragment = warp.fragments[place];
  return warp.state == WarpState::ready && fragment.lanes != 0 && !fragment.is_waiting;
}

void store_fragment(Warp& warp) {
  if (warp.active != 0) put(warp, {warp.active, warp.next});
  if (warp.state != WarpState::ready) return;
  bool can_go_on = false;
  for (std::uint32_t place = 0; place < kLanes; ++place) {
    const Fragment fragment = warp.fragments[place];
    if (fragment.lanes == 0) continue;
    if (fragment.is_waiting && awaited(warp, fragment) == 0) {
      let_go_on(warp, take_meeting(warp, fragment));
      can_go_on = true;
    }
    can_go_on = can_go_on || !fragment.is_waiting;
  }
  if (!can_go_on) report_stuck(warp);
}

bool arrive_fragment(Warp& warp, const Insn* insn) {
  const Gather whom = gather(*insn);
  if (whom == Gather::nobody) return true;
  const std::uint32_t mask = warp.active & (warp.predicate(insn->guard) ^ insn->guard_flip);
  if (mask == 0) return true;
  std::uint32_t lanes = mask;
  std::uint32_t members = kFullMask;
  if (whom == Gather::members) {
    lanes = same_members(warp, *insn, mask);
    const std::size_t operand = membermask_operand(insn->op);
    members = warp.row<const std::uint32_t>(insn->r[operand])[lowest(mask)];
    // The handler reports it.
    if ((lanes & ~members) != 0) return true;
  }
  const std::uint32_t rest = warp.active & ~lanes;
  if (rest != 0) put(warp, {rest, insn});
  warp.active = lanes;
  if ((members & ~warp.exited) == lanes) return true;
  put(warp, {lanes, insn, true, members});
  warp.active = 0;
  return false;
}

bool is_fragment_control(Op op) noexcept {
  return op == Op::bra || op == Op::ret || op == Op::exit_thread || op == Op::join;
}

const Insn* step_fragment(Warp& warp, const Insn* insn, std::uint32_t mask) {
  switch (insn->op) {
    case Op::bra:
      return branch(warp, insn, mask);
    case Op::ret:
    case Op::exit_thread:
      return exit_lanes(warp, insn, mask);
    case Op::join:
      return insn + 1;
    default:
      return insn->handler(warp, insn, mask);
  }
}

std::string describe_fragments(const Warp& warp, const std::string& doing) {
  std::vector<std::string> parts;
  for (const Fragment& fragment : warp.fragments) {
    if (fragment.lanes == 0) continue;
    const bool is_one = std::has_single_bit(fragment.lanes);
    const std::string where = place(warp, fragment.next);
    if (fragment.is_waiting) {
      parts.push_back(fmt::format("{} {} for {} at {}", lane_names(fragment.lanes),
                                  is_one ? "waits" : "wait", lane_names(awaited(warp, fragment)),
                                  where));
    } else {
      parts.push_back(fmt::format("{} {} at {}", lane_names(fragment.lanes), doing, where));
    }
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace cpverify::sim
