#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/mma_accumulation.hpp"
#include "cpverify/observer.hpp"
#include "cpverify/schedule.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/program.hpp"
#include "sim/machine/schedule.hpp"

namespace cpverify::sim {

class SpecialValueMemory;

/// Shared memory of a CTA without and with the opt-in attribute, static and dynamic together.
inline constexpr std::uint32_t kSharedBytesDefault = 48 * 1024;
inline constexpr std::uint32_t kSharedBytesMax = 227 * 1024;
/// CTAs of a cluster that every device of the architecture can run.
inline constexpr std::uint32_t kClusterMax = 8;

struct LaunchRequest {
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  /// CTAs of a cluster; zeros for what the kernel asks for, else one.
  std::array<std::uint32_t, 3> cluster{};
  std::uint32_t shared_bytes = 0;        ///< Dynamic.
  std::uint32_t shared_bytes_optin = 0;  ///< Value of the opt-in attribute; 0 when never set.
  /// KernelInfo::parameter_bytes bytes, each parameter at its offset.
  std::span<const std::byte> parameters;
  std::uint64_t instruction_budget = 1ULL << 36;  ///< Warp instructions.
  bool is_race_checked = false;                   ///< It costs time.
  /// Nancheck looks at every instruction unless this is null; it costs much time. Remembers where
  /// the NaNs in global memory come from, from launch to launch.
  SpecialValueMemory* special_values = nullptr;
  ScheduleSpec schedule;
  MmaAccumulation mma_accumulation = MmaAccumulation::fma_chain;  ///< Others are slower.
};

enum class LaunchStatus : std::uint8_t {
  completed,         ///< To the end; uninitialised reads may be among the faults.
  aborted,           ///< A fault stopped it: the last of the faults.
  invalid_value,     ///< Nothing ran: grid, block or parameter bytes are wrong.
  invalid_cluster,   ///< Nothing ran: the cluster does not fit the grid or the kernel.
  out_of_resources,  ///< Nothing ran: too many threads or too much shared memory.
};

struct LaunchResult {
  LaunchStatus status = LaunchStatus::completed;
  std::string detail;         ///< Why nothing ran.
  std::vector<Fault> faults;  ///< In schedule order, one per (instruction, kind).
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
  /// With racecheck: stores that would race if they did not store what is there already.
  std::uint64_t same_value_stores = 0;
};

/// The cluster that a launch has, and why it cannot have it ("" when it can).
struct ClusterChoice {
  std::array<std::uint32_t, 3> extent{1, 1, 1};
  std::string refusal;
};
[[nodiscard]] ClusterChoice choose_cluster(const KernelInfo& info,
                                           const std::array<std::uint32_t, 3>& grid,
                                           const std::array<std::uint32_t, 3>& cluster);

/// Runs a kernel to its end on the device of its program, in the order of its schedule. Same memory
/// and request: same bytes, same result. `observers` see the events of the run, besides
/// memcheck, initcheck and synccheck, which are always on.
[[nodiscard]] LaunchResult launch(GlobalMemory& memory, const Kernel& kernel,
                                  const LaunchRequest& request,
                                  std::span<Observer* const> observers = {});

/// The same in the order of a schedule that has not been used; of request.schedule only
/// `threads` is looked at.
[[nodiscard]] LaunchResult launch(GlobalMemory& memory, const Kernel& kernel,
                                  const LaunchRequest& request, Schedule& schedule,
                                  std::span<Observer* const> observers = {});

}  // namespace cpverify::sim
