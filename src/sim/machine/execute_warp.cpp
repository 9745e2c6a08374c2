#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// Instructions in which lanes of a warp see each other, and the ones that only order memory.
namespace cpverify::sim {
namespace {

/// The lanes that take part in a .sync instruction. Every executing lane must be named, and every
/// named lane that has not exited must execute it: otherwise the hardware waits or does anything.
/// 0 when that is so, after reporting it.
std::uint32_t members(Warp& warp, const Insn* insn, std::uint32_t mask, std::uint32_t mask_row) {
  const auto* const named = warp.row<const std::uint32_t>(mask_row);
  if (mask == kFullMask) {
    std::uint32_t all = kFullMask;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) all &= named[lane];
    if (all == kFullMask) return mask;
  }
  std::uint32_t bad = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t bit = 1U << lane;
    const bool is_wrong = (named[lane] & bit) == 0 || (named[lane] & ~mask & ~warp.exited) != 0;
    bad |= is_wrong ? bit : 0U;
  }
  bad &= mask;
  if (bad == 0) return mask;
  const auto first = static_cast<std::size_t>(std::countr_zero(bad));
  const std::string detail =
      fmt::format("membermask {:#010x} is not the executing lanes {:#010x}", named[first], mask);
  ViolationEvent event;
  event.kind = FaultKind::illegal_instruction;
  event.lanes = bad;
  event.detail = detail;
  report(warp, insn, event);
  return 0;
}

/// Source lane of each lane, and whether it is in range. Source: PTX ISA, shfl.sync, pseudocode.
template <Shuffle mode>
struct ShuffleSource {
  static std::uint32_t lane(std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
    if constexpr (mode == Shuffle::up) return lane - b;
    if constexpr (mode == Shuffle::down) return lane + b;
    if constexpr (mode == Shuffle::bfly) return lane ^ b;
    const std::uint32_t segment = (c >> 8) & 31U;
    return (lane & segment) | (b & ~segment & 31U);
  }
  static bool is_in_range(std::uint32_t lane, std::uint32_t source, std::uint32_t c) {
    const std::uint32_t segment = (c >> 8) & 31U;
    const std::uint32_t limit = (lane & segment) | (c & 31U & ~segment);
    // Signed: `up` may fall below lane 0.
    const auto from = static_cast<std::int32_t>(source);
    return mode == Shuffle::up ? from >= static_cast<std::int32_t>(limit)
                               : from <= static_cast<std::int32_t>(limit);
  }
};

template <Shuffle mode>
const Insn* shuffle(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (members(warp, insn, mask, insn->r[5]) == 0) return nullptr;
  auto* const target = warp.row<std::uint32_t>(insn->r[0]);
  const auto* const b = warp.row<const std::uint32_t>(insn->r[3]);
  const auto* const c = warp.row<const std::uint32_t>(insn->r[4]);
  alignas(64) std::array<std::uint32_t, kLanes> values{};
  std::memcpy(values.data(), warp.row<const std::uint32_t>(insn->r[2]), sizeof values);
  // What a lane that does not execute holds is undefined: all ones, as for unwritten memory.
  if (mask != kFullMask) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      values[lane] = ((mask >> lane) & 1U) != 0 ? values[lane] : kFullMask;
    }
  }
  alignas(64) std::array<std::uint32_t, kLanes> sources{};
  std::uint32_t in_range = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t source = ShuffleSource<mode>::lane(lane, b[lane] & 31U, c[lane]);
    const bool is_valid = ShuffleSource<mode>::is_in_range(lane, source, c[lane]);
    in_range |= static_cast<std::uint32_t>(is_valid) << lane;
    sources[lane] = (is_valid ? source : lane) & 31U;
  }
  if (mask == kFullMask) {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) target[lane] = values[sources[lane]];
  } else {
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      target[lane] = values[sources[lane]];
    }
  }
  write_predicate(warp.predicate(insn->r[1]), in_range, mask);
  return insn + 1;
}

template <Vote mode>
const Insn* vote(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t lanes = members(warp, insn, mask, insn->r[2]);
  if (lanes == 0) return nullptr;
  const std::uint32_t yes = warp.predicate(insn->r[1]) & lanes;
  bool result = false;
  if constexpr (mode == Vote::all) result = yes == lanes;
  if constexpr (mode == Vote::any) result = yes != 0;
  if constexpr (mode == Vote::uni) result = yes == lanes || yes == 0;
  write_predicate(warp.predicate(insn->r[0]), result ? kFullMask : 0U, mask);
  return insn + 1;
}

