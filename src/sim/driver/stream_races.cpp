#include "sim/driver/stream_races.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "sim/driver/operation.hpp"
#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {
namespace {

constexpr Uses kAnyWrite = kWrites | kStrongWrites;

bool is_conflict(Uses first, Uses second) noexcept {
  constexpr Uses kStrong = kStrongReads | kStrongWrites;
  const bool has_write = ((first | second) & kAnyWrite) != 0;
  if (!has_write) return false;
  // A write of one side against anything of the other, unless both of the two are strong.
  const auto meets = [](Uses writer, Uses other) {
    return ((writer & kWrites) != 0 && other != 0) ||
           ((writer & kStrongWrites) != 0 && (other & ~kStrong) != 0);
  };
  return meets(first, second) || meets(second, first);
}

/// Whatever races with `older` races with `newer` too, which is after it.
bool is_covered(Uses older, Uses newer) noexcept {
  return (newer & kWrites) != 0 || (older & ~newer) == 0;
}

std::string_view verb(Uses uses) noexcept {
  const bool is_written = (uses & kAnyWrite) != 0;
  const bool is_read = (uses & (kReads | kStrongReads)) != 0;
  if (is_written && is_read) return "reads and writes";
  return is_written ? "writes" : "reads";
}

/// The instruction that touched the byte so: of those whose reach holds it, the one that reaches
/// the fewest bytes. Null when the operation is no kernel.
const AccessSite* site_of(const Operation& operation, std::uint64_t address, Uses uses) {
  const AccessSite* nearest = nullptr;
  for (const AccessSite& site : *operation.sites) {
    if (address < site.begin || address >= site.end || (site.uses & uses) == 0) continue;
    if (nearest == nullptr || site.end - site.begin < nearest->end - nearest->begin) {
      nearest = &site;
    }
  }
  return nearest;
}

/// Of two operations that race at a byte: what of this one can race with those uses of the other.
Uses racing_uses(Uses own, Uses other) {
  Uses racing = 0;
  for (const Uses use : {kReads, kWrites, kStrongReads, kStrongWrites}) {
    if ((own & use) != 0 && is_conflict(use, other)) racing = static_cast<Uses>(racing | use);
  }
  return racing;
}

std::string site_text(const AccessSite* site) {
  if (site == nullptr) return {};
  return site->source_file.empty() ? fmt::format(" (PTX line {})", site->ptx_line)
                                   : fmt::format(" ({}:{}, PTX line {})", site->source_file,
                                                 site->source_line, site->ptx_line);
}

}  // namespace

void StreamRaces::record(const OperationRef& operation, const Footprint& footprint) {
  races_.clear();
  for (const Span& span : footprint) {
    if (span.begin < span.end && span.uses != 0) touch(operation, span);
  }
  report(*operation);
}

void StreamRaces::forget(std::uint64_t address, std::uint64_t size_bytes) {
  split(address);
  split(address + size_bytes);
  intervals_.erase(intervals_.lower_bound(address), intervals_.lower_bound(address + size_bytes));
}

void StreamRaces::split(std::uint64_t address) {
  const auto after = intervals_.upper_bound(address);
  if (after == intervals_.begin()) return;
  const auto holder = std::prev(after);
  if (holder->first == address || holder->second.end <= address) return;
  Interval tail = holder->second;
  holder->second.end = address;
  intervals_.emplace_hint(after, address, std::move(tail));
}

void StreamRaces::touch(const OperationRef& operation, const Span& span) {
  split(span.begin);
  split(span.end);
  std::uint64_t place = span.begin;
  auto next = intervals_.lower_bound(place);
  while (place < span.end) {
    const bool is_known = next != intervals_.end() && next->first == place;
    if (!is_known) {
      const std::uint64_t end =
          next == intervals_.end() ? span.end : std::min(next->first, span.end);
      next = intervals_.emplace_hint(next, place, Interval{end, {}});
    }
    add(operation, {place, next->second.end, span.uses}, next->second);
    place = next->second.end;
    next = merge_left(next);
  }
}

// Without it the stores of a kernel that scatters would pile up.
StreamRaces::Intervals::iterator StreamRaces::merge_left(Intervals::iterator right) {
  if (right == intervals_.begin()) return std::next(right);
  const auto left = std::prev(right);
  const std::vector<Access>& ours = right->second.accesses;
  const std::vector<Access>& theirs = left->second.accesses;
  const auto is_same = [](const Access& one, const Access& other) {
    return one.operation == other.operation && one.uses == other.uses;
  };
  if (left->second.end != right->first ||
      !std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(), is_same)) {
    return std::next(right);
  }
  left->second.end = right->second.end;
  return intervals_.erase(right);
}

void StreamRaces::add(const OperationRef& operation, const Span& part, Interval& interval) {
  std::vector<Access>& accesses = interval.accesses;
  for (const Access& earlier : accesses) {
    if (is_conflict(earlier.uses, part.uses) && !is_before(*earlier.operation, *operation)) {
      note(earlier, part);
    }
  }
  std::erase_if(accesses, [&](const Access& earlier) {
    return is_before(*earlier.operation, *operation) && is_covered(earlier.uses, part.uses);
  });
  accesses.push_back({operation, part.uses});
}

void StreamRaces::note(const Access& earlier, const Span& part) {
  const Allocation* const allocation = memory_.find(part.begin);
  const auto known = std::find_if(races_.begin(), races_.end(), [&](const Race& race) {
    return race.earlier == earlier.operation && race.allocation == allocation;
  });
  Race& race = known != races_.end() ? *known : races_.emplace_back();
  if (race.bytes == 0) {
    race.earlier = earlier.operation;
    race.allocation = allocation;
    race.first = part.begin;
  }
  race.bytes += part.end - part.begin;
  race.earlier_uses = static_cast<Uses>(race.earlier_uses | earlier.uses);
  race.later_uses = static_cast<Uses>(race.later_uses | part.uses);
}

void StreamRaces::report(const Operation& operation) {
  constexpr std::uint64_t kMax = std::numeric_limits<std::uint32_t>::max();
  for (const Race& race : races_) {
    Fault fault;
    fault.kind = FaultKind::race;
    fault.space = MemorySpace::global;
    fault.device = operation.device;
    fault.kernel = operation.call;
    fault.address = race.first;
    fault.size_bytes = static_cast<std::uint32_t>(std::min(race.bytes, kMax));
    if (race.allocation != nullptr) {
      fault.allocation = race.allocation->base;
      fault.allocation_bytes = race.allocation->size_bytes;
    }
    const AccessSite* const later =
        site_of(operation, race.first, racing_uses(race.later_uses, race.earlier_uses));
    if (later != nullptr) {
      fault.source_file = later->source_file;
      fault.source_line = later->source_line;
      fault.ptx_line = later->ptx_line;
    }
    const AccessSite* const earlier =
        site_of(*race.earlier, race.first, racing_uses(race.earlier_uses, race.later_uses));
    fault.detail = fmt::format(
        "{} {}{} what {} {}{}; no stream, event, graph or synchronisation orders the two",
        operation.description, verb(race.later_uses), site_text(later), race.earlier->description,
        verb(race.earlier_uses), site_text(earlier));
    faults_.add(fault);
  }
}

}  // namespace cpverify::sim
