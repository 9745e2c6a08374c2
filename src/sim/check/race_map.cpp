#include "sim/check/race_map.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/race_cell.hpp"
#include "sim/check/race_order.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kLanes = 32;
/// Parts of a cell of 128 bytes have 16, parts of those 4, parts of those 1.
constexpr std::uint32_t kPartBytes = 16;
constexpr std::uint32_t kWordBytes = 4;
/// Accesses of other CTAs in one list; further ones are not remembered.
constexpr std::ptrdiff_t kOthersMax = 8;

bool is_dense(const RaceMap::Touch& touch) {
  std::uint64_t difference = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    difference |= touch.addresses[lane] ^ (touch.addresses[0] + lane * touch.size_bytes);
  }
  return difference == 0;
}

bool is_read(AccessKind kind) {
  return kind == AccessKind::read || kind == AccessKind::async_read;
}

}  // namespace

struct RaceMap::Use {
  explicit Use(const Touch& touch)
      : label{touch.label},
        times{touch.times},
        order{touch.order},
        shift{static_cast<std::uint8_t>(std::countr_zero(touch.size_bytes))},
        is_write{!is_read(touch.kind)} {}

  RaceLabel label;  ///< Of lane 0.
  RaceTimes times;
  const RaceOrder* order;
  std::uint8_t shift;  ///< log2 of the bytes of a lane.
  bool is_write;
  bool is_completion = false;
  std::vector<Conflict>* conflicts = nullptr;  ///< Null: the first one ends it.
  Run run;

  [[nodiscard]] std::uint32_t lane_at(std::uint64_t offset) const {
    return run.first_lane + static_cast<std::uint32_t>((offset - run.offset) >> shift);
  }
};

template <class Visit>
void RaceMap::for_each_run(const Touch& touch, Visit visit) {
  if (touch.lanes == ~0U && is_dense(touch)) {
    visit(Run{touch.addresses[0] - touch.base, kLanes * touch.size_bytes, 0, kLanes});
    return;
  }
  Run run;
  for (std::uint32_t left = touch.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint64_t offset = touch.addresses[lane] - touch.base;
    if (run.lane_count != 0) {
      if (offset == run.offset + run.size_bytes && lane == run.first_lane + run.lane_count) {
        run.size_bytes += touch.size_bytes;
        ++run.lane_count;
        continue;
      }
      // All lanes at one place, as in a broadcast.
      if (offset == run.offset && run.lane_count == 1) continue;
      visit(run);
    }
    run = {offset, touch.size_bytes, lane, 1};
  }
  visit(run);
}

/// What needs no more than a look at the times: it counts for nothing, is behind a barrier of all
/// warps, or is of this warp since then.
inline bool RaceMap::is_settled(const Use& use, const RaceLabel& earlier) noexcept {
  const RaceTimes& times = use.times;
  if (earlier.time < times.oldest) return true;
  if (earlier.is_async() || earlier.time < times.home) return false;
  return earlier.time < times.first ||
         (earlier.time == times.now && earlier.is_of_warp_of(use.label));
}

inline bool RaceMap::is_before(const Use& use, const RaceLabel& earlier) noexcept {
  if (is_settled(use, earlier)) return true;
  if (earlier.is_async()) return false;
  if (earlier.time < use.times.home) {
    return use.times.knows_others && use.order->is_before(earlier);
  }
  return use.times.is_partial ? use.order->is_before(earlier) : earlier.is_of_warp_of(use.label);
}

inline bool RaceMap::is_racing(const Use& use, const RaceLabel& earlier) noexcept {
  if (use.label.is_strong() && earlier.is_strong()) {
    const bool is_near = earlier.time >= use.times.home;
    if (is_near || (!use.label.is_cta_scope() && !earlier.is_cta_scope())) return false;
  }
  return !is_before(use, earlier);
}

/// Whether everything that races with `label` also races with `earlier`, so that there is no need
/// to remember it.
inline bool RaceMap::is_kept(const Use& use, const RaceLabel& label,
                             const RaceLabel& earlier) noexcept {
  const RaceTimes& times = use.times;
  if (label.is_async() || earlier.is_async() || earlier.time < times.oldest) return false;
  if (earlier.strength() > label.strength()) return false;
  const bool is_same_warp = earlier.is_of_warp_of(label) && earlier.time >= times.home;
  if (earlier.time == times.now && is_same_warp) return true;
  // Nothing that comes is behind another CTA, or behind one warp only.
  if (times.is_partial) return false;
  return earlier.time < times.home || (is_same_warp && earlier.time >= times.since);
}

