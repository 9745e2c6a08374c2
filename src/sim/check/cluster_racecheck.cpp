#include "sim/check/cluster_racecheck.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/cluster_order.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/proxy_map.hpp"
#include "sim/check/race_detail.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"

namespace cpverify::sim {
namespace {

/// Of a place in global memory; those in shared memory have the rank of its CTA.
constexpr std::uint32_t kGlobal = std::numeric_limits<std::uint32_t>::max();

}  // namespace

ClusterRacecheck::ClusterRacecheck(FaultTable& faults, const Code& code, const Shape& shape)
    : report_{faults, code},
      size_{shape.ctas},
      started_{shape.ctas},
      order_{shape.ctas, shape.warps},
      ctas_(shape.ctas),
      shared_(shape.ctas),
      has_async_reads_{std::any_of(code.insns.begin(), code.insns.end(),
                                   [](const Insn& insn) { return is_bulk(insn.op); })} {}

void ClusterRacecheck::on_cta(const std::array<std::uint32_t, 3>& cta) noexcept {
  if (started_ < size_) {
    ctas_[started_++] = cta;
    return;
  }
  started_ = 1;
  ctas_.front() = cta;
  for (Shared& shared : shared_) {
    if (shared.proxies != nullptr) shared.proxies->reset();
  }
  mbarriers_.clear();
  barrier_ = {};
  order_.begin_cluster();
  cluster_order_.begin_cta(cta);
}

void ClusterRacecheck::begin_warp(std::uint32_t rank, std::uint32_t warp) {
  if (!order_.run(rank, warp)) return;
  cluster_order_.run_cta(ctas_[rank]);
}

void ClusterRacecheck::on_ordered(std::uint32_t rank, std::uint32_t warps) noexcept {
  order_.synchronise(rank, warps);
}

void ClusterRacecheck::on_fence(const ExecutionPoint& point) noexcept {
  begin_warp(point.rank, point.warp);
  order_.fence();
  cluster_order_.fence();
}

void ClusterRacecheck::on_proxy_fence(const ExecutionPoint& point) noexcept {
  begin_warp(point.rank, point.warp);
  for (Shared& shared : shared_) {
    if (shared.proxies != nullptr) shared.proxies->fence(order_);
  }
}

void ClusterRacecheck::meet(BarrierClocks& clocks, MbarrierEvent event, MemoryOrder order) {
  switch (event) {
    case MbarrierEvent::arrive:
      if (order == MemoryOrder::relaxed) {
        order_.release_fenced(clocks.arrived);
        return;
      }
      order_.release(clocks.arrived);
      return;
    case MbarrierEvent::complete:
      clocks.complete = clocks.arrived;
      return;
    case MbarrierEvent::wait:
      order_.acquire(clocks.complete);
      return;
  }
}

void ClusterRacecheck::on_mbarrier(const ExecutionPoint& point, std::uint32_t offset,
                                   MbarrierEvent event) noexcept {
  begin_warp(point.rank, point.warp);
  meet(mbarriers_[{point.rank, offset}], event, MemoryOrder::release);
}

void ClusterRacecheck::on_cluster_barrier(const ClusterWarp& warp, MbarrierEvent event,
                                          MemoryOrder order) noexcept {
  begin_warp(warp.rank, warp.warp);
  meet(barrier_, event, order);
}

/// An access acquires before, and releases behind, what it does itself.
void ClusterRacecheck::acquire_at(const AccessEvent& event) {
  const bool is_global = event.space == MemorySpace::global;
  for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    const std::uint64_t address = event.addresses[lane];
    if (event.kind != AccessKind::write) {
      order_.acquire_at({is_global ? kGlobal : event.rank, address});
    }
    if (is_global) cluster_order_.synchronise(address, event.kind, event.order);
  }
}

void ClusterRacecheck::release_at(const AccessEvent& event) {
  if (event.kind == AccessKind::read) return;
  const std::uint32_t space = event.space == MemorySpace::global ? kGlobal : event.rank;
  for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    order_.release_at({space, event.addresses[lane]}, event.order);
  }
}

void ClusterRacecheck::access_shared(const ExecutionPoint& point, const AccessEvent& event,
                                     const RaceMap::Touch& touch) {
  Shared& shared = shared_[event.rank];
  if (shared.races == nullptr)
    shared.races = std::make_unique<RaceMap>(MemorySpace::shared, event.object_bytes);
  shared.races->touch(touch, conflicts_);
  if (!has_async_reads_) return;
  if (shared.proxies == nullptr) shared.proxies = std::make_unique<ProxyMap>(event.object_bytes);
  report_.check_proxy(point, event, order_.time(), *shared.proxies);
}

/// Within the cluster, then between clusters.
void ClusterRacecheck::access_global(const ExecutionPoint& point, const AccessEvent& event,
                                     RaceMap::Touch touch) {
  Maps& maps = global_.try_emplace(event.base, event.object_bytes).first->second;
  maps.warps.touch(touch, conflicts_);
  const std::size_t inside = conflicts_.size();
  touch.label =
      RaceLabel::make(cluster_order_.time(), point, is_strong(event) && !event.is_cta_scope, false);
  touch.order = &cluster_order_;
  const RaceTimes times = cluster_order_.times();
  touch.times = &times;
  maps.clusters.touch(touch, conflicts_);
  for (std::size_t i = inside; i < conflicts_.size(); ++i) {
    report_.add(point, event, conflicts_[i], cluster_order_.cta_at(conflicts_[i].earlier.time));
  }
  conflicts_.resize(inside);
}

void ClusterRacecheck::on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  if (event.space != MemorySpace::shared && event.space != MemorySpace::global) return;
  begin_warp(point.rank, point.warp);
  if (event.kind == AccessKind::write) report_.check_lanes(point, event);
  const bool is_synchronising = is_strong(event) && !event.is_cta_scope;
  if (is_synchronising) acquire_at(event);
  const RaceTimes times = order_.times();
  const RaceMap::Touch touch = touch_of(point, event, times, order_);
  if (event.space == MemorySpace::shared) {
    access_shared(point, event, touch);
  } else {
    access_global(point, event, touch);
  }
  for (const RaceMap::Conflict& conflict : conflicts_) {
    report_.add(point, event, conflict, ctas_[order_.rank_at(conflict.earlier.time)]);
  }
  conflicts_.clear();
  if (is_synchronising) release_at(event);
}

void ClusterRacecheck::on_completed(const ExecutionPoint& point,
                                    const AccessEvent& event) noexcept {
  begin_warp(point.rank, point.warp);
  const RaceTimes times = order_.times();
  const RaceMap::Touch touch = touch_of(point, event, times, order_);
  if (event.space == MemorySpace::shared) {
    if (shared_[event.rank].races != nullptr) shared_[event.rank].races->complete(touch);
    return;
  }
  const auto maps = global_.find(event.base);
  if (maps != global_.end()) maps->second.warps.complete(touch);
}

}  // namespace cpverify::sim
