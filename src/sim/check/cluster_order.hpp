#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// The warps of all CTAs of one cluster, a vector clock for each. Times of labels number stretches:
/// what one warp does from one point at which others may come to know what it did to the next.
/// Barriers, mbarriers and the barrier of the cluster order; so do a fence, then an atomic or
/// strong store, and an atomic or strong load of the same place. An atomic acquires also without a
/// fence behind it, and lanes of a warp count as one: both may hide a race, neither invents one.
class ClusterOrder final : public RaceOrder {
 public:
  using Clocks = std::vector<std::uint32_t>;  ///< [warp of the cluster]
  /// Global memory or whose shared memory, and the address there.
  using Place = std::pair<std::uint32_t, std::uint64_t>;

  ClusterOrder(std::uint32_t ctas, std::uint32_t warps_per_cta);

  void begin_cluster();
  /// From here on the warp of the CTA with this rank runs. Says whether another one did before.
  bool run(std::uint32_t rank, std::uint32_t warp);
  [[nodiscard]] std::uint32_t time() const noexcept {
    return stretch_of_[runner_] * RaceLabel::kTick;
  }
  [[nodiscard]] std::uint32_t rank_at(std::uint32_t time) const noexcept {
    return stretches_[time / RaceLabel::kTick - base_].runner / warps_per_cta_;
  }

  /// A barrier of some warps of a CTA; bit i stands for warp i.
  void synchronise(std::uint32_t rank, std::uint32_t warps);
  /// Adds what the running warp did and knows to `target`; what it does next is not in it.
  void release(Clocks& target);
  /// The same for what it did and knew at its last fence.
  void release_fenced(Clocks& target) const;
  /// The running warp comes to know what was released.
  void acquire(const Clocks& source);
  void fence();
  /// Before an atomic or strong load, and behind an atomic or strong store, of one place.
  void acquire_at(const Place& place);
  void release_at(const Place& place, MemoryOrder order);

  [[nodiscard]] bool is_before(const RaceLabel& earlier) const noexcept override;
  [[nodiscard]] RaceTimes times() const noexcept override {
    const std::uint32_t first = (base_ + 1) * RaceLabel::kTick;
    return {time(), first, first, first, first, true, false, first};
  }

 private:
  struct Stretch {
    std::uint32_t runner = 0;
    std::uint32_t clock = 0;
  };

  void tick(std::uint32_t runner);

  std::uint32_t warps_per_cta_;
  std::uint32_t runner_ = 0;
  std::uint32_t base_ = 0;                 ///< Stretches up to here are of clusters before.
  std::vector<Stretch> stretches_;         ///< [time / kTick - base_]; none at the first.
  std::vector<std::uint32_t> stretch_of_;  ///< [warp]: its newest.
  std::vector<Clocks> known_;              ///< [of whom][of what], its own clock too.
  std::vector<Clocks> fenced_;             ///< What known_ was at the last fence.
  std::map<Place, Clocks> released_;
};

}  // namespace cpverify::sim