/// Whether everything that races with `earlier` also races with `label`, or has already raced.
inline bool RaceMap::is_replaced(const Use& use, const RaceLabel& label,
                                 const RaceLabel& earlier) noexcept {
  if (earlier.time < use.times.oldest) return true;
  return label.strength() <= earlier.strength() && is_before(use, earlier);
}

inline RaceCell& RaceMap::line_at(std::uint64_t offset) {
  constexpr std::size_t kLines = kBlockBytes / kLineBytes;
  RaceCell*& block = blocks_[offset / kBlockBytes];
  if (block == nullptr) block = cells_.take(kLines);
  return block[offset % kBlockBytes / kLineBytes];
}

/// From one cell to cells of its parts, which begin with what it says.
void RaceMap::split(RaceCell& cell, std::uint32_t count, std::uint32_t part_bytes) {
  cell.parts = cells_.take(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    RaceCell& part = cell.parts[i];
    const std::uint32_t byte = i * part_bytes;
    part.read_shifts = cell.read_shifts;
    part.write_shifts = cell.write_shifts;
    for (std::size_t k = 0; k < cell.reads.size(); ++k) {
      part.reads[k] = part_of(cell.reads[k], cell.read_shifts[k], byte);
      part.writes[k] = part_of(cell.writes[k], cell.write_shifts[k], byte);
    }
    if (cell.more == 0) continue;
    part.more = static_cast<std::uint32_t>(more_.size());
    std::vector<More> list = more_[cell.more];
    for (More& more : list) more.label = part_of(more.label, more.shift, byte);
    more_.push_back(std::move(list));
  }
}

bool RaceMap::use_run(Use& use, const Run& run) {
  use.run = run;
  bool is_quiet = true;
  const std::uint64_t end = run.offset + run.size_bytes;
  for (std::uint64_t at = run.offset; at < end && (is_quiet || use.conflicts != nullptr);) {
    RaceCell& line = line_at(at);
    const std::uint64_t stop = std::min(end, at / kLineBytes * kLineBytes + kLineBytes);
    const auto bytes = static_cast<std::uint32_t>(stop - at);
    const bool is_whole = bytes == kLineBytes && line.parts == nullptr;
    is_quiet = (is_whole ? use_cell(use, line, at, bytes) : use_parts(use, line, at, bytes)) &&
               is_quiet;
    at = stop;
  }
  return is_quiet;
}

/// Some bytes of a line.
bool RaceMap::use_parts(const Use& use, RaceCell& cell, std::uint64_t offset,
                        std::uint32_t size_bytes) {
  if (cell.parts == nullptr) split(cell, kLineBytes / kPartBytes, kPartBytes);
  bool is_quiet = true;
  const std::uint64_t end = offset + size_bytes;
  for (std::uint64_t at = offset; at < end && (is_quiet || use.conflicts != nullptr);) {
    RaceCell& part = cell.parts[at % kLineBytes / kPartBytes];
    const std::uint64_t stop = std::min(end, at / kPartBytes * kPartBytes + kPartBytes);
    const auto bytes = static_cast<std::uint32_t>(stop - at);
    const bool is_whole = bytes == kPartBytes && part.parts == nullptr;
    is_quiet =
        (is_whole ? use_cell(use, part, at, bytes) : use_words(use, part, at, bytes)) && is_quiet;
    at = stop;
  }
  return is_quiet;
}

/// Some bytes of 16.
bool RaceMap::use_words(const Use& use, RaceCell& cell, std::uint64_t offset,
                        std::uint32_t size_bytes) {
  if (cell.parts == nullptr) split(cell, kPartBytes / kWordBytes, kWordBytes);
  bool is_quiet = true;
  const std::uint64_t end = offset + size_bytes;
  for (std::uint64_t at = offset; at < end && (is_quiet || use.conflicts != nullptr);) {
    RaceCell& word = cell.parts[at % kPartBytes / kWordBytes];
    const std::uint64_t stop = std::min(end, at / kWordBytes * kWordBytes + kWordBytes);
    if (stop - at == kWordBytes && word.parts == nullptr) {
      is_quiet = use_cell(use, word, at, kWordBytes) && is_quiet;
      at = stop;
      continue;
    }
    if (word.parts == nullptr) split(word, kWordBytes, 1);
    for (; at < stop; ++at) {
      is_quiet = use_cell(use, word.parts[at % kWordBytes], at, 1) && is_quiet;
    }
  }
  return is_quiet;
}

