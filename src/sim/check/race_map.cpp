#include "sim/check/race_map.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/race_cell.hpp"
#include "sim/check/race_order.hpp"
#include "sim/check/race_use.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kLanes = 32;
/// Parts of a cell of 128 bytes have 16, parts of those 4, parts of those 1.
constexpr std::uint32_t part_bytes(std::uint32_t cell_bytes) {
  return cell_bytes == 128 ? 16 : cell_bytes == 16 ? 4 : 1;
}
/// Accesses of other CTAs in one crowd; further ones are not remembered.
constexpr std::ptrdiff_t kOthersMax = 8;

bool is_dense(const RaceMap::Touch& touch) {
  std::uint64_t difference = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    difference |= touch.addresses[lane] ^ (touch.addresses[0] + lane * touch.size_bytes);
  }
  return difference == 0;
}

}  // namespace

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

RaceMap::RaceMap(MemorySpace space, std::uint64_t size_bytes) {
  if (space == MemorySpace::shared) {
    rows_.resize((size_bytes + kRowBytes - 1) / kRowBytes);
  } else {
    blocks_.resize((size_bytes + kBlockBytes - 1) / kBlockBytes);
  }
}

inline RaceCell& RaceMap::line_at(std::uint64_t offset) {
  RaceCell*& block = blocks_[offset / kBlockBytes];
  if (block == nullptr) block = cells_.take(kBlockBytes / kLineBytes);
  return block[offset % kBlockBytes / kLineBytes];
}

/// From one cell to cells of its parts, which begin with what it says.
template <std::uint32_t cell_bytes>
void RaceMap::split(RaceCell& cell) {
  constexpr std::uint32_t kPartBytes = part_bytes(cell_bytes);
  RaceCell* const parts = cells_.take(cell_bytes / kPartBytes);
  const auto move = [](auto& labels, std::uint32_t byte) {
    for (RaceLabel& label : labels) label = label.at(byte);
  };
  for (std::uint32_t byte = 0; byte < cell_bytes; byte += kPartBytes) {
    RaceCell& part = parts[byte / kPartBytes];
    part = cell;
    if (cell.is_crowded()) {
      Crowd crowd = crowds_[cell.writes[0].packed];
      move(crowd.writes, byte);
      move(crowd.reads, byte);
      part.writes[0].packed = static_cast<std::uint32_t>(crowds_.size());
      crowds_.push_back(std::move(crowd));
    } else {
      move(part.writes, byte);
      move(part.reads, byte);
    }
  }
  cell.set_parts(parts);
}

bool RaceMap::use_run(Use& use, const Run& run) {
  use.run = run;
  bool is_quiet = true;
  const std::uint64_t end = run.offset + run.size_bytes;
  const std::uint64_t cell_bytes = rows_.empty() ? kLineBytes : kRowBytes;
  for (std::uint64_t at = run.offset; at < end && (is_quiet || use.conflicts != nullptr);) {
    const std::uint64_t stop = std::min(end, at / cell_bytes * cell_bytes + cell_bytes);
    const auto bytes = static_cast<std::uint32_t>(stop - at);
    const bool is_part_quiet = rows_.empty() ? use_part<kLineBytes>(use, line_at(at), at, bytes)
                                             : use_part<kRowBytes>(use, row_at(at), at, bytes);
    is_quiet = is_part_quiet && is_quiet;
    at = stop;
  }
  return is_quiet;
}

/// Some bytes of a cell.
template <std::uint32_t cell_bytes>
bool RaceMap::use_part(const Use& use, RaceCell& cell, std::uint64_t offset,
                       std::uint32_t size_bytes) {
  if constexpr (cell_bytes == 1) {
    return use_cell(use, cell, offset, 1);
  } else {
    if (!cell.is_split()) {
      if (size_bytes == cell_bytes) return use_cell(use, cell, offset, size_bytes);
      split<cell_bytes>(cell);
    }
    constexpr std::uint32_t kPartBytes = part_bytes(cell_bytes);
    bool is_quiet = true;
    const std::uint64_t end = offset + size_bytes;
    for (std::uint64_t at = offset; at < end && (is_quiet || use.conflicts != nullptr);) {
      RaceCell& part = cell.parts()[at % cell_bytes / kPartBytes];
      const std::uint64_t stop = std::min(end, at / kPartBytes * kPartBytes + kPartBytes);
      const auto bytes = static_cast<std::uint32_t>(stop - at);
      is_quiet = use_part<kPartBytes>(use, part, at, bytes) && is_quiet;
      at = stop;
    }
    return is_quiet;
  }
}

