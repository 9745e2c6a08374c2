#include "sim/check/cluster_order.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "cpverify/observer.hpp"
#include "sim/check/race_order.hpp"

namespace cpverify::sim {
namespace {

void add(ClusterOrder::Clocks& target, const ClusterOrder::Clocks& more) {
  target.resize(std::max(target.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) target[i] = std::max(target[i], more[i]);
}

}  // namespace

ClusterOrder::ClusterOrder(std::uint32_t ctas, std::uint32_t warps_per_cta)
    : warps_per_cta_{warps_per_cta},
      stretches_(1),
      stretch_of_(std::size_t{ctas} * warps_per_cta),
      known_(stretch_of_.size()),
      fenced_(stretch_of_.size()) {
  begin_cluster();
}

void ClusterOrder::begin_cluster() {
  runner_ = 0;
  base_ += static_cast<std::uint32_t>(stretches_.size() - 1);
  stretches_.resize(1);
  released_.clear();
  for (std::uint32_t runner = 0; runner < known_.size(); ++runner) {
    known_[runner].assign(known_.size(), 0);
    fenced_[runner].clear();
    tick(runner);
  }
}

void ClusterOrder::tick(std::uint32_t runner) {
  stretch_of_[runner] = base_ + static_cast<std::uint32_t>(stretches_.size());
  stretches_.push_back({runner, ++known_[runner][runner]});
}

bool ClusterOrder::run(std::uint32_t rank, std::uint32_t warp) {
  const std::uint32_t runner = rank * warps_per_cta_ + warp;
  return std::exchange(runner_, runner) != runner;
}

void ClusterOrder::synchronise(std::uint32_t rank, std::uint32_t warps) {
  Clocks joined;
  for (std::uint32_t warp = 0; warp < warps_per_cta_; ++warp) {
    if ((warps >> warp & 1U) != 0) add(joined, known_[rank * warps_per_cta_ + warp]);
  }
  for (std::uint32_t warp = 0; warp < warps_per_cta_; ++warp) {
    if ((warps >> warp & 1U) == 0) continue;
    known_[rank * warps_per_cta_ + warp] = joined;
    tick(rank * warps_per_cta_ + warp);
  }
}

void ClusterOrder::release(Clocks& target) {
  add(target, known_[runner_]);
  tick(runner_);
}

void ClusterOrder::release_fenced(Clocks& target) const {
  add(target, fenced_[runner_]);
}

void ClusterOrder::acquire(const Clocks& source) {
  add(known_[runner_], source);
}

void ClusterOrder::fence() {
  fenced_[runner_] = known_[runner_];
  tick(runner_);
}

void ClusterOrder::acquire_at(const Place& place) {
  const auto known = released_.find(place);
  if (known != released_.end()) acquire(known->second);
}

void ClusterOrder::release_at(const Place& place, MemoryOrder order) {
  if (order >= MemoryOrder::release) {
    release(released_[place]);
  } else if (!fenced_[runner_].empty()) {
    release_fenced(released_[place]);
  }
}

bool ClusterOrder::is_before(const RaceLabel& earlier) const noexcept {
  if (earlier.time == RaceLabel::kNobody) return true;
  if (earlier.is_async()) return false;
  const Stretch& stretch = stretches_[earlier.time / RaceLabel::kTick - base_];
  return stretch.runner == runner_ || stretch.clock <= known_[runner_][stretch.runner];
}

}  // namespace cpverify::sim
