#include "sim/check/race_report.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/proxy_map.hpp"
#include "sim/check/race_detail.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/check/source_text.hpp"
#include "sim/isa/opcode.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kWarpLanes = 32;

}  // namespace

RaceMap::Touch touch_of(const ExecutionPoint& point, const AccessEvent& event,
                        const RaceTimes& times, const RaceOrder& order) noexcept {
  RaceMap::Touch touch;
  touch.kind = event.kind;
  touch.lanes = event.lanes;
  touch.size_bytes = event.size_bytes;
  touch.addresses = event.addresses;
  touch.base = event.base;
  const bool is_async =
      event.kind == AccessKind::async_read || event.kind == AccessKind::async_write;
  touch.label = RaceLabel::make(times.now, point, is_strong(event), is_async);
  touch.order = &order;
  touch.times = &times;
  return touch;
}

/// cp.async writes as ordinary stores do, as far as bulk copies are concerned.
bool RaceReport::is_ordinary_write(const ExecutionPoint& point,
                                   const AccessEvent& event) const noexcept {
  if (event.kind == AccessKind::write || event.kind == AccessKind::atomic) return true;
  return event.kind == AccessKind::async_write &&
         code_->insns[point.instruction].op == Op::cp_async;
}

void RaceReport::check_proxy(const ExecutionPoint& point, const AccessEvent& event,
                             std::uint32_t time, ProxyMap& proxies) {
  for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint64_t offset = event.addresses[lane];
    if (is_ordinary_write(point, event)) {
      RaceLabel label = RaceLabel::make(time, point, false, false);
      label.packed += lane;
      proxies.write(offset, event.size_bytes, label);
      continue;
    }
    if (event.kind != AccessKind::async_read) continue;
    const RaceLabel* const writer = proxies.find(offset, event.size_bytes);
    if (writer == nullptr) continue;
    const std::string detail = fmt::format(
        "this asynchronous read may miss the write by {}{}: no fence.proxy.async is between them",
        thread_name(point, writer->warp(), writer->lane()),
        source_of(*code_, writer->instruction()));
    ViolationEvent violation = race_event(event, 1U << lane);
    violation.address = offset;
    violation.detail = detail;
    faults_->add(point, violation);
  }
}

void RaceReport::check_lanes(const ExecutionPoint& point, const AccessEvent& event) {
  std::array<std::uint64_t, kWarpLanes> keys{};  // Address and, in the low bits, lane.
  std::size_t count = 0;
  bool is_ascending = true;
  for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    keys[count] = event.addresses[lane] * kWarpLanes + lane;
    is_ascending =
        is_ascending && (count == 0 || keys[count - 1] / kWarpLanes < event.addresses[lane]);
    ++count;
  }
  // Aligned accesses of one size overlap only when they are equal.
  if (is_ascending) return;
  std::sort(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(count));
  for (std::size_t i = 1; i < count; ++i) {
    const auto lane = static_cast<std::uint32_t>(keys[i] % kWarpLanes);
    const auto other = static_cast<std::uint32_t>(keys[i - 1] % kWarpLanes);
    if (keys[i] / kWarpLanes != keys[i - 1] / kWarpLanes || is_strong(event)) continue;
    if (is_equal_store(event, lane, other)) {
      ++same_value_stores_;
      continue;
    }
    ViolationEvent violation = race_event(event, 1U << lane);
    violation.address = event.addresses[lane];
    const std::string detail =
        fmt::format("two lanes of one instruction store different values: {} and {}",
                    thread_name(point, point.warp, other), thread_name(point, point.warp, lane));
    violation.detail = detail;
    faults_->add(point, violation);
  }
}

void RaceReport::add(const ExecutionPoint& point, const AccessEvent& event,
                     const RaceMap::Conflict& conflict, const std::array<std::uint32_t, 3>& cta) {
  std::uint32_t lanes = conflict.lanes;
  if (conflict.is_earlier_write && event.kind == AccessKind::write) {
    for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
      if (is_same_value(event, lane)) lanes &= ~(1U << lane);
    }
    same_value_stores_ += static_cast<std::uint64_t>(std::popcount(conflict.lanes & ~lanes));
  }
  if (lanes == 0) return;
  const RaceLabel& earlier = conflict.earlier;
  const std::uint32_t instruction = earlier.instruction();
  const bool is_known = instruction < code_->forms.size();
  const AccessKind kind = is_known
                              ? kind_of(code_->forms[instruction].op, conflict.is_earlier_write)
                              : (conflict.is_earlier_write ? AccessKind::write : AccessKind::read);
  const std::string detail = fmt::format(
      "this {} and the {} by cta ({},{},{}) {}{} are in no order", verb(event.kind), verb(kind),
      cta[0], cta[1], cta[2], thread_name(point, earlier.warp(), earlier.lane()),
      source_text(*code_, instruction));
  ViolationEvent violation = race_event(event, lanes);
  violation.address = event.base + conflict.offset;
  violation.detail = detail;
  faults_->add(point, violation);
}

}  // namespace cpverify::sim