/// All bytes of a cell that has no parts.
[[gnu::always_inline]] inline bool RaceMap::use_cell(const Use& use, RaceCell& cell,
                                                     std::uint64_t offset,
                                                     std::uint32_t size_bytes) {
  if (use.is_completion) {
    complete_cell(use, cell, use.lane_at(offset));
    return true;
  }
  if (is_repeated(use, cell)) return true;
  bool is_quiet = is_harmless(use, cell.writes[0]) && is_harmless(use, cell.writes[1]);
  if (use.is_write) {
    is_quiet = is_quiet && is_harmless(use, cell.reads[0]) && is_harmless(use, cell.reads[1]);
  }
  if (!is_quiet) {
    if (cell.is_crowded()) return use_crowd(use, cell, offset, size_bytes);
    is_quiet = check(use, cell.writes, cell.reads, offset, size_bytes);
    if (!is_quiet && use.conflicts == nullptr) return false;
  }
  add(use, cell, {use.label.time, use.label.packed + use.lane_at(offset)});
  return is_quiet;
}

bool RaceMap::use_crowd(const Use& use, RaceCell& cell, std::uint64_t offset,
                        std::uint32_t size_bytes) {
  Crowd& crowd = crowds_[cell.writes[0].packed];
  const bool is_quiet = check(use, crowd.writes, crowd.reads, offset, size_bytes);
  if (!is_quiet && use.conflicts == nullptr) return false;
  const RaceLabel label{use.label.time, use.label.packed + use.lane_at(offset)};
  add_to_crowd(use, use.is_write ? crowd.writes : crowd.reads, label);
  return is_quiet;
}

