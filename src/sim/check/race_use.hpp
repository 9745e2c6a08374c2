#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/race_cell.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"

/// What the parts of RaceMap share: what they ask about one label.
namespace cpverify::sim {

/// Of RaceLabel::packed.
struct RaceUseBits {
  static constexpr std::uint32_t kStrong = 1U << 10;
  static constexpr std::uint32_t kAsync = 1U << 11;
  static constexpr std::uint32_t kWarp = 31U << 5;
  static constexpr std::uint32_t kKind = kWarp | 7U << 10;
};

struct RaceMap::Use {
  explicit Use(const Touch& touch)
      : label{touch.label},
        times{*touch.times},
        order{touch.order},
        shift{static_cast<std::uint8_t>(std::countr_zero(touch.size_bytes))},
        is_write{touch.kind != AccessKind::read && touch.kind != AccessKind::async_read} {
    label.time |= shift;
  }

  RaceLabel label;  ///< Of lane 0.
  const RaceTimes& times;
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

/// What needs no more than a look at the times: it counts for nothing, is behind a barrier of all
/// warps, or is of this warp since then.
inline bool RaceMap::is_settled(const Use& use, const RaceLabel& earlier) noexcept {
  const RaceTimes& times = use.times;
  if (earlier.time < times.oldest) return true;
  if (earlier.is_async() || earlier.time < times.home) return false;
  return earlier.time < times.first ||
         ((earlier.time ^ times.now) < RaceLabel::kTick && earlier.is_of_warp_of(use.label));
}

/// Whether the warp has done the same there since anything was ordered: what has come between, but
/// for its own copies, has been looked at when it came.
inline bool RaceMap::is_repeated(const Use& use, const RaceCell& cell) noexcept {
  const RaceLabel& first = use.is_write ? cell.writes[0] : cell.reads[0];
  const std::uint32_t difference = (first.time ^ use.label.time) / RaceLabel::kTick |
                                   ((first.packed ^ use.label.packed) & RaceUseBits::kKind);
  if (difference != 0 || cell.writes[0].time >= RaceCell::kCrowd) return false;
  const std::array<RaceLabel, 2>& others = use.is_write ? cell.reads : cell.writes;
  return ((first.packed | others[0].packed | others[1].packed) & RaceUseBits::kAsync) == 0;
}

/// What is settled, and for strong accesses those of their own CTA.
inline bool RaceMap::is_harmless(const Use& use, const RaceLabel& earlier) noexcept {
  if (is_settled(use, earlier)) return true;
  const bool is_mark = earlier.time >= RaceCell::kCrowd;
  return use.label.is_strong() && earlier.is_strong() && earlier.time >= use.times.home && !is_mark;
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
  if ((earlier.time ^ times.now) < RaceLabel::kTick && is_same_warp) return true;
  // Nothing that comes is behind another CTA, or behind one warp only.
  if (times.is_partial) return false;
  return earlier.time < times.home || (is_same_warp && earlier.time >= times.since);
}

/// Whether everything that races with `earlier` also races with `label`, or has already raced.
inline bool RaceMap::is_replaced(const Use& use, const RaceLabel& label,
                                 const RaceLabel& earlier) noexcept {
  if (earlier.time < use.times.oldest) return true;
  if (earlier.time < use.times.forgotten && !earlier.is_async()) return true;
  return label.strength() <= earlier.strength() && is_before(use, earlier);
}

}  // namespace cpverify::sim
