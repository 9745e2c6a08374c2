#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/address_map.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// Clusters: addresses of other CTAs' shared memory, and the barrier of all of their threads.
namespace cpverify::sim {
namespace {

constexpr std::uint64_t kWindowBytes = kSharedWindow;

void refuse(Warp& warp, const Insn* insn, FaultKind kind, std::uint32_t lanes,
            std::string_view detail) {
  ViolationEvent event;
  event.kind = kind;
  event.space = MemorySpace::shared;
  event.lanes = lanes;
  event.detail = detail;
  report(warp, insn, event);
}

/// The address within shared::cluster; a generic one may lie elsewhere.
struct SharedAddress {
  bool is_shared = true;
  std::uint64_t address = 0;
};
template <bool is_generic>
SharedAddress shared_address(std::uint64_t address) {
  if (!is_generic) return {true, address};
  const bool is_shared = address >= kSharedWindow && address - kSharedWindow < kWindowBytes;
  return {is_shared, address - kSharedWindow};
}

/// d = the place in the CTA of rank b that a is in its own.
template <class T, bool is_generic>
const Insn* map_address(Warp& warp, const Insn* insn, std::uint32_t mask) {
  T* const target = warp.row<T>(insn->r[0]);
  const T* const source = warp.row<const T>(insn->r[1]);
  const auto* const ranks = warp.row<const std::uint32_t>(insn->r[2]);
  const std::size_t count = warp.cta->cluster->ctas.size();
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    const SharedAddress from = shared_address<is_generic>(source[lane]);
    if (!from.is_shared || ranks[lane] >= count) {
      const std::string detail =
          from.is_shared ? fmt::format("mapa to rank {} of a cluster of {}", ranks[lane], count)
                         : std::string{"mapa of an address that is not in shared memory"};
      refuse(warp, insn, FaultKind::illegal_instruction, 1U << lane, detail);
      return nullptr;
    }
    const std::uint64_t offset = find_place(*warp.cta, from.address).offset;
    target[lane] = static_cast<T>((ranks[lane] + 1ULL) * kClusterStride + offset +
                                  (is_generic ? kSharedWindow : 0));
  }
  return insn + 1;
}

/// d = the rank of the CTA whose shared memory a is in.
template <class T, bool is_generic>
const Insn* get_rank(Warp& warp, const Insn* insn, std::uint32_t mask) {
  auto* const target = warp.row<std::uint32_t>(insn->r[0]);
  const T* const source = warp.row<const T>(insn->r[1]);
  for (std::uint32_t left = mask; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    const SharedAddress from = shared_address<is_generic>(source[lane]);
    const ClusterPlace place = find_place(*warp.cta, from.address);
    if (!from.is_shared || place.rank >= warp.cta->cluster->ctas.size()) {
      refuse(warp, insn, FaultKind::illegal_instruction, 1U << lane,
             "getctarank of an address that is not in the shared memory of the cluster");
      return nullptr;
    }
    target[lane] = place.rank;
  }
  return insn + 1;
}

template <bool is_generic>
Handler choose_map(const Form& form) {
  return form.modifiers.type == Type::u32 ? &map_address<std::uint32_t, false>
                                          : &map_address<std::uint64_t, is_generic>;
}
template <bool is_generic>
Handler choose_rank(const Form& form) {
  return form.modifiers.type == Type::u32 ? &get_rank<std::uint32_t, false>
                                          : &get_rank<std::uint64_t, is_generic>;
}

bool is_in_shared(std::uint64_t address) {
  return address >= kSharedWindow && address - kSharedWindow < kWindowBytes;
}
bool is_in_local(std::uint64_t address) {
  return address >= kLocalWindow && address - kLocalWindow < kWindowBytes;
}
bool is_in_parameters(std::uint64_t address) {
  return address >= kParameterWindow && address - kParameterWindow < kWindowBytes;
}

/// isspacep. Constants lie in global memory here.
bool is_in_space(const Warp& warp, std::uint64_t address, Space space, bool is_cluster) {
  switch (space) {
    case Space::shared:
      return is_in_shared(address) &&
             (is_cluster || find_place(*warp.cta, address - kSharedWindow).rank == warp.cta->rank);
    case Space::local:
      return is_in_local(address);
    case Space::param:
      return is_in_parameters(address);
    case Space::global:
      return address < kSharedWindow;
    default:
      return false;
  }
}

template <Space space, bool is_cluster>
const Insn* test_space(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto* const source = warp.row<const std::uint64_t>(insn->r[1]);
  std::uint32_t bits = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    bits |= static_cast<std::uint32_t>(is_in_space(warp, source[lane], space, is_cluster)) << lane;
  }
  write_predicate(warp.predicate(insn->r[0]), bits, mask);
  return insn + 1;
}

