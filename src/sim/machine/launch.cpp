#include "sim/machine/launch.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "cpverify/schedule.hpp"
#include "sim/check/cluster_racecheck.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/haltcheck.hpp"
#include "sim/check/initcheck.hpp"
#include "sim/check/lane_racecheck.hpp"
#include "sim/check/memcheck.hpp"
#include "sim/check/nan_flow.hpp"
#include "sim/check/racecheck.hpp"
#include "sim/check/synccheck.hpp"
#include "sim/check/undefined_flow.hpp"
#include "sim/isa/kernel_info.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/grid.hpp"
#include "sim/machine/kernel.hpp"
#include "sim/machine/launch_counts.hpp"
#include "sim/machine/schedule.hpp"

namespace cpverify::sim {
namespace {

struct Refusal {
  LaunchStatus status;
  std::string detail;
};

/// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
std::optional<Refusal> check_block(const KernelInfo& info, const LaunchRequest& request) {
  const auto& block = request.block;
  const auto& grid = request.grid;
  if (block[0] == 0 || block[1] == 0 || block[2] == 0 || grid[0] == 0 || grid[1] == 0 ||
      grid[2] == 0) {
    return Refusal{LaunchStatus::invalid_value, "an extent of grid or block is 0"};
  }
  if (block[0] > 1024 || block[1] > 1024 || block[2] > 64) {
    return Refusal{LaunchStatus::invalid_value,
                   fmt::format("block is {}x{}x{}, at most 1024x1024x64 is possible", block[0],
                               block[1], block[2])};
  }
  if (grid[0] > 0x7fffffffU || grid[1] > 65535 || grid[2] > 65535) {
    return Refusal{LaunchStatus::invalid_value,
                   fmt::format("grid is {}x{}x{}, at most 2147483647x65535x65535 is possible",
                               grid[0], grid[1], grid[2])};
  }
  const std::uint32_t threads = block[0] * block[1] * block[2];
  if (threads > info.max_threads) {
    return Refusal{
        threads > 1024 ? LaunchStatus::invalid_value : LaunchStatus::out_of_resources,
        fmt::format("block has {} threads, at most {} are possible", threads, info.max_threads)};
  }
  if (info.required_block[0] != 0 && block != info.required_block) {
    return Refusal{
        LaunchStatus::invalid_value,
        fmt::format("block is {}x{}x{}, .reqntid asks for {}x{}x{}", block[0], block[1], block[2],
                    info.required_block[0], info.required_block[1], info.required_block[2])};
  }
  return std::nullopt;
}

std::optional<Refusal> check(const KernelInfo& info, const LaunchRequest& request) {
  if (auto refusal = check_block(info, request)) return refusal;
  const ClusterChoice cluster = choose_cluster(info, request.grid, request.cluster);
  if (!cluster.refusal.empty()) return Refusal{LaunchStatus::invalid_cluster, cluster.refusal};
  if (request.parameters.size() != info.parameter_bytes) {
    return Refusal{LaunchStatus::invalid_value,
                   fmt::format("{} parameter bytes given, kernel has {}", request.parameters.size(),
                               info.parameter_bytes)};
  }
  const std::uint64_t shared =
      std::uint64_t{info.static_shared_bytes} + std::uint64_t{request.shared_bytes};
  const bool is_dynamic_allowed =
      shared <= kSharedBytesDefault || request.shared_bytes <= request.shared_bytes_optin;
  if (shared > kSharedBytesMax || !is_dynamic_allowed) {
    return Refusal{LaunchStatus::out_of_resources,
                   fmt::format("{} bytes of shared memory, at most {} are possible", shared,
                               shared > kSharedBytesMax ? kSharedBytesMax : kSharedBytesDefault)};
  }
  return std::nullopt;
}

/// Those that a launch needs.
class RaceCheckers {
 public:
  /// Adds them to the observers of the launch.
  void begin(LaunchState& state, FaultTable& faults) {
    const LaunchRequest& request = *state.request;
    const std::uint32_t threads = request.block[0] * request.block[1] * request.block[2];
    const std::uint32_t warps = (threads + 31) / 32;
    const std::uint32_t cluster_size = state.cluster[0] * state.cluster[1] * state.cluster[2];
    if (cluster_size > 1) {
      const ClusterRacecheck::Shape shape{cluster_size, warps};
      state.observers.push_back(&clusters_.emplace(faults, *state.code, shape));
      return;
    }
    state.observers.push_back(&ctas_.emplace(faults, *state.code, warps));
    if (request.schedule.threads != ThreadScheduling::independent) return;
    state.observers.push_back(&lanes_.emplace(faults, *state.code, warps));
  }
  [[nodiscard]] std::uint64_t same_value_stores() const noexcept {
    if (clusters_) return clusters_->same_value_stores();
    return ctas_ ? ctas_->same_value_stores() : 0;
  }

