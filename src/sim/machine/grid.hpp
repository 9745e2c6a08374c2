#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/machine/cta.hpp"
#include "sim/machine/schedule.hpp"
#include "sim/machine/spin.hpp"

namespace cpverify::sim {

/// Runs the CTAs of a launch in the order of a schedule, cluster by cluster. A few are resident at
/// a time; when all of their warps wait for others, one more is started, up to a bound.
class GridRunner {
 public:
  /// Both must outlive the object.
  GridRunner(LaunchState& launch, Schedule& schedule);

  /// To the end of the grid, or until the launch is aborted.
  void run();

 private:
  /// What is known of the warp of a candidate besides what the schedule sees.
  struct Progress {
    std::uint64_t instructions = 0;  ///< Since it stopped last, or was found not to spin.
    Spin spin = Spin::none;
  };
  struct Slot {
    std::unique_ptr<CtaRunner> runner;
    std::size_t living = 0;  ///< Warps that have not exited.
  };
  /// Slots of the CTAs of one cluster, which start and end together, follow each other.
  using Clusters = std::vector<std::unique_ptr<Cluster>>;

  [[nodiscard]] Warp& warp(std::size_t candidate) noexcept { return *warps_[candidate]; }
  [[nodiscard]] bool can_add_slot() const noexcept;
  void add_cluster();
  void start_cluster(std::size_t cluster);
  void start_cta(std::size_t slot, std::uint64_t cluster_index);
  [[nodiscard]] bool is_ready(std::size_t candidate) noexcept;
  void enter(std::size_t candidate);
  void leave(std::size_t candidate);
  void take(const Turn& turn);
  void run_stretch(const Turn& turn);
  void probe_running(std::size_t candidate);
  void probe(std::size_t candidate);
  void stop(std::size_t candidate);
  bool open_barriers(std::size_t slot);
  bool open_cluster(std::size_t slot);
  bool refill(std::size_t slot);
  [[nodiscard]] bool end_round();
  void resolve_spinning();
  [[nodiscard]] bool is_every_ready_warp(Spin least) const noexcept;
  [[nodiscard]] bool is_still_endless();
  [[nodiscard]] std::vector<Cta*> living_ctas();

  LaunchState* launch_;
  Schedule* schedule_;
  std::array<std::uint32_t, 3> grid_;
  std::uint32_t cluster_size_;
  std::uint64_t cluster_count_;
  std::uint64_t started_ = 0;  ///< Clusters.
  std::size_t warps_per_cta_;
  std::size_t places_per_warp_;  ///< Candidates: 1, or one for each lane that may run on its own.
  std::size_t places_per_cta_;
  std::uint32_t register_bytes_;
  std::size_t living_ = 0;           ///< CTAs that have not ended.
  std::uint32_t entered_lanes_ = 0;  ///< Of the fragment that runs, when its turn began.
  std::vector<Slot> slots_;
  Clusters clusters_;
  std::vector<Candidate> candidates_;
  std::vector<Warp*> warps_;        ///< Of each candidate.
  std::vector<Progress> progress_;  ///< One per candidate.
};

}  // namespace cpverify::sim
