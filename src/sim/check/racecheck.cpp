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
#include "sim/check/race_report.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/syntax.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kWarpLanes = 32;

/// Whether an instruction may order some warps of a CTA, and not all.
bool may_order_some(const Code& code, const Insn& insn) {
  switch (insn.op) {
    case Op::bar_sync:
    case Op::barrier_sync:
    case Op::bar_red:
    case Op::bar_red_bool:
    case Op::barrier_red:
    case Op::barrier_red_bool:
      break;
    default:
      return insn.op == Op::bar_arrive || insn.op == Op::barrier_arrive || is_bulk(insn.op) ||
             info(insn.op).name.starts_with("mbarrier");
  }
  const bool is_reduction = insn.op != Op::bar_sync && insn.op != Op::barrier_sync;
  const std::uint32_t count = insn.r[is_reduction ? 2 : 1];
  const auto& constants = code.registers.constants();
  return std::none_of(constants.begin(), constants.end(), [&](const ConstantRow& row) {
    return row.offset == count && static_cast<std::uint32_t>(row.bits) == ~0U;
  });
}

bool has_barriers_of_some(const Code& code) {
  return std::any_of(code.insns.begin(), code.insns.end(),
                     [&](const Insn& insn) { return may_order_some(code, insn); });
}

}  // namespace

Racecheck::Racecheck(FaultTable& faults, const Code& code, std::uint32_t warp_count)
    : report_{faults, code},
      all_warps_{warp_count >= kWarpLanes ? ~0U : (1U << warp_count) - 1},
      warp_order_{has_barriers_of_some(code)},
      last_maps_(code.insns.size()),
      rows_of_(code.insns.size()) {
  is_strong_.reserve(code.forms.size());
  for (const Form& form : code.forms) {
    is_strong_.push_back(form.modifiers.order != MemoryOrder::weak);
  }
  has_async_reads_ = std::any_of(code.insns.begin(), code.insns.end(),
                                 [](const Insn& insn) { return is_bulk(insn.op); });
}

/// After whatever may change them.
void Racecheck::follow_orders() noexcept {
  warp_times_ = warp_order_.times();
  launch_times_ = launch_order_.times();
}

void Racecheck::on_cta(const std::array<std::uint32_t, 3>& cta) noexcept {
  launch_order_.begin_cta(cta);
  follow_orders();
  if (proxies_ != nullptr) proxies_->reset();
  mbarriers_.clear();
}

void Racecheck::on_ordered(std::uint32_t /*rank*/, std::uint32_t warps) noexcept {
  if (warps != all_warps_) {
    warp_order_.synchronise(warps);
    follow_orders();
    return;
  }
  if (proxies_ != nullptr) proxies_->synchronise();
  warp_order_.synchronise();
  follow_orders();
}

void Racecheck::on_fence(const ExecutionPoint& /*point*/) noexcept {
  launch_order_.fence();
  follow_orders();
}

void Racecheck::on_proxy_fence(const ExecutionPoint& point) noexcept {
  warp_order_.run(point.warp);
  if (proxies_ != nullptr) proxies_->fence(warp_order_);
}

void Racecheck::on_mbarrier(const ExecutionPoint& point, std::uint32_t offset,
                            MbarrierEvent event) noexcept {
  warp_order_.run(point.warp);
  MbarrierClocks& clocks = mbarriers_[offset];
  switch (event) {
    case MbarrierEvent::arrive:
      warp_order_.release(clocks.arrived);
      follow_orders();
      return;
    case MbarrierEvent::complete:
      for (std::size_t i = 0; i < WarpOrder::kWarps; ++i) {
        clocks.complete[i] = std::max(clocks.complete[i], clocks.arrived[i]);
      }
      clocks.arrived = {};
      return;
    case MbarrierEvent::wait:
      warp_order_.acquire(clocks.complete);
      follow_orders();
      return;
  }
}

RaceMap& Racecheck::map_of(std::uint32_t instruction, std::uint64_t base,
                           std::uint64_t object_bytes) {
  auto& [last_base, map] = last_maps_[instruction];
  if (map == nullptr || last_base != base) {
    map = &global_.try_emplace(base, MemorySpace::global, object_bytes).first->second;
    last_base = base;
  }
  return *map;
}

