#include "sim/machine/cluster.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

ClusterPlace find_place(const Cta& cta, std::uint64_t address) noexcept {
  if (address < kClusterStride) return {cta.rank, address};
  return {static_cast<std::uint32_t>(address / kClusterStride) - 1, address % kClusterStride};
}

std::uint32_t rank_of(const Cta& cta, const CheckedBytes& shared) noexcept {
  if (&shared == &cta.shared) return cta.rank;
  const std::vector<Cta*>& ctas = cta.cluster->ctas;
  const auto found = std::find_if(ctas.begin(), ctas.end(),
                                  [&](const Cta* one) { return &one->shared == &shared; });
  return static_cast<std::uint32_t>(found - ctas.begin());
}

bool has_exited(const Cta& cta) noexcept {
  return std::all_of(cta.warps.begin(), cta.warps.end(),
                     [](const Warp& warp) { return warp.state == WarpState::done; });
}

bool may_leave_cta(const Warp& warp, const Insn* insn) noexcept {
  const Form& form = warp.cta->launch->code->forms[static_cast<std::size_t>(insn - warp.code)];
  if (form.modifiers.is_cluster_space) return true;
  if (form.modifiers.space != Space::generic) return false;
  constexpr std::array kAble{Op::ld,  Op::ldu,      Op::st,        Op::atom,
                             Op::red, Op::atom_cas, Op::atom_half, Op::red_half};
  return std::find(kAble.begin(), kAble.end(), form.op) != kAble.end();
}

void report_missing_cta(Warp& warp, const Insn* insn, ViolationEvent event, std::uint32_t rank) {
  const std::size_t count = warp.cta->cluster->ctas.size();
  std::string detail = fmt::format("shared memory of rank {} of a cluster of {}", rank, count);
  if (rank < count) {
    event.kind = FaultKind::use_after_free;
    detail = fmt::format("shared memory of rank {} of the cluster, which has exited", rank);
  }
  event.space = MemorySpace::shared;
  event.detail = detail;
  report(warp, insn, event);
}

namespace {

/// Warps that have exited arrive with it.
void notify_complete(const Cluster& cluster) {
  const Cta& first = *cluster.ctas.front();
  if (first.launch->access_observers.empty()) return;
  for (const Cta* const cta : cluster.ctas) {
    for (const Warp& warp : cta->warps) {
      if (warp.state != WarpState::done) continue;
      notify_cluster_barrier(warp, MbarrierEvent::arrive, MemoryOrder::release);
    }
  }
  notify_cluster_barrier(first.warps.front(), MbarrierEvent::complete, MemoryOrder::release);
}

}  // namespace

void complete_cluster_barrier(Cluster& cluster) noexcept {
  for (const Cta* const cta : cluster.ctas) {
    for (const Warp& warp : cta->warps) {
      const bool has_arrived = warp.cluster_arrivals > cluster.phase;
      if (warp.state != WarpState::done && !has_arrived) return;
    }
  }
  notify_complete(cluster);
  ++cluster.phase;
}

void notify_cluster_barrier(const Warp& warp, MbarrierEvent event, MemoryOrder order) {
  for (Observer* const observer : warp.cta->launch->access_observers) {
    observer->on_cluster_barrier({warp.cta->rank, warp.index}, event, order);
  }
}

bool open_cluster_barrier(Cluster& cluster) {
  const auto is_waiting = [](const Warp& warp) {
    return warp.state == WarpState::at_cluster_barrier;
  };
  bool has_waiting = false;
  for (const Cta* const cta : cluster.ctas) {
    has_waiting = has_waiting || std::any_of(cta->warps.begin(), cta->warps.end(), is_waiting);
  }
  if (!has_waiting) return false;
  complete_cluster_barrier(cluster);
  bool has_opened = false;
  for (Cta* const cta : cluster.ctas) {
    for (Warp& warp : cta->warps) {
      if (!is_waiting(warp) || warp.cluster_arrivals > cluster.phase) continue;
      warp.state = WarpState::ready;
      ++warp.cluster_waits;
      notify_cluster_barrier(warp, MbarrierEvent::wait, MemoryOrder::acquire);
      has_opened = true;
    }
  }
  return has_opened;
}

}  // namespace cpverify::sim
