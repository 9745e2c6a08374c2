#include "sim/check/lane_racecheck.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/lane_order.hpp"
#include "sim/check/race_detail.hpp"
#include "sim/check/race_order.hpp"
#include "sim/isa/code.hpp"

namespace cpverify::sim {
namespace {

/// No allocation begins at it.
constexpr std::uint64_t kSharedObject = ~std::uint64_t{0};

bool is_seen(const AccessEvent& event) {
  return event.space == MemorySpace::shared || event.space == MemorySpace::global;
}

bool is_read(AccessKind kind) {
  return kind == AccessKind::read || kind == AccessKind::async_read;
}

std::uint64_t object_of(const AccessEvent& event) {
  return event.space == MemorySpace::shared ? kSharedObject : event.base;
}

template <class Visit>
void for_each_lane(std::uint32_t lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<std::uint32_t>(std::countr_zero(lanes)));
}

}  // namespace

LaneRacecheck::LaneRacecheck(FaultTable& faults, const Code& code, std::uint32_t warp_count)
    : faults_{&faults}, code_{&code}, warp_count_{warp_count}, order_{warp_count} {}

void LaneRacecheck::on_cta(const std::array<std::uint32_t, 3>& /*cta*/) noexcept {
  objects_.clear();
  used_pages_ = 0;
  last_page_ = nullptr;
  order_.begin_cta();
}

void LaneRacecheck::on_ordered(std::uint32_t /*rank*/, std::uint32_t warps) noexcept {
  for (std::uint32_t warp = 0; warp < warp_count_; ++warp) {
    if ((warps >> warp & 1U) != 0) order_.synchronise(warp, ~0U);
  }
}

void LaneRacecheck::on_lanes_ordered(std::uint32_t warp, std::uint32_t lanes) noexcept {
  order_.synchronise(warp, lanes);
}

LaneRacecheck::Page* LaneRacecheck::new_page() {
  if (used_pages_ == storage_.size()) storage_.push_back(std::make_unique<Page>());
  Page* const page = storage_[used_pages_++].get();
  page->fill(Byte{{RaceLabel::kNobody, 0}, {RaceLabel::kNobody, 0}});
  return page;
}

LaneRacecheck::Byte& LaneRacecheck::byte_at(const AccessEvent& event, std::uint64_t address) {
  const std::uint64_t offset = address - event.base;
  const std::uint64_t object = object_of(event);
  const std::uint64_t index = offset / kPageBytes;
  if (last_page_ == nullptr || object != last_object_ || index != last_index_) {
    Page*& page = objects_[object][index];
    if (page == nullptr) page = new_page();
    last_object_ = object;
    last_index_ = index;
    last_page_ = page;
  }
  return (*last_page_)[offset % kPageBytes];
}

/// Of lanes that store what is there already, a race with another store is not reported.
void LaneRacecheck::find_conflicts(const ExecutionPoint& point, const AccessEvent& event,
                                   Conflict& conflict) {
  for_each_lane(event.lanes, [&](std::uint32_t lane) {
    const auto races = [&](const RaceLabel& label) {
      return label.warp() == point.warp && !(is_strong(event) && label.is_strong()) &&
             !order_.is_before(label, point.warp, lane);
    };
    const bool is_silent = event.kind == AccessKind::write && is_same_value(event, lane);
    for (std::uint64_t i = 0; i < event.size_bytes; ++i) {
      const Byte& byte = byte_at(event, event.addresses[lane] + i);
      const bool meets_write = races(byte.writer) && !is_silent;
      const bool meets_read = !is_read(event.kind) && races(byte.reader);
      if (!meets_write && !meets_read) continue;
      if (conflict.lanes == 0) {
        conflict.earlier = meets_write ? byte.writer : byte.reader;
        conflict.is_earlier_write = meets_write;
        conflict.address = event.addresses[lane] + i;
      }
      conflict.lanes |= 1U << lane;
      return;
    }
  });
}

/// A write forgets the reader, which is before it or has been reported. Of several readers the
/// first stays unless it is before the new one.
void LaneRacecheck::add_labels(const ExecutionPoint& point, const AccessEvent& event) {
  RaceLabel label = RaceLabel::make(order_.time(point.warp), point, is_strong(event), false);
  const std::uint32_t packed = label.packed;
  for_each_lane(event.lanes, [&](std::uint32_t lane) {
    label.packed = packed + lane;
    for (std::uint64_t i = 0; i < event.size_bytes; ++i) {
      Byte& byte = byte_at(event, event.addresses[lane] + i);
      if (!is_read(event.kind)) {
        byte.writer = label;
        byte.reader = {RaceLabel::kNobody, 0};
      } else if (byte.reader.warp() != point.warp ||
                 order_.is_before(byte.reader, point.warp, lane)) {
        byte.reader = label;
      }
    }
  });
}

void LaneRacecheck::order_strong(const ExecutionPoint& point, const AccessEvent& event) {
  const std::uint64_t space = event.space == MemorySpace::shared ? 1ULL << 63 : 0;
  for_each_lane(event.lanes, [&](std::uint32_t lane) {
    const std::uint64_t address = event.addresses[lane] | space;
    if (event.kind != AccessKind::write) order_.acquire(address, point.warp, lane);
    if (event.kind != AccessKind::read) order_.release(address, point.warp, lane);
  });
}

void LaneRacecheck::on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  if (!is_seen(event)) return;
  Conflict conflict;
  find_conflicts(point, event, conflict);
  if (conflict.lanes != 0) report(point, event, conflict);
  add_labels(point, event);
  if (is_strong(event)) order_strong(point, event);
}

/// From here on the copy is an access that the lane has made just now.
void LaneRacecheck::on_completed(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  if (!is_seen(event)) return;
  for_each_lane(event.lanes, [&](std::uint32_t lane) {
    for (std::uint64_t i = 0; i < event.size_bytes; ++i) {
      Byte& byte = byte_at(event, event.addresses[lane] + i);
      RaceLabel& label = is_read(event.kind) ? byte.reader : byte.writer;
      if (label.warp() == point.warp && label.lane() == lane) label.time = order_.time(point.warp);
    }
  });
}

void LaneRacecheck::report(const ExecutionPoint& point, const AccessEvent& event,
                           const Conflict& conflict) {
  const std::uint32_t instruction = conflict.earlier.instruction();
  const bool is_known = instruction < code_->forms.size();
  const AccessKind kind = is_known
                              ? kind_of(code_->forms[instruction].op, conflict.is_earlier_write)
                              : (conflict.is_earlier_write ? AccessKind::write : AccessKind::read);
  const std::string detail = fmt::format(
      "this {} and the {} by {} of the same warp{} are in no order: no bar.warp.sync (__syncwarp) "
      "of both is between them",
      verb(event.kind), verb(kind), thread_name(point, point.warp, conflict.earlier.lane()),
      source_of(*code_, instruction));
  ViolationEvent violation = race_event(event, conflict.lanes);
  violation.address = conflict.address;
  violation.detail = detail;
  faults_->add(point, violation);
}

}  // namespace cpverify::sim
