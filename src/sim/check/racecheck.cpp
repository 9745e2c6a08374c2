#include "sim/check/racecheck.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/race_detail.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kWarpLanes = 32;

bool is_async(AccessKind kind) {
  return kind == AccessKind::async_read || kind == AccessKind::async_write;
}

}  // namespace

Racecheck::Racecheck(FaultTable& faults, const Code& code, std::uint32_t warp_count)
    : report_{faults, code},
      all_warps_{warp_count >= kWarpLanes ? ~0U : (1U << warp_count) - 1},
      last_maps_(code.insns.size()) {
  is_strong_.reserve(code.forms.size());
  for (const Form& form : code.forms) {
    is_strong_.push_back(form.modifiers.order != MemoryOrder::weak);
  }
  has_async_reads_ = std::any_of(code.insns.begin(), code.insns.end(),
                                 [](const Insn& insn) { return is_bulk(insn.op); });
}

void Racecheck::on_cta(const std::array<std::uint32_t, 3>& cta) noexcept {
  if (shared_ != nullptr) shared_->reset();
  if (proxies_ != nullptr) proxies_->reset();
  mbarriers_.clear();
  for (auto& [base, maps] : global_) {
    maps.warps.reset();
    maps.ctas.absorb();
  }
  warp_order_.begin_cta();
  cta_order_.begin_cta(cta);
}

/// Later touches of the same bytes need new labels.
void Racecheck::absorb_all() noexcept {
  if (shared_ != nullptr) shared_->absorb();
  for (auto& [base, maps] : global_) maps.warps.absorb();
}

void Racecheck::begin_warp(std::uint32_t warp) noexcept {
  if (warp == warp_order_.warp()) return;
  warp_order_.run(warp);
  absorb_all();
}

void Racecheck::on_ordered(std::uint32_t /*rank*/, std::uint32_t warps) noexcept {
  if (warps != all_warps_) {
    warp_order_.synchronise(warps);
    absorb_all();
    return;
  }
  if (proxies_ != nullptr) proxies_->synchronise();
  if (shared_ != nullptr) shared_->forget();
  for (auto& [base, maps] : global_) maps.warps.forget();
}

void Racecheck::on_fence(const ExecutionPoint& /*point*/) noexcept {
  cta_order_.fence();
}

void Racecheck::on_proxy_fence(const ExecutionPoint& point) noexcept {
  begin_warp(point.warp);
  if (proxies_ != nullptr) proxies_->fence(warp_order_);
}

void Racecheck::on_mbarrier(const ExecutionPoint& point, std::uint32_t offset,
                            MbarrierEvent event) noexcept {
  begin_warp(point.warp);
  MbarrierClocks& clocks = mbarriers_[offset];
  switch (event) {
    case MbarrierEvent::arrive:
      warp_order_.release(clocks.arrived);
      absorb_all();
      return;
    case MbarrierEvent::complete:
      for (std::size_t i = 0; i < WarpOrder::kWarps; ++i) {
        clocks.complete[i] = std::max(clocks.complete[i], clocks.arrived[i]);
      }
      clocks.arrived = {};
      return;
    case MbarrierEvent::wait:
      warp_order_.acquire(clocks.complete);
      return;
  }
}

Racecheck::Maps& Racecheck::maps_of(std::uint32_t instruction, std::uint64_t base,
                                    std::uint64_t object_bytes) {
  auto& [last_base, maps] = last_maps_[instruction];
  if (maps == nullptr || last_base != base) {
    maps = &global_.try_emplace(base, object_bytes).first->second;
    last_base = base;
  }
  return *maps;
}

/// Nothing happens twice when on_access() follows.
bool Racecheck::on_plain_access(const PlainAccessEvent& event) noexcept {
  const bool is_write = event.kind == AccessKind::write;
  // Lanes that store to one place are compared.
  if (is_strong_[event.instruction] || (is_write && event.is_uniform)) return false;
  begin_warp(event.warp);
  RaceMap::Touch touch;
  touch.kind = event.kind;
  touch.lanes = ~0U;
  touch.size_bytes = event.size_bytes;
  touch.label = RaceLabel::make_plain(warp_order_.time(), event.instruction, event.warp);
  touch.order = &warp_order_;
  if (event.space == MemorySpace::shared) {
    return shared_ != nullptr && !has_async_reads_ &&
           shared_->touch_plain(touch, event.is_uniform, event.offset);
  }
  Maps& maps = maps_of(event.instruction, event.base, event.object_bytes);
  if (!maps.warps.touch_plain(touch, event.is_uniform, event.offset)) return false;
  touch.label.time = cta_order_.time();
  touch.order = &cta_order_;
  return maps.ctas.touch_plain(touch, event.is_uniform, event.offset);
}

RaceMap::Touch Racecheck::touch_of(const ExecutionPoint& point,
                                   const AccessEvent& event) const noexcept {
  RaceMap::Touch touch;
  touch.kind = event.kind;
  touch.lanes = event.lanes;
  touch.size_bytes = event.size_bytes;
  touch.addresses = event.addresses;
  touch.base = event.base;
  touch.label = RaceLabel::make(warp_order_.time(), point, is_strong(event), is_async(event.kind));
  touch.order = &warp_order_;
  touch.is_pending = is_async(event.kind);
  return touch;
}

void Racecheck::on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  if (event.space != MemorySpace::shared && event.space != MemorySpace::global) return;
  begin_warp(point.warp);
  if (event.kind == AccessKind::write) report_.check_lanes(point, event);
  RaceMap::Touch touch = touch_of(point, event);
  if (event.space == MemorySpace::shared) {
    if (shared_ == nullptr) shared_ = std::make_unique<RaceMap>(event.object_bytes);
    shared_->touch(touch, conflicts_);
    if (!conflicts_.empty()) report(point, event, false);
    if (!has_async_reads_) return;
    if (proxies_ == nullptr) proxies_ = std::make_unique<ProxyMap>(event.object_bytes);
    report_.check_proxy(point, event, warp_order_.time(), *proxies_);
    return;
  }
  Maps& maps = maps_of(point.instruction, event.base, event.object_bytes);
  maps.warps.touch(touch, conflicts_);
  if (!conflicts_.empty()) report(point, event, false);
  const bool is_strong_between_ctas = is_strong(event) && !event.is_cta_scope;
  if (is_strong_between_ctas) {
    for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      cta_order_.synchronise(event.addresses[lane], event.kind, event.order);
    }
  }
  touch.label = RaceLabel::make(cta_order_.time(), point, is_strong_between_ctas, false);
  touch.order = &cta_order_;
  touch.is_pending = false;
  maps.ctas.touch(touch, conflicts_);
  if (!conflicts_.empty()) report(point, event, true);
}

void Racecheck::on_completed(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  begin_warp(point.warp);
  const RaceMap::Touch touch = touch_of(point, event);
  if (event.space == MemorySpace::shared) {
    if (shared_ != nullptr) shared_->complete(touch);
    return;
  }
  const auto maps = global_.find(event.base);
  if (maps != global_.end()) maps->second.warps.complete(touch);
}

void Racecheck::report(const ExecutionPoint& point, const AccessEvent& event,
                       bool is_between_ctas) {
  for (const RaceMap::Conflict& conflict : conflicts_) {
    report_.add(point, event, conflict,
                is_between_ctas ? cta_order_.cta_at(conflict.earlier.time) : point.cta);
  }
  conflicts_.clear();
}

}  // namespace cpverify::sim