 private:
  std::optional<Racecheck> ctas_;
  std::optional<LaneRacecheck> lanes_;
  std::optional<ClusterRacecheck> clusters_;
};

}  // namespace

/// Source: PTX ISA, "Cluster Dimension Directives"; CUDA C++ Programming Guide, "Thread Block
/// Clusters".
ClusterChoice choose_cluster(const KernelInfo& info, const std::array<std::uint32_t, 3>& grid,
                             const std::array<std::uint32_t, 3>& cluster) {
  constexpr std::array<std::uint32_t, 3> kNone{};
  const bool is_given = cluster != kNone;
  const bool is_required = info.required_cluster != kNone;
  ClusterChoice choice;
  if (is_given) choice.extent = cluster;
  if (!is_given && is_required) choice.extent = info.required_cluster;
  const auto& extent = choice.extent;
  const auto name = [](const std::array<std::uint32_t, 3>& e) {
    return fmt::format("{}x{}x{}", e[0], e[1], e[2]);
  };
  const std::uint64_t size = std::uint64_t{extent[0]} * extent[1] * extent[2];
  const std::uint32_t most =
      info.max_cluster != 0 ? std::min(info.max_cluster, kClusterMax) : kClusterMax;
  if (is_given && is_required && cluster != info.required_cluster) {
    choice.refusal = fmt::format("cluster is {}, .reqnctapercluster asks for {}", name(cluster),
                                 name(info.required_cluster));
  } else if (info.has_explicit_cluster && !is_given && !is_required) {
    choice.refusal = "the launch names no cluster, .explicitcluster asks for one";
  } else if (extent[0] == 0 || extent[1] == 0 || extent[2] == 0 || extent[0] > most ||
             extent[1] > most || extent[2] > most || size > most) {
    choice.refusal = fmt::format("cluster is {}, 1 to {} CTAs are possible", name(extent), most);
  } else if (grid[0] % extent[0] != 0 || grid[1] % extent[1] != 0 || grid[2] % extent[2] != 0) {
    choice.refusal = fmt::format("cluster is {}, which does not divide the grid of {}",
                                 name(extent), name(grid));
  }
  return choice;
}

LaunchResult launch(GlobalMemory& memory, const Kernel& kernel, const LaunchRequest& request,
                    std::span<Observer* const> observers) {
  return launch(memory, kernel, request, *make_schedule(request.schedule), observers);
}

LaunchResult launch(GlobalMemory& memory, const Kernel& kernel, const LaunchRequest& request,
                    Schedule& schedule, std::span<Observer* const> observers) {
  LaunchResult result;
  if (const auto refusal = check(kernel.code.info, request)) {
    result.status = refusal->status;
    result.detail = fmt::format("{}: {}", kernel.code.info.name, refusal->detail);
    return result;
  }
  FaultTable faults;
  Memcheck memcheck{faults};
  Initcheck initcheck{faults};
  Haltcheck haltcheck{faults};
  Synccheck synccheck{faults};

  LaunchState state;
  state.memory = &memory;
  state.code = &kernel.code;
  state.flow = &kernel.flow;
  state.machine = kernel.machine;
  state.straight = kernel.straight.data();
  state.refreshed = kernel.refreshed;
  state.request = &request;
  state.device = kernel.device;
  state.observers = {&memcheck, &initcheck, &haltcheck, &synccheck};
  UndefinedFlow undefined{state};
  state.flow_checkers.undefined = &undefined;
  std::optional<NanFlow> nan_flow;
  if (request.special_values != nullptr) {
    state.flow_checkers.special_values = &nan_flow.emplace(state, *request.special_values);
  }
  state.cluster = choose_cluster(kernel.code.info, request.grid, request.cluster).extent;
  RaceCheckers race_checkers;
  if (request.is_race_checked) race_checkers.begin(state, faults);
  state.observers.insert(state.observers.end(), observers.begin(), observers.end());
  for (Observer* const observer : state.observers) {
    if (observer->wants_accesses()) state.access_observers.push_back(observer);
  }
  state.last_allocation.resize(kernel.code.insns.size());
  state.parameters = CheckedBytes{request.parameters.size()};
  std::copy(request.parameters.begin(), request.parameters.end(), state.parameters.data());
  state.parameters.mark_written(0, request.parameters.size());
  state.budget_left = request.instruction_budget;
  state.is_independent = request.schedule.threads == ThreadScheduling::independent;
  state.prefers_high_lanes = schedule.prefers_high_lanes();
  prepare_counts(state);

  GridRunner{state, schedule}.run();
  report_counts(state);
  result.status = state.is_aborted ? LaunchStatus::aborted : LaunchStatus::completed;
  if (nan_flow) result.faults = nan_flow->take_faults();
  // Last, since the fault that stopped the launch is the last of all.
  const std::vector<Fault> others = faults.take();
  result.faults.insert(result.faults.end(), others.begin(), others.end());
  result.warp_instructions = state.warp_instructions;
  result.thread_instructions = state.thread_instructions;
  result.same_value_stores = race_checkers.same_value_stores();
  return result;
}

}  // namespace cpverify::sim
