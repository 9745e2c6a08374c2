#include "sim/machine/grid.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/fragments.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/schedule.hpp"
#include "sim/machine/spin.hpp"
#include "sim/machine/stall_report.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// CTAs that wait for each other must all be resident, as on a GPU, whose bound is like these.
constexpr std::size_t kMaxResidentCtas = 256;
constexpr std::size_t kMaxResidentBytes = std::size_t{1} << 28;

std::array<std::uint32_t, 3> cta_id(std::uint64_t index, const std::array<std::uint32_t, 3>& grid) {
  return {static_cast<std::uint32_t>(index % grid[0]),
          static_cast<std::uint32_t>(index / grid[0] % grid[1]),
          static_cast<std::uint32_t>(index / grid[0] / grid[1])};
}

std::uint64_t count_ctas(const std::array<std::uint32_t, 3>& grid) {
  return std::uint64_t{grid[0]} * grid[1] * grid[2];
}

/// A warp that goes on may have completed a barrier with bar.arrive.
bool has_arrivals(const Cta& cta) {
  return std::any_of(cta.arrivals.begin(), cta.arrivals.end(),
                     [](const BarrierArrivals& arrivals) { return arrivals.threads > 0; });
}

}  // namespace

GridRunner::GridRunner(LaunchState& launch, Schedule& schedule)
    : launch_{&launch},
      schedule_{&schedule},
      grid_{launch.request->grid},
      cluster_size_{launch.cluster[0] * launch.cluster[1] * launch.cluster[2]},
      cluster_count_{count_ctas(grid_) / cluster_size_},
      warps_per_cta_{(std::size_t{launch.request->block[0]} * launch.request->block[1] *
                          launch.request->block[2] +
                      kLanes - 1) /
                     kLanes},
      places_per_warp_{launch.is_independent ? std::size_t{kLanes} : 1},
      places_per_cta_{warps_per_cta_ * places_per_warp_},
      register_bytes_{launch.code->registers.size_bytes()} {}

void GridRunner::run() {
  const std::uint64_t resident =
      std::min<std::uint64_t>(std::max(1U, schedule_->resident_ctas()), count_ctas(grid_));
  while (slots_.size() < resident && (slots_.empty() || can_add_slot())) add_cluster();
  while ((living_ > 0 || started_ < cluster_count_) && !launch_->is_aborted) {
    const std::optional<Turn> turn = schedule_->pick(candidates_);
    if (turn) {
      take(*turn);
    } else if (!end_round()) {
      report_barrier_deadlock(living_ctas());
      return;
    }
  }
}

bool GridRunner::is_ready(std::size_t candidate) noexcept {
  const Warp& candidates_warp = warp(candidate);
  if (!launch_->is_independent) return candidates_warp.state == WarpState::ready;
  return is_fragment_ready(candidates_warp, static_cast<std::uint32_t>(candidate % kLanes));
}

/// Of independent threads, a candidate is a fragment of its warp: it is what the warp runs until
/// leave().
void GridRunner::enter(std::size_t candidate) {
  if (!launch_->is_independent) return;
  load_fragment(warp(candidate), static_cast<std::uint32_t>(candidate % kLanes));
  entered_lanes_ = warp(candidate).active;
}

void GridRunner::leave(std::size_t candidate) {
  if (!launch_->is_independent) return;
  const bool is_same = warp(candidate).active == entered_lanes_;
  store_fragment(warp(candidate));
  const std::size_t first = candidate - candidate % kLanes;
  for (std::size_t i = first; i < first + kLanes; ++i) {
    const bool was_ready = candidates_[i].is_ready;
    candidates_[i].is_ready = is_ready(i);
    const bool is_unchanged = was_ready && candidates_[i].is_ready && (i != candidate || is_same);
    if (is_unchanged) continue;
    candidates_[i].is_spinning = false;
    progress_[i] = {};
  }
}

bool GridRunner::can_add_slot() const noexcept {
  if (started_ == cluster_count_ || slots_.size() >= kMaxResidentCtas) return false;
  // Racecheck knows one CTA at a time, as every observer of accesses may.
  if (!launch_->access_observers.empty()) return false;
  const std::size_t local_bytes = std::size_t{launch_->code->info.local_bytes} * kLanes;
  const std::size_t cta_bytes =
      slots_.front().runner->cta().shared.size() + warps_per_cta_ * (register_bytes_ + local_bytes);
  return (slots_.size() + cluster_size_) * cta_bytes <= kMaxResidentBytes;
}