/// False when something in a cell races with the use.
bool RaceMap::check(const Use& use, std::span<const RaceLabel> writes,
                    std::span<const RaceLabel> reads, std::uint64_t offset,
                    std::uint32_t size_bytes) {
  Conflict conflict;
  bool is_found = false;
  const auto look_at = [&](std::span<const RaceLabel> labels, bool is_write) {
    for (const RaceLabel& label : labels) {
      if (is_found || !is_racing(use, label)) continue;
      is_found = true;
      conflict.earlier = label;
      conflict.is_earlier_write = is_write;
    }
  };
  look_at(writes, true);
  if (use.is_write) look_at(reads, false);
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

inline void RaceMap::add(const Use& use, RaceCell& cell, const RaceLabel& label) {
  RaceLabel& first = use.is_write ? cell.writes[0] : cell.reads[0];
  if (is_kept(use, label, first)) return;
  if (first.time < use.times.oldest && !label.is_async()) {
    first = label;
  } else if (use.is_write) {
    add_write(use, cell, label);
  } else {
    add_read(use, cell, label);
  }
}

void RaceMap::add_read(const Use& use, RaceCell& cell, const RaceLabel& label) {
  const RaceTimes& times = use.times;
  auto& [first, second] = cell.reads;
  for (RaceLabel* const earlier : {&first, &second}) {
    if (is_kept(use, label, *earlier)) return;
    if (label.is_async() || !is_replaced(use, label, *earlier)) continue;
    *earlier = label;
    return;
  }
  // What races with the second, of another CTA, also races with the first.
  const bool is_spare = !times.is_partial && first.time >= times.oldest &&
                        first.time < times.home && second.time < times.home &&
                        first.strength() <= second.strength();
  if (is_spare) {
    second = label;
    return;
  }
  if (label.is_async() && add_last_read(use, cell, label)) return;
  // Whatever is behind one of two warps is not behind the other.
  const auto covers = [&](const RaceLabel& earlier) {
    return earlier.strength() <= label.strength() && earlier.time >= times.since &&
           !is_before(use, earlier);
  };
  const bool is_covered = !times.is_partial && !label.is_async() && covers(first) &&
                          covers(second) && !first.is_of_warp_of(second);
  if (!is_covered) add_to_crowd(use, make_crowd(cell).reads, label);
}

/// Copies stay in the order in which they have begun: so they end.
bool RaceMap::add_last_read(const Use& use, RaceCell& cell, const RaceLabel& label) {
  auto& [first, second] = cell.reads;
  const bool is_first_free = is_replaced(use, label, first);
  const bool is_second_free = is_replaced(use, label, second);
  if (!is_first_free && !is_second_free) return false;
  if (is_first_free && is_second_free) {
    first = label;
    second = {};
    return true;
  }
  if (is_first_free) first = second;
  second = label;
  return true;
}

void RaceMap::add_write(const Use& use, RaceCell& cell, const RaceLabel& label) {
  const RaceTimes& times = use.times;
  RaceLabel& newest = cell.writes[0];
  RaceLabel& second = cell.writes[1];
  if (is_replaced(use, label, newest)) {
    newest = label;
    return;
  }
  if (is_kept(use, label, newest)) return;
  if (second.time >= times.oldest && is_kept(use, label, second)) return;
  // Whatever is behind one of two warps is not behind the other.
  const auto covers = [&](const RaceLabel& other) {
    return other.strength() <= second.strength() && !other.is_async();
  };
  const bool is_covered = !times.is_partial && !second.is_async() && covers(newest) &&
                          covers(label) && !newest.is_of_warp_of(label) &&
                          second.time >= times.home && newest.time >= times.since;
  if (!is_covered && !is_replaced(use, label, second)) {
    add_to_crowd(use, make_crowd(cell).writes, label);
    return;
  }
  second = newest;
  newest = label;
}

/// Moves the labels of a cell.
RaceMap::Crowd& RaceMap::make_crowd(RaceCell& cell) {
  Crowd crowd;
  crowd.writes = {cell.writes[1], cell.writes[0]};
  crowd.reads = {cell.reads[0], cell.reads[1]};
  cell.writes[0] = {RaceCell::kCrowd, static_cast<std::uint32_t>(crowds_.size())};
  crowds_.push_back(std::move(crowd));
  return crowds_.back();
}

void RaceMap::add_to_crowd(const Use& use, std::vector<RaceLabel>& labels, const RaceLabel& label) {
  const bool is_known = std::any_of(labels.begin(), labels.end(), [&](const RaceLabel& other) {
    return is_kept(use, label, other);
  });
  if (is_known) return;
  std::erase_if(labels, [&](const RaceLabel& other) { return is_replaced(use, label, other); });
  const auto others = std::count_if(labels.begin(), labels.end(), [&](const RaceLabel& other) {
    return other.time < use.times.home;
  });
  if (others < kOthersMax) labels.push_back(label);
}

/// Of several copies of the lane, the one that has begun first.
void RaceMap::complete_cell(const Use& use, RaceCell& cell, std::uint32_t lane) {
  const auto complete = [&](RaceLabel& label) {
    const bool is_it = label.is_async() && label.is_of_warp_of(use.label) && label.lane() == lane &&
                       label.time >= use.times.home;
    if (is_it) label.complete(use.times.now);
    return is_it;
  };
  if (cell.is_crowded()) {
    Crowd& crowd = crowds_[cell.writes[0].packed];
    std::vector<RaceLabel>& labels = use.is_write ? crowd.writes : crowd.reads;
    static_cast<void>(std::any_of(labels.begin(), labels.end(), complete));
  } else if (use.is_write) {
    if (!complete(cell.writes[1])) static_cast<void>(complete(cell.writes[0]));
  } else if (!complete(cell.reads[0])) {
    static_cast<void>(complete(cell.reads[1]));
  }
}

/// A touch of 4 bytes by each lane where all are cells of their own already. False when they are
/// not, and nothing has happened.
bool RaceMap::touch_words(Use& use, const Touch& touch) {
  constexpr std::uint32_t kWordBytes = 4;
  if (rows_.empty() || touch.size_bytes != kWordBytes) return false;
  std::array<RaceCell*, kLanes> words{};
  for (std::uint32_t left = touch.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    const std::uint64_t offset = touch.addresses[lane];
    RaceCell& row = row_at(offset);
    if (!row.is_split()) return false;
    words[lane] = &row.parts()[offset % kRowBytes / kWordBytes];
    if (words[lane]->is_split()) return false;
  }
  for (std::uint32_t left = touch.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    use.run = {touch.addresses[lane], kWordBytes, lane, 1};
    static_cast<void>(use_cell(use, *words[lane], touch.addresses[lane], kWordBytes));
  }
  return true;
}

void RaceMap::touch(const Touch& touch, std::vector<Conflict>& conflicts) {
  if (touch.kind == AccessKind::async_write && is_of_rows(touch) && begin_copies(touch)) return;
  Use use{touch};
  use.conflicts = &conflicts;
  if (touch_words(use, touch)) return;
  for_each_run(touch, [&](const Run& run) { static_cast<void>(use_run(use, run)); });
}

/// use_run() for whole lines that have no parts, which most accesses to global memory are of.
bool RaceMap::touch_lines(Use& use, const Run& run) {
  use.run = run;
  for (std::uint64_t at = run.offset; at < run.offset + run.size_bytes; at += kLineBytes) {
    RaceCell& line = line_at(at);
    const bool is_quiet = line.is_split() ? use_part<kLineBytes>(use, line, at, kLineBytes)
                                          : use_cell(use, line, at, kLineBytes);
    if (!is_quiet) return false;
  }
  return true;
}

bool RaceMap::touch_plain(const Touch& touch, bool is_uniform, std::uint64_t offset) {
  Use use{touch};
  if (is_uniform) return use_run(use, {offset, touch.size_bytes, 0, 1});
  if (rows_.empty() && offset % kLineBytes == 0 && touch.size_bytes >= 4) {
    return touch_lines(use, {offset, kLanes * touch.size_bytes, 0, kLanes});
  }
  return use_run(use, {offset, kLanes * touch.size_bytes, 0, kLanes});
}

void RaceMap::complete(const Touch& touch) {
  if (touch.kind == AccessKind::async_write && is_of_rows(touch) && end_copies(touch)) return;
  Use use{touch};
  use.is_completion = true;
  for_each_run(touch, [&](const Run& run) { static_cast<void>(use_run(use, run)); });
}

}  // namespace cpverify::sim