/// All bytes of a cell that has no parts.
inline bool RaceMap::use_cell(const Use& use, RaceCell& cell, std::uint64_t offset,
                              std::uint32_t size_bytes) {
  if (use.is_completion) {
    complete_cell(use, cell, use.lane_at(offset));
    return true;
  }
  bool is_quiet = is_settled(use, cell.writes[0]) && is_settled(use, cell.writes[1]);
  if (use.is_write) {
    is_quiet = is_quiet && is_settled(use, cell.reads[0]) && is_settled(use, cell.reads[1]);
  }
  if (!is_quiet || cell.more != 0) {
    is_quiet = check(use, cell, offset, size_bytes);
    if (!is_quiet && use.conflicts == nullptr) return false;
  }
  const RaceLabel label{use.label.time, use.label.packed + use.lane_at(offset)};
  const RaceTimes& times = use.times;
  RaceLabel& first = use.is_write ? cell.writes[0] : cell.reads[0];
  if (is_kept(use, label, first)) return is_quiet;
  if (first.time < times.oldest) {
    first = label;
    (use.is_write ? cell.write_shifts : cell.read_shifts)[0] = use.shift;
  } else if (use.is_write) {
    add_write(use, cell, label);
  } else {
    add_read(use, cell, label);
  }
  return is_quiet;
}

/// False when something in the cell races with the use.
bool RaceMap::check(const Use& use, const RaceCell& cell, std::uint64_t offset,
                    std::uint32_t size_bytes) const {
  Conflict conflict;
  bool is_found = false;
  const auto look_at = [&](const RaceLabel& label, std::uint8_t shift, bool is_write) {
    if (is_found || !(is_write || use.is_write) || !is_racing(use, label)) return;
    is_found = true;
    conflict.earlier = part_of(label, shift, 0);
    conflict.is_earlier_write = is_write;
  };
  for (std::size_t i = 0; i < 2; ++i) look_at(cell.writes[i], cell.write_shifts[i], true);
  for (const More& more : more_[cell.more]) {
    if (more.is_write) look_at(more.label, more.shift, true);
  }
  for (std::size_t i = 0; i < 2; ++i) look_at(cell.reads[i], cell.read_shifts[i], false);
  for (const More& more : more_[cell.more]) {
    if (!more.is_write) look_at(more.label, more.shift, false);
  }
  if (!is_found) return true;
  if (use.conflicts == nullptr) return false;
  const std::uint32_t first = use.lane_at(offset);
  const std::uint32_t count = use.lane_at(offset + size_bytes - 1) - first + 1;
  conflict.lanes = (count == kLanes ? ~0U : (1U << count) - 1) << first;
  conflict.offset = offset;
  // Of 64 bytes, one is named, and what was written rather than what was read.
  std::vector<Conflict>& conflicts = *use.conflicts;
  constexpr std::uint64_t kNamedBytes = 64;
  if (conflicts.empty() || conflicts.back().offset / kNamedBytes != offset / kNamedBytes) {
    conflicts.push_back(conflict);
  } else if (conflicts.back().is_earlier_write == conflict.is_earlier_write) {
    conflicts.back().lanes |= conflict.lanes;
  } else if (conflict.is_earlier_write) {
    conflicts.back() = conflict;
  }
  return false;
}

void RaceMap::add_read(const Use& use, RaceCell& cell, const RaceLabel& label) {
  for (std::size_t i = 0; i < cell.reads.size(); ++i) {
    RaceLabel& earlier = cell.reads[i];
    if (is_kept(use, label, earlier)) return;
    if (label.is_async() || !is_replaced(use, label, earlier)) continue;
    earlier = label;
    cell.read_shifts[i] = use.shift;
    return;
  }
  if (label.is_async() && add_last_read(use, cell, label)) return;
  // Whatever is behind one of two warps is not behind the other.
  const auto covers = [&](const RaceLabel& earlier) {
    return earlier.strength() <= label.strength() && earlier.time >= use.times.since &&
           !is_before(use, earlier);
  };
  const auto& [first, second] = cell.reads;
  const bool is_covered = !use.times.is_partial && !label.is_async() && covers(first) &&
                          covers(second) && !first.is_of_warp_of(second);
  if (!is_covered) add_more(use, cell, {label, use.shift, false});
}