void GridRunner::add_cluster() {
  clusters_.push_back(std::make_unique<Cluster>());
  for (std::uint32_t rank = 0; rank < cluster_size_; ++rank) {
    slots_.push_back({std::make_unique<CtaRunner>(*launch_), 0});
    clusters_.back()->ctas.push_back(&slots_.back().runner->cta());
  }
  candidates_.resize(slots_.size() * places_per_cta_);
  for (std::size_t i = warps_.size(); i < candidates_.size(); ++i) {
    Cta& cta = slots_[i / places_per_cta_].runner->cta();
    warps_.push_back(&cta.warps[i % places_per_cta_ / places_per_warp_]);
  }
  progress_.resize(candidates_.size());
  start_cluster(clusters_.size() - 1);
}

void GridRunner::start_cluster(std::size_t cluster) {
  const std::uint64_t index = schedule_->cta(started_, cluster_count_);
  ++started_;
  const std::array<std::uint32_t, 3> extents{grid_[0] / launch_->cluster[0],
                                             grid_[1] / launch_->cluster[1],
                                             grid_[2] / launch_->cluster[2]};
  clusters_[cluster]->id = cta_id(index, extents);
  clusters_[cluster]->phase = 0;
  for (std::uint32_t rank = 0; rank < cluster_size_; ++rank) {
    start_cta(cluster * cluster_size_ + rank, index);
  }
}

void GridRunner::start_cta(std::size_t slot, std::uint64_t cluster_index) {
  Cluster& cluster = *clusters_[slot / cluster_size_];
  const auto rank = static_cast<std::uint32_t>(slot % cluster_size_);
  std::array<std::uint32_t, 3> id = cta_id(rank, launch_->cluster);
  for (std::size_t i = 0; i < id.size(); ++i) id[i] += cluster.id[i] * launch_->cluster[i];
  ++living_;
  slots_[slot].living = warps_per_cta_;
  slots_[slot].runner->reset(id, cluster, rank);
  const std::uint64_t index = cluster_index * cluster_size_ + rank;
  for (std::size_t i = 0; i < places_per_cta_; ++i) {
    const std::size_t candidate = slot * places_per_cta_ + i;
    candidates_[candidate] = {index * places_per_cta_ + i, is_ready(candidate), false};
    progress_[candidate] = {};
  }
}

void GridRunner::take(const Turn& turn) {
  enter(turn.candidate);
  run_stretch(turn);
  if (launch_->is_aborted) return;
  leave(turn.candidate);
  if (launch_->is_aborted) return;
  const std::size_t slot = turn.candidate / places_per_cta_;
  if (warp(turn.candidate).state != WarpState::ready) {
    stop(turn.candidate);
    if (schedule_->has_rounds()) return;
    open_barriers(slot);
    refill(slot);
    return;
  }
  if (!schedule_->has_rounds() && (cluster_size_ > 1 || has_arrivals(slots_[slot].runner->cta()))) {
    open_barriers(slot);
  }
  if (progress_[turn.candidate].spin != Spin::none && is_every_ready_warp(Spin::polling)) {
    resolve_spinning();
  }
}

/// The last instructions of a long stretch show whether the warp spins; a spinning one gets no
/// more than those.
void GridRunner::run_stretch(const Turn& turn) {
  Warp& running = warp(turn.candidate);
  Progress& progress = progress_[turn.candidate];
  if (progress.spin != Spin::none) {
    probe_running(turn.candidate);
    return;
  }
  const std::uint64_t before = launch_->warp_instructions;
  const std::uint64_t limit = std::min(turn.instructions, kSliceInstructions - kProbeInstructions);
  if (turn.points == 0) {
    launch_->machine->run_warp(running, limit);
  } else {
    launch_->machine->run_warp_to_point(running, limit, turn.points);
  }
  progress.instructions += launch_->warp_instructions - before;
  const bool has_polled = std::exchange(running.has_polled, false);
  const bool has_stopped = running.state != WarpState::ready || running.active == 0;
  if (launch_->is_aborted || has_stopped) return;
  if (!has_polled && progress.instructions < kSliceInstructions - kProbeInstructions) return;
  progress.instructions = 0;
  probe_running(turn.candidate);
}

