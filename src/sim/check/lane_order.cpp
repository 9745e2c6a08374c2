#include "sim/check/lane_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

void LaneOrder::begin_cta() {
  std::fill(warps_.begin(), warps_.end(), WarpClock{});
  releases_.clear();
}

/// At the end of time everything counts as ordered.
void LaneOrder::tick(WarpClock& warp) noexcept {
  if (warp.clock < std::numeric_limits<std::uint32_t>::max()) {
    ++warp.clock;
  } else {
    warp.all = warp.clock;
  }
}

void LaneOrder::synchronise(std::uint32_t warp, std::uint32_t lanes) noexcept {
  WarpClock& own = warps_[warp];
  if (lanes == ~0U) {
    own.all = own.clock;
    tick(own);
    return;
  }
  Times joined{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1U) == 0) continue;
    for (std::size_t i = 0; i < kLanes; ++i) joined[i] = std::max(joined[i], own.known[lane][i]);
    joined[lane] = own.clock;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1U) != 0) own.known[lane] = joined;
  }
  tick(own);
}

void LaneOrder::acquire(std::uint64_t address, std::uint32_t warp, std::uint32_t lane) {
  const auto found = releases_.find(address);
  if (found == releases_.end() || found->second.warp != warp) return;
  Times& known = warps_[warp].known[lane];
  for (std::size_t i = 0; i < kLanes; ++i) known[i] = std::max(known[i], found->second.times[i]);
}

void LaneOrder::release(std::uint64_t address, std::uint32_t warp, std::uint32_t lane) {
  WarpClock& own = warps_[warp];
  Release& release = releases_[address];
  if (release.warp != warp) release = {warp, {}};
  for (std::size_t i = 0; i < kLanes; ++i) {
    release.times[i] = std::max(release.times[i], own.known[lane][i]);
  }
  release.times[lane] = own.clock;
  tick(own);
}

bool LaneOrder::is_before(const RaceLabel& earlier, std::uint32_t warp,
                          std::uint32_t lane) const noexcept {
  if (earlier.time == RaceLabel::kNobody || earlier.lane() == lane) return true;
  const WarpClock& own = warps_[warp];
  return earlier.time <= own.all || earlier.time <= own.known[lane][earlier.lane()];
}

}  // namespace cpverify::sim