bool is_whole_warp(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t missing = ~warp.exited & ~mask;
  if (missing == 0) return true;
  const std::string detail = fmt::format(
      "barrier.cluster in divergent code: lanes {:#010x} of the warp are elsewhere", missing);
  refuse(warp, insn, FaultKind::deadlock, mask, detail);
  return false;
}

const Insn* arrive(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  if (warp.cluster_arrivals != warp.cluster_waits) {
    refuse(warp, insn, FaultKind::illegal_instruction, mask,
           "barrier.cluster.arrive twice without a barrier.cluster.wait between");
    return nullptr;
  }
  ++warp.cluster_arrivals;
  const LaunchState& launch = *warp.cta->launch;
  if (!launch.access_observers.empty()) {
    const Form& form = launch.code->forms[static_cast<std::size_t>(insn - warp.code)];
    const bool is_relaxed = form.modifiers.order == MemoryOrder::relaxed;
    notify_cluster_barrier(warp, MbarrierEvent::arrive,
                           is_relaxed ? MemoryOrder::relaxed : MemoryOrder::release);
  }
  return insn + 1;
}

const Insn* wait(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  if (warp.cluster_arrivals == warp.cluster_waits) {
    refuse(warp, insn, FaultKind::illegal_instruction, mask,
           "barrier.cluster.wait without a barrier.cluster.arrive before it");
    return nullptr;
  }
  Cluster& cluster = *warp.cta->cluster;
  if (cluster.phase < warp.cluster_arrivals) complete_cluster_barrier(cluster);
  if (cluster.phase >= warp.cluster_arrivals) {
    ++warp.cluster_waits;
    notify_cluster_barrier(warp, MbarrierEvent::wait, MemoryOrder::acquire);
    return insn + 1;
  }
  warp.state = WarpState::at_cluster_barrier;
  warp.next = insn + 1;
  return nullptr;
}

}  // namespace

template <>
Handler select<Op::mapa>(const Form& form) {
  return choose_map<true>(form);
}
template <>
Handler select<Op::mapa_shared>(const Form& form) {
  return choose_map<false>(form);
}
template <>
Handler select<Op::getctarank>(const Form& form) {
  return choose_rank<true>(form);
}
template <>
Handler select<Op::getctarank_shared>(const Form& form) {
  return choose_rank<false>(form);
}
template <>
Handler select<Op::isspacep>(const Form& form) {
  const bool is_cluster = form.modifiers.is_cluster_space;
  switch (form.modifiers.space) {
    case Space::shared:
      return is_cluster ? &test_space<Space::shared, true> : &test_space<Space::shared, false>;
    case Space::local:
      return &test_space<Space::local, false>;
    case Space::param:
      return &test_space<Space::param, false>;
    case Space::global:
      return &test_space<Space::global, false>;
    case Space::constant:
      return &test_space<Space::constant, false>;
    default:
      return nullptr;
  }
}
template <>
Handler select<Op::cluster_arrive>(const Form& /*form*/) {
  return &arrive;
}
template <>
Handler select<Op::cluster_wait>(const Form& /*form*/) {
  return &wait;
}

}  // namespace cpverify::sim