void GridRunner::probe(std::size_t candidate) {
  enter(candidate);
  probe_running(candidate);
  if (!launch_->is_aborted) leave(candidate);
}

void GridRunner::probe_running(std::size_t candidate) {
  progress_[candidate].spin = run_probe(warp(candidate), register_bytes_);
  candidates_[candidate].is_spinning = progress_[candidate].spin != Spin::none;
}

void GridRunner::stop(std::size_t candidate) {
  Warp& stopped = warp(candidate);
  candidates_[candidate].is_ready = false;
  candidates_[candidate].is_spinning = false;
  progress_[candidate] = {};
  if (stopped.state == WarpState::done) {
    Slot& slot = slots_[candidate / places_per_cta_];
    --slot.living;
    if (slot.living > 0) return;
    --living_;
    report_pending_barriers(slot.runner->cta());
    finish(slot.runner->cta());
    return;
  }
  if (stopped.state != WarpState::at_barrier) return;
  const ExecutionPoint point = execution_point(stopped, stopped.next - 1);
  for (Observer* const observer : launch_->observers) {
    observer->on_barrier(point, stopped.barrier, BarrierEvent::arrive);
  }
}

bool GridRunner::open_barriers(std::size_t slot) {
  const bool has_opened = open_cluster(slot);
  if (!slots_[slot].runner->open_barriers()) return has_opened;
  for (std::size_t i = 0; i < places_per_cta_; ++i) {
    const std::size_t candidate = slot * places_per_cta_ + i;
    candidates_[candidate].is_ready = is_ready(candidate);
  }
  return true;
}

/// The barrier of the cluster that the CTA of a slot is in.
bool GridRunner::open_cluster(std::size_t slot) {
  const std::size_t cluster = slot / cluster_size_;
  if (!open_cluster_barrier(*clusters_[cluster])) return false;
  const std::size_t places = cluster_size_ * places_per_cta_;
  for (std::size_t i = cluster * places; i < (cluster + 1) * places; ++i) {
    candidates_[i].is_ready = is_ready(i);
  }
  return true;
}

/// The next cluster takes the place of one that has ended.
bool GridRunner::refill(std::size_t slot) {
  if (started_ == cluster_count_) return false;
  const std::size_t first = slot / cluster_size_ * cluster_size_;
  for (std::size_t i = first; i < first + cluster_size_; ++i) {
    if (slots_[i].living > 0) return false;
  }
  start_cluster(first / cluster_size_);
  return true;
}

/// False when nobody can go on.
bool GridRunner::end_round() {
  bool can_go_on = false;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    can_go_on = open_barriers(slot) || can_go_on;
    can_go_on = refill(slot) || can_go_on;
  }
  return can_go_on || living_ == 0 ||
         std::any_of(candidates_.begin(), candidates_.end(),
                     [](const Candidate& candidate) { return candidate.is_ready; });
}

bool GridRunner::is_every_ready_warp(Spin least) const noexcept {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (candidates_[i].is_ready && progress_[i].spin < least) return false;
  }
  return true;
}

/// All warps that are ready wait for others to write. Those may be at an open barrier or in a CTA
/// that has not started.
void GridRunner::resolve_spinning() {
  bool has_opened = false;
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    has_opened = open_barriers(slot) || has_opened;
    has_opened = refill(slot) || has_opened;
  }
  if (has_opened) return;
  if (can_add_slot()) {
    add_cluster();
    return;
  }
  if (!is_every_ready_warp(Spin::endless) || !is_still_endless() || launch_->is_aborted) return;
  report_livelock(living_ctas(), (cluster_count_ - started_) * cluster_size_);
}

std::vector<Cta*> GridRunner::living_ctas() {
  std::vector<Cta*> ctas;
  for (const Slot& slot : slots_) {
    if (slot.living > 0) ctas.push_back(&slot.runner->cta());
  }
  return ctas;
}

/// A warp was found to spin before others wrote. When every one of them repeats its state and none
/// writes, nothing will ever change again.
bool GridRunner::is_still_endless() {
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (!candidates_[i].is_ready) continue;
    probe(i);
    if (launch_->is_aborted) return false;
    if (warp(i).state != WarpState::ready) {
      stop(i);
      return false;
    }
    if (progress_[i].spin != Spin::endless) return false;
  }
  return true;
}

}  // namespace cpverify::sim