void write_uniform(Warp& warp, std::uint32_t row, std::uint32_t value, std::uint32_t mask) {
  auto* const target = warp.row<std::uint32_t>(row);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    target[lane] = ((mask >> lane) & 1U) != 0 ? value : target[lane];
  }
}

const Insn* ballot(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t lanes = members(warp, insn, mask, insn->r[2]);
  if (lanes == 0) return nullptr;
  write_uniform(warp, insn->r[0], warp.predicate(insn->r[1]) & lanes, mask);
  return insn + 1;
}

/// Time that passes with each look at it: it is the same in every run, grows, and lets a kernel
/// that waits for it go on.
template <class T>
const Insn* read_clock(Warp& warp, const Insn* insn, std::uint32_t mask) {
  constexpr std::uint64_t kTicksPerRead = 64;
  warp.cta->clock += kTicksPerRead;
  const auto value = static_cast<T>(warp.cta->clock >> insn->immediate);
  T* const target = warp.row<T>(insn->r[0]);
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    target[lane] = ((mask >> lane) & 1U) != 0 ? value : target[lane];
  }
  return insn + 1;
}

const Insn* active_mask(Warp& warp, const Insn* insn, std::uint32_t mask) {
  write_uniform(warp, insn->r[0], mask, mask);
  return insn + 1;
}

/// Lanes among `lanes` that hold the same value as `lane`.
template <class T>
std::uint32_t equal_lanes(const T* values, std::uint32_t lane, std::uint32_t lanes) {
  std::uint32_t same = 0;
  for (std::uint32_t other = 0; other < kLanes; ++other) {
    same |= static_cast<std::uint32_t>(values[other] == values[lane]) << other;
  }
  return same & lanes;
}

template <class T>
const Insn* match_any(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t lanes = members(warp, insn, mask, insn->r[2]);
  if (lanes == 0) return nullptr;
  std::array<T, kLanes> values{};
  std::memcpy(values.data(), warp.row<const T>(insn->r[1]), sizeof values);
  auto* const target = warp.row<std::uint32_t>(insn->r[0]);
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    target[lane] = equal_lanes(values.data(), lane, lanes);
  }
  return insn + 1;
}

template <class T>
const Insn* match_all(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t lanes = members(warp, insn, mask, insn->r[3]);
  if (lanes == 0) return nullptr;
  const auto first = static_cast<std::uint32_t>(std::countr_zero(lanes));
  const bool is_equal = equal_lanes(warp.row<const T>(insn->r[2]), first, lanes) == lanes;
  write_uniform(warp, insn->r[0], is_equal ? lanes : 0U, mask);
  write_predicate(warp.predicate(insn->r[1]), is_equal ? kFullMask : 0U, mask);
  return insn + 1;
}

template <class T>
T reduce_pair(Reduce op, T a, T b) {
  switch (op) {
    case Reduce::add:
      return static_cast<T>(static_cast<std::uint32_t>(a) + static_cast<std::uint32_t>(b));
    case Reduce::min:
      return std::min(a, b);
    case Reduce::max:
      return std::max(a, b);
    case Reduce::and_op:
      return static_cast<T>(a & b);
    case Reduce::or_op:
      return static_cast<T>(a | b);
    default:
      return static_cast<T>(a ^ b);
  }
}

template <class T, Reduce op>
const Insn* reduce(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t lanes = members(warp, insn, mask, insn->r[2]);
  if (lanes == 0) return nullptr;
  const auto* const values = warp.row<const T>(insn->r[1]);
  T result = values[std::countr_zero(lanes)];
  for (std::uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
    result = reduce_pair(op, result, values[std::countr_zero(left)]);
  }
  write_uniform(warp, insn->r[0], static_cast<std::uint32_t>(result), mask);
  return insn + 1;
}

const Insn* warp_barrier(Warp& warp, const Insn* insn, std::uint32_t mask) {
  return members(warp, insn, mask, insn->r[0]) == 0 ? nullptr : insn + 1;
}

/// Accesses happen one after the other, so there is nothing to order and nothing to prefetch.
const Insn* do_nothing(Warp& /*warp*/, const Insn* insn, std::uint32_t /*mask*/) {
  return insn + 1;
}

/// Orders nothing that is not in order already; racecheck wants to know.
const Insn* fence(Warp& warp, const Insn* insn, std::uint32_t /*mask*/) {
  const LaunchState& launch = *warp.cta->launch;
  if (launch.access_observers.empty()) return insn + 1;
  const ExecutionPoint point = execution_point(warp, insn);
  for (Observer* const observer : launch.access_observers) observer->on_fence(point);
  return insn + 1;
}

