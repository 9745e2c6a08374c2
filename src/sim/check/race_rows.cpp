#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "sim/check/race_cell.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/check/race_use.hpp"

/// Rows of shared memory, one per lane, 16 bytes each: what matrix products live from.
namespace cpverify::sim {
namespace {

/// Whether some of all labels, and no mark, are not behind it.
class AnyAhead {
 public:
  void add(const std::array<RaceLabel, 2>& labels) {
    newest_ = std::max({newest_, labels[0].time, labels[1].time});
    flags_ |= labels[0].packed | labels[1].packed;
  }
  [[nodiscard]] bool is_any(const RaceTimes& times) const {
    return newest_ >= times.first || (flags_ & RaceUseBits::kAsync) != 0;
  }

 private:
  std::uint32_t newest_ = 0;
  std::uint32_t flags_ = 0;
};

/// What labels of one kind of the rows have in common.
struct Common {
  std::uint32_t oldest = ~0U;
  std::uint32_t newest = 0;
  std::uint32_t flags = 0;               ///< Some have them.
  std::uint32_t least_difference = ~0U;  ///< From the number of the warp that runs: 0 when some,
  std::uint32_t differences = 0;         ///< 0 when all are its.

  /// Nobody since the last barrier of all warps.
  [[nodiscard]] bool are_behind(const RaceTimes& times) const {
    return newest < times.first && (flags & RaceUseBits::kAsync) == 0;
  }
  /// Somebody since then, ordered like all who come but themselves, and weak.
  [[nodiscard]] bool are_plain(const RaceTimes& times) const {
    return oldest >= times.since && (flags & (RaceUseBits::kStrong | RaceUseBits::kAsync)) == 0;
  }
};

}  // namespace

bool RaceMap::touch_rows(const Touch& touch,
                         const std::array<std::uint32_t, 32>& offsets) noexcept {
  const Use use{touch};
  AnyAhead writes;
  for (const std::uint32_t offset : offsets) writes.add(row_at(offset).writes);
  if (writes.is_any(use.times)) return false;
  if (add_rows(use, offsets)) return true;
  RaceLabel label = use.label;
  for (const std::uint32_t offset : offsets) {
    add_read(use, row_at(offset), label);
    ++label.packed;
  }
  return true;
}

/// Where all rows have the same readers: none since the last barrier, one warp, or two. False when
/// it is something else, and nothing has happened.
bool RaceMap::add_rows(const Use& use, const std::array<std::uint32_t, 32>& offsets) noexcept {
  const auto look = [&](std::size_t reader) {
    Common common;
    for (const std::uint32_t offset : offsets) {
      const RaceLabel& label = row_at(offset).reads[reader];
      const std::uint32_t difference = (label.packed ^ use.label.packed) & RaceUseBits::kWarp;
      common.oldest = std::min(common.oldest, label.time);
      common.newest = std::max(common.newest, label.time);
      common.flags |= label.packed;
      common.least_difference = std::min(common.least_difference, difference);
      common.differences |= difference;
    }
    return common;
  };
  const auto set = [&](std::size_t reader) {
    RaceLabel label = use.label;
    for (const std::uint32_t offset : offsets) {
      row_at(offset).reads[reader] = label;
      ++label.packed;
    }
  };
  const RaceTimes& times = use.times;
  const Common first = look(0);
  if (first.are_behind(times)) {
    set(0);
    return true;
  }
  if (times.is_partial || !first.are_plain(times)) return false;
  if (first.differences == 0) return true;
  if (first.least_difference == 0) return false;
  const Common second = look(1);
  if (second.are_behind(times)) {
    set(1);
    return true;
  }
  if (!second.are_plain(times)) return false;
  // Whoever is behind one of two warps is not behind the other.
  bool are_two = true;
  for (const std::uint32_t offset : offsets) {
    const auto& [one, other] = row_at(offset).reads;
    are_two = are_two && !one.is_of_warp_of(other);
  }
  return are_two;
}

/// Whether a touch is of 32 rows of shared memory.
bool RaceMap::is_of_rows(const Touch& touch) const noexcept {
  return !rows_.empty() && touch.lanes == ~0U && touch.size_bytes == kRowBytes;
}

/// Copies into rows that nobody has touched since the last barrier. False when somebody has, and
/// nothing has happened.
bool RaceMap::begin_copies(const Touch& touch) noexcept {
  const Use use{touch};
  AnyAhead all;
  for (const std::uint64_t offset : touch.addresses) {
    const RaceCell& cell = row_at(offset);
    all.add(cell.writes);
    all.add(cell.reads);
  }
  if (all.is_any(use.times)) return false;
  RaceLabel label = use.label;
  for (const std::uint64_t offset : touch.addresses) {
    row_at(offset).writes[0] = label;
    ++label.packed;
  }
  return true;
}

/// The only copies into 32 rows. False when there are others, and nothing has happened.
bool RaceMap::end_copies(const Touch& touch) noexcept {
  RaceLabel label = touch.label;
  std::uint32_t differences = 0;
  std::uint32_t others = 0;
  for (const std::uint64_t offset : touch.addresses) {
    const RaceCell& cell = row_at(offset);
    differences |=
        (cell.writes[0].packed ^ label.packed) & (RaceUseBits::kAsync | RaceUseBits::kWarp | 31U);
    differences |= static_cast<std::uint32_t>(cell.writes[0].time < touch.times->home ||
                                              cell.writes[0].time >= RaceCell::kCrowd);
    others |= cell.writes[1].packed;
    ++label.packed;
  }
  if (differences != 0 || (others & RaceUseBits::kAsync) != 0) return false;
  for (const std::uint64_t offset : touch.addresses) {
    row_at(offset).writes[0].complete(touch.times->now);
  }
  return true;
}

}  // namespace cpverify::sim
