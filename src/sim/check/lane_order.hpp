#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// The lanes of each warp of a CTA, ordered by bar.warp.sync, barriers, and atomics or strong
/// accesses of one address. Times are those of the warp's clock, which each of these moves on.
class LaneOrder {
 public:
  explicit LaneOrder(std::uint32_t warp_count) : warps_(warp_count) {}

  void begin_cta();
  [[nodiscard]] std::uint32_t time(std::uint32_t warp) const noexcept { return warps_[warp].clock; }
  /// These lanes meet.
  void synchronise(std::uint32_t warp, std::uint32_t lanes) noexcept;
  /// A lane reads or writes an address strongly. Every strong write counts as a release and every
  /// strong read as an acquire, with or without a fence: it may hide a race, never invent one.
  void acquire(std::uint64_t address, std::uint32_t warp, std::uint32_t lane);
  void release(std::uint64_t address, std::uint32_t warp, std::uint32_t lane);
  /// Whether an access by a lane of `warp` is before what lane `lane` of it does now.
  [[nodiscard]] bool is_before(const RaceLabel& earlier, std::uint32_t warp,
                               std::uint32_t lane) const noexcept;

 private:
  static constexpr std::size_t kLanes = 32;
  using Times = std::array<std::uint32_t, kLanes>;  ///< Up to when each lane is known.

  struct WarpClock {
    std::uint32_t clock = 1;
    std::uint32_t all = 0;  ///< Up to here everything is known to all lanes.
    std::array<Times, kLanes> known{};
  };
  struct Release {
    std::uint32_t warp = 0;
    Times times{};
  };

  static void tick(WarpClock& warp) noexcept;

  std::vector<WarpClock> warps_;
  std::map<std::uint64_t, Release> releases_;  ///< By address; the last warp's.
};

}  // namespace cpverify::sim