/// Like a fence, between ordinary and asynchronous accesses.
const Insn* proxy_fence(Warp& warp, const Insn* insn, std::uint32_t /*mask*/) {
  const LaunchState& launch = *warp.cta->launch;
  if (launch.access_observers.empty()) return insn + 1;
  const ExecutionPoint point = execution_point(warp, insn);
  for (Observer* const observer : launch.access_observers) observer->on_proxy_fence(point);
  return insn + 1;
}

/// The lowest of the members: which one is left open, but must always be the same.
const Insn* elect(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t all = members(warp, insn, mask, insn->r[2]);
  if (all == 0) return nullptr;
  const auto leader = static_cast<std::uint32_t>(std::countr_zero(all));
  write_uniform(warp, insn->r[0], leader, mask);
  write_predicate(warp.predicate(insn->r[1]), 1U << leader, mask);
  return insn + 1;
}

template <class T>
Handler select_reduce(Reduce op) {
  switch (op) {
    case Reduce::add:
      return &reduce<T, Reduce::add>;
    case Reduce::min:
      return &reduce<T, Reduce::min>;
    case Reduce::max:
      return &reduce<T, Reduce::max>;
    default:
      return nullptr;
  }
}

}  // namespace

template <>
Handler select<Op::shfl>(const Form& form) {
  switch (form.modifiers.shuffle) {
    case Shuffle::up:
      return &shuffle<Shuffle::up>;
    case Shuffle::down:
      return &shuffle<Shuffle::down>;
    case Shuffle::bfly:
      return &shuffle<Shuffle::bfly>;
    case Shuffle::idx:
      return &shuffle<Shuffle::idx>;
  }
  return nullptr;
}
template <>
Handler select<Op::vote_pred>(const Form& form) {
  switch (form.modifiers.vote) {
    case Vote::all:
      return &vote<Vote::all>;
    case Vote::any:
      return &vote<Vote::any>;
    case Vote::uni:
      return &vote<Vote::uni>;
  }
  return nullptr;
}
template <>
Handler select<Op::vote_ballot>(const Form& /*form*/) {
  return &ballot;
}
template <>
Handler select<Op::match_any>(const Form& form) {
  return form.modifiers.type == Type::b32 ? &match_any<std::uint32_t> : &match_any<std::uint64_t>;
}
template <>
Handler select<Op::match_all>(const Form& form) {
  return form.modifiers.type == Type::b32 ? &match_all<std::uint32_t> : &match_all<std::uint64_t>;
}
template <>
Handler select<Op::activemask>(const Form& /*form*/) {
  return &active_mask;
}
template <>
Handler select<Op::read_clock>(const Form& form) {
  return form.modifiers.type == Type::u32 ? &read_clock<std::uint32_t> : &read_clock<std::uint64_t>;
}
template <>
Handler select<Op::redux>(const Form& form) {
  const Reduce op = form.modifiers.reduce;
  if (form.modifiers.type == Type::b32) {
    if (op == Reduce::and_op) return &reduce<std::uint32_t, Reduce::and_op>;
    if (op == Reduce::or_op) return &reduce<std::uint32_t, Reduce::or_op>;
    return op == Reduce::xor_op ? &reduce<std::uint32_t, Reduce::xor_op> : nullptr;
  }
  return form.modifiers.type == Type::s32 ? select_reduce<std::int32_t>(op)
                                          : select_reduce<std::uint32_t>(op);
}
template <>
Handler select<Op::bar_warp>(const Form& /*form*/) {
  return &warp_barrier;
}
template <>
Handler select<Op::membar>(const Form& form) {
  return form.modifiers.is_cta_scope ? &do_nothing : &fence;
}
template <>
Handler select<Op::fence>(const Form& form) {
  return form.modifiers.is_cta_scope ? &do_nothing : &fence;
}
/// A sleep of no length is one that the manual allows: it gives an upper bound only.
template <>
Handler select<Op::nanosleep>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::prefetch>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::fence_proxy>(const Form& /*form*/) {
  return &proxy_fence;
}
template <>
Handler select<Op::fence_proxy_alias>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::fence_mbarrier_init>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::elect>(const Form& /*form*/) {
  return &elect;
}
template <>
Handler select<Op::griddep_wait>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::griddep_launch>(const Form& /*form*/) {
  return &do_nothing;
}

}  // namespace cpverify::sim