/// Nothing happens twice when on_access() follows.
bool Racecheck::on_plain_access(const PlainAccessEvent& event) noexcept {
  const bool is_write = event.kind == AccessKind::write;
  // Lanes that store to one place are compared.
  if (is_strong_[event.instruction] || (is_write && event.is_uniform)) return false;
  warp_order_.run(event.warp);
  const bool is_shared = event.space == MemorySpace::shared;
  if (is_shared && (shared_ == nullptr || has_async_reads_)) return false;
  RaceMap::Touch touch;
  touch.kind = event.kind;
  touch.lanes = ~0U;
  touch.size_bytes = event.size_bytes;
  touch.label = RaceLabel::make_plain(warp_times_.now, event.instruction, event.warp);
  if (is_shared) {
    touch.order = &warp_order_;
    touch.times = &warp_times_;
    return shared_->touch_plain(touch, event.is_uniform, event.offset);
  }
  touch.order = &launch_order_;
  touch.times = &launch_times_;
  return map_of(event.instruction, event.base, event.object_bytes)
      .touch_plain(touch, event.is_uniform, event.offset);
}

/// The warps of a CTA that multiply the same matrix read the same rows. When two have, a further
/// reader is of no interest: whoever writes there before the next barrier races with one of the
/// two.
bool Racecheck::have_two_read(const PlainRowsEvent& event) {
  std::uint32_t& index = rows_of_[event.instruction];
  if (index == 0) {
    index = static_cast<std::uint32_t>(rows_read_.size());
    rows_read_.emplace_back();
  }
  RowsRead& rows = rows_read_[index];
  if (rows.since != warp_times_.since || rows.offsets != event.offsets) {
    rows = {warp_times_.since, 0, event.offsets};
  }
  if (!warp_times_.is_partial && std::popcount(rows.warps) >= 2) return true;
  rows.warps |= 1U << event.warp;
  return false;
}

bool Racecheck::on_plain_rows(const PlainRowsEvent& event) noexcept {
  if (shared_ == nullptr || has_async_reads_ || is_strong_[event.instruction]) return false;
  if (have_two_read(event)) return true;
  warp_order_.run(event.warp);
  RaceMap::Touch touch;
  touch.lanes = ~0U;
  touch.size_bytes = event.size_bytes;
  touch.label = RaceLabel::make_plain(warp_times_.now, event.instruction, event.warp);
  touch.order = &warp_order_;
  touch.times = &warp_times_;
  return shared_->touch_rows(touch, event.offsets);
}

void Racecheck::on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  if (event.space != MemorySpace::shared && event.space != MemorySpace::global) return;
  warp_order_.run(point.warp);
  if (event.kind == AccessKind::write) report_.check_lanes(point, event);
  if (event.space == MemorySpace::shared) {
    if (shared_ == nullptr)
      shared_ = std::make_unique<RaceMap>(MemorySpace::shared, event.object_bytes);
    shared_->touch(touch_of(point, event, warp_times_, warp_order_), conflicts_);
    if (!conflicts_.empty()) report(point, event);
    if (!has_async_reads_) return;
    if (proxies_ == nullptr) proxies_ = std::make_unique<ProxyMap>(event.object_bytes);
    report_.check_proxy(point, event, warp_order_.time(), *proxies_);
    return;
  }
  if (is_strong(event) && !event.is_cta_scope) {
    for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      launch_order_.synchronise(event.addresses[lane], event.kind, event.order);
    }
    follow_orders();
  }
  RaceMap::Touch touch = touch_of(point, event, launch_times_, launch_order_);
  if (event.is_cta_scope) touch.label.set_cta_scope();
  map_of(point.instruction, event.base, event.object_bytes).touch(touch, conflicts_);
  if (!conflicts_.empty()) report(point, event);
}

void Racecheck::on_completed(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  warp_order_.run(point.warp);
  const RaceMap::Touch touch = touch_of(point, event, warp_times_, warp_order_);
  if (event.space == MemorySpace::shared) {
    if (shared_ != nullptr) shared_->complete(touch);
    return;
  }
  const auto map = global_.find(event.base);
  if (map != global_.end()) map->second.complete(touch);
}

void Racecheck::report(const ExecutionPoint& point, const AccessEvent& event) {
  for (const RaceMap::Conflict& conflict : conflicts_) {
    const bool is_of_cta = conflict.earlier.time >= warp_times_.home;
    report_.add(point, event, conflict,
                is_of_cta ? point.cta : launch_order_.cta_of(conflict.earlier));
  }
  conflicts_.clear();
}

}  // namespace cpverify::sim
