#include "sim/machine/async_work.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/async_copy.hpp"
#include "sim/machine/async_notice.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/mbarrier.hpp"
#include "sim/machine/mbarrier_access.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// Observers see accesses of at most 16 bytes, aligned to their size.
std::uint64_t part_bytes(std::uint64_t offset, std::uint64_t left) {
  const std::uint64_t fit = std::min<std::uint64_t>(std::bit_floor(left), 16);
  return offset == 0 ? fit : std::min(fit, offset & (~offset + 1));
}

/// Calls visit(point, event) for each part of the one or the other side of a copy.
template <class Visit>
void for_each_part(const Cta& cta, const BulkCopy& copy, bool is_target, Visit visit) {
  const BulkCopy::Side& side = is_target ? copy.target : copy.source;
  const ExecutionPoint point = execution_point(cta.warps[copy.warp], copy.insn);
  std::array<std::uint64_t, kLanes> addresses{};
  AccessEvent event;
  event.kind = is_target ? AccessKind::async_write : AccessKind::async_read;
  if (is_target && copy.combine != nullptr) event.kind = AccessKind::atomic;
  event.space = side.space;
  event.lanes = 1U << copy.lane;
  event.addresses = addresses;
  event.base = side.space == MemorySpace::global ? side.base : 0;
  if (side.bytes != nullptr) {
    if (side.space == MemorySpace::shared) event.rank = rank_of(cta, *side.bytes);
    event.object_bytes = side.bytes->size();
    event.memory = side.bytes->data();
  }
  for (const BulkCopy::Piece& piece : copy.pieces) {
    if (!is_target && piece.source == BulkCopy::Piece::kFill) continue;
    std::uint64_t at = is_target ? piece.target : piece.source;
    for (std::uint64_t left = piece.size_bytes; left > 0;) {
      const std::uint64_t bytes = part_bytes(at, left);
      event.size_bytes = static_cast<std::uint32_t>(bytes);
      addresses.fill(event.base + at);
      visit(point, event);
      at += bytes;
      left -= bytes;
    }
  }
}

void notify_issued(const Cta& cta, const BulkCopy& copy) {
  for (Observer* const observer : cta.launch->access_observers) {
    for (const bool is_target : {false, true}) {
      for_each_part(cta, copy, is_target,
                    [&](const ExecutionPoint& point, const AccessEvent& event) {
                      observer->on_access(point, event);
                    });
    }
  }
}

void notify_done(const Cta& cta, const BulkCopy& copy, bool is_target) {
  if (is_target && copy.combine != nullptr) return;
  for (Observer* const observer : cta.launch->access_observers) {
    for_each_part(cta, copy, is_target, [&](const ExecutionPoint& point, const AccessEvent& event) {
      observer->on_completed(point, event);
    });
  }
}

void fill(CheckedBytes& bytes, const BulkCopy::Piece& piece, std::uint64_t pattern) {
  for (std::uint64_t i = 0; i < piece.size_bytes; ++i) {
    bytes.data()[piece.target + i] = static_cast<std::byte>(pattern >> (8 * (i % 8)));
  }
  bytes.mark_written(piece.target, piece.size_bytes);
}

/// Moves the bytes, and "unwritten" with them.
void move(const BulkCopy& copy) {
  for (const BulkCopy::Piece& piece : copy.pieces) {
    if (piece.source == BulkCopy::Piece::kFill) {
      fill(*copy.target.bytes, piece, copy.fill);
    } else if (copy.combine != nullptr) {
      copy.combine(copy.target.bytes->data() + piece.target,
                   copy.source.bytes->data() + piece.source, piece.size_bytes);
    } else {
      copy.target.bytes->copy_from(piece.target, *copy.source.bytes, piece.source,
                                   piece.size_bytes);
    }
  }
}

void report_misuse(Warp& warp, const BulkCopy& copy, const std::string& detail) {
  ViolationEvent event;
  event.kind = FaultKind::mbarrier_misuse;
  event.space = MemorySpace::shared;
  event.lanes = 1U << copy.lane;
  event.size_bytes = 8;
  event.address = copy.mbarrier;
  event.detail = detail;
  report(warp, copy.insn, event);
}

/// The cp.async that an arrival waits for end, then it counts.
void complete(Cta& cta, const AsyncWork::Arrival& arrival) {
  Warp& warp = cta.warps[arrival.warp];
  std::vector<AsyncCopies::Copy> done;
  warp.async.wait_for_first(arrival.issued, 1U << arrival.lane, cta.shared, &done);
  if (!cta.launch->access_observers.empty()) notify_completed(warp, arrival.insn, done);
  Mbarrier& object = cta.mbarriers.at(arrival.mbarrier);
  MbarrierChange change{&warp, arrival.insn, arrival.mbarrier, object.phase()};
  // complete_phase() has seen that an arrival is pending.
  (void)object.arrive(1, Mbarrier::Arrival::whole);
  settle(change, true);
}