/// Copies stay in the order in which they have begun: so they end.
bool RaceMap::add_last_read(const Use& use, RaceCell& cell, const RaceLabel& label) {
  if (cell.more != 0) return false;
  auto& [first, second] = cell.reads;
  const bool is_first_free = is_replaced(use, label, first);
  const bool is_second_free = is_replaced(use, label, second);
  if (!is_first_free && !is_second_free) return false;
  if (is_first_free && !is_second_free) {
    first = second;
    cell.read_shifts[0] = cell.read_shifts[1];
  }
  const std::size_t place = is_first_free && is_second_free ? 0 : 1;
  cell.reads[place] = label;
  cell.read_shifts[place] = use.shift;
  if (place == 0) second = {};
  return true;
}

void RaceMap::add_write(const Use& use, RaceCell& cell, const RaceLabel& label) {
  auto& [newest, second] = cell.writes;
  for (std::size_t i = 0; i < cell.writes.size(); ++i) {
    RaceLabel& earlier = cell.writes[i];
    if (i == 1 && earlier.time < use.times.oldest) break;
    if (is_replaced(use, label, earlier)) {
      if (i == 1) {
        second = newest;
        cell.write_shifts[1] = cell.write_shifts[0];
      }
      newest = label;
      cell.write_shifts[0] = use.shift;
      return;
    }
    if (is_kept(use, label, earlier)) return;
  }
  // Whatever is behind one of two warps is not behind the other.
  const auto covers = [&](const RaceLabel& other) {
    return other.strength() <= second.strength() && !other.is_async();
  };
  const bool is_covered = !use.times.is_partial && !second.is_async() && covers(newest) &&
                          covers(label) && !newest.is_of_warp_of(label) &&
                          second.time >= use.times.home && newest.time >= use.times.since;
  if (second.time >= use.times.oldest && !is_covered) {
    add_more(use, cell, {second, cell.write_shifts[1], true});
  }
  second = newest;
  newest = label;
  cell.write_shifts = {use.shift, cell.write_shifts[0]};
}

void RaceMap::add_more(const Use& use, RaceCell& cell, const More& more) {
  if (cell.more == 0) {
    cell.more = static_cast<std::uint32_t>(more_.size());
    more_.emplace_back();
  }
  std::vector<More>& list = more_[cell.more];
  const auto is_kept_by = [&](const More& other) {
    return other.is_write == more.is_write && is_kept(use, more.label, other.label);
  };
  if (std::any_of(list.begin(), list.end(), is_kept_by)) return;
  std::erase_if(list, [&](const More& other) {
    return other.label.time < use.times.oldest ||
           (other.is_write == more.is_write && is_replaced(use, more.label, other.label));
  });
  const auto others = std::count_if(list.begin(), list.end(), [&](const More& other) {
    return other.label.time < use.times.home;
  });
  if (others < kOthersMax) list.push_back(more);
}

/// Of several copies of the lane, the one that has begun first.
void RaceMap::complete_cell(const Use& use, RaceCell& cell, std::uint32_t lane) {
  const auto complete = [&](RaceLabel& label) {
    const bool is_it = label.is_async() && label.is_of_warp_of(use.label) &&
                       label.lane() == lane && label.time >= use.times.home;
    if (is_it) label.complete(use.times.now);
    return is_it;
  };
  const auto complete_more = [&] {
    for (More& more : more_[cell.more]) {
      if (more.is_write == use.is_write && complete(more.label)) return true;
    }
    return false;
  };
  if (use.is_write) {
    if (complete_more() || complete(cell.writes[1]) || complete(cell.writes[0])) return;
  } else if (complete(cell.reads[0]) || complete(cell.reads[1]) || complete_more()) {
    return;
  }
}

void RaceMap::touch(const Touch& touch, std::vector<Conflict>& conflicts) {
  Use use{touch};
  use.conflicts = &conflicts;
  for_each_run(touch, [&](const Run& run) { static_cast<void>(use_run(use, run)); });
}

bool RaceMap::touch_plain(const Touch& touch, bool is_uniform, std::uint64_t offset) {
  Use use{touch};
  if (is_uniform) return use_run(use, {offset, touch.size_bytes, 0, 1});
  return use_run(use, {offset, kLanes * touch.size_bytes, 0, kLanes});
}

void RaceMap::complete(const Touch& touch) {
  Use use{touch};
  use.is_completion = true;
  for_each_run(touch, [&](const Run& run) { static_cast<void>(use_run(use, run)); });
}

}  // namespace cpverify::sim