void complete(Cta& cta, const BulkCopy& copy) {
  Warp& warp = cta.warps[copy.warp];
  move(copy);
  notify_done(cta, copy, false);
  notify_done(cta, copy, true);
  Mbarrier& object = cta.mbarriers.at(copy.mbarrier);
  MbarrierChange change{&warp, copy.insn, copy.mbarrier, object.phase()};
  const std::string wrong = object.add_bytes(-static_cast<std::int64_t>(copy.size_bytes));
  if (!wrong.empty()) report_misuse(warp, copy, wrong);
  settle(change, true);
}

/// Takes the first that counts at the mbarrier out of the list and completes it; false for none.
template <class Item>
bool complete_next(Cta& cta, std::vector<Item>& items, std::uint32_t offset) {
  const auto next = std::find_if(items.begin(), items.end(),
                                 [&](const Item& item) { return item.mbarrier == offset; });
  if (next == items.end()) return false;
  const Item item = std::move(*next);
  items.erase(next);
  complete(cta, item);
  return true;
}

void report_unfinished(Cta& cta, const BulkCopy& copy) {
  ViolationEvent event;
  event.kind = FaultKind::unfinished_copy;
  event.space = MemorySpace::shared;
  event.lanes = 1U << copy.lane;
  const bool is_load = copy.mbarrier != kNoIndex;
  const std::string detail =
      is_load ? fmt::format(
                    "the CTA ends before its copy into shared memory, counted by the "
                    "mbarrier at byte {}, was waited for",
                    copy.mbarrier)
              : std::string{
                    "the CTA ends before cp.async.bulk.wait_group has waited for this copy "
                    "to read shared memory"};
  event.detail = detail;
  if (!copy.pieces.empty()) {
    const BulkCopy::Piece& piece = copy.pieces.front();
    event.address = is_load ? piece.target : piece.source;
    event.size_bytes = static_cast<std::uint32_t>(piece.size_bytes);
  }
  report(cta.warps[copy.warp], copy.insn, event);
}

}  // namespace

void issue(Cta& cta, BulkCopy copy) {
  if (copy.pieces.empty()) return;
  notify_issued(cta, copy);
  if (copy.combine == nullptr) {
    for (const BulkCopy::Piece& piece : copy.pieces) {
      copy.target.bytes->forget(piece.target, piece.size_bytes);
    }
  }
  if (copy.mbarrier != kNoIndex) {
    cta.async.loads.push_back(std::move(copy));
    return;
  }
  copy.group = cta.async.groups[{copy.warp, copy.lane}];
  cta.async.stores.push_back(std::move(copy));
}

void commit_bulk(Cta& cta, std::uint32_t warp, std::uint32_t lane) {
  ++cta.async.groups[{warp, lane}];
}

void wait_bulk(Cta& cta, std::pair<std::uint32_t, std::uint32_t> thread, std::uint32_t pending,
               bool is_read_enough) {
  const std::uint32_t committed = cta.async.groups[thread];
  std::vector<BulkCopy> left;
  for (BulkCopy& copy : cta.async.stores) {
    const bool is_due = copy.warp == thread.first && copy.lane == thread.second &&
                        std::uint64_t{copy.group} + pending < committed;
    if (is_due && !copy.is_read) {
      move(copy);
      notify_done(cta, copy, false);
      copy.is_read = true;
    }
    if (is_due && !is_read_enough) {
      notify_done(cta, copy, true);
    } else {
      left.push_back(std::move(copy));
    }
  }
  cta.async.stores = std::move(left);
}

bool complete_phase(Cta& cta, std::uint32_t offset) {
  AsyncWork& work = cta.async;
  if (work.arrivals.empty() && work.loads.empty()) return false;
  const Mbarrier& object = cta.mbarriers.at(offset);
  const auto arrivals = static_cast<std::size_t>(
      std::count_if(work.arrivals.begin(), work.arrivals.end(),
                    [&](const AsyncWork::Arrival& item) { return item.mbarrier == offset; }));
  if (object.pending() > arrivals) return false;
  const std::uint64_t phase = object.phase();
  const auto may_go_on = [&] { return object.phase() == phase && !cta.launch->is_aborted; };
  while (object.pending() > 0 && may_go_on() && complete_next(cta, work.arrivals, offset)) {
  }
  while (may_go_on() && complete_next(cta, work.loads, offset)) {
  }
  return object.phase() != phase;
}

void finish(Cta& cta) {
  for (const BulkCopy& copy : std::exchange(cta.async.loads, {})) {
    move(copy);
    report_unfinished(cta, copy);
  }
  for (const BulkCopy& copy : std::exchange(cta.async.stores, {})) {
    if (copy.is_read) continue;
    move(copy);
    report_unfinished(cta, copy);
  }
}

}  // namespace cpverify::sim
