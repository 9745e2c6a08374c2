#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/mma_accumulation.hpp"
#include "cpverify/schedule.hpp"
#include "gpu/driver_api.hpp"
#include "sim/machine/machine_code.hpp"

namespace cpverify {
struct Fault;
}

namespace cpverify::sim {

struct SimOptions {
  int device_count = 1;
  std::uint64_t instruction_budget =
      1ULL << 36;                         ///< Warp instructions of one launch, then Fault deadlock.
  std::size_t memory_bytes = 1ULL << 32;  ///< Of each device; beyond it cuMemAlloc fails.
  bool has_coverage = false;              ///< Count instructions: costs time.
  bool is_race_checked = false;           ///< Racecheck looks at every access of every launch.
  bool is_nan_checked = false;            ///< Nancheck looks at every instruction of every launch.
  ScheduleSpec schedule;                  ///< Of each launch, and of the streams.
  MmaAccumulation mma_accumulation = MmaAccumulation::fma_chain;
  VectorWidth vectors = widest_vectors();
};

/// The CUDA driver API on simulated GPUs, memcheck and initcheck always on.
class SimDriver : public gpu::DriverApi {
 public:
  /// Faults since the last call, in schedule order, one per (kernel, instruction, kind, device).
  [[nodiscard]] virtual std::vector<Fault> take_faults() = 0;
  /// What kernels executed since the last call; empty without SimOptions::has_coverage.
  [[nodiscard]] virtual Coverage take_coverage() = 0;
};

[[nodiscard]] std::unique_ptr<SimDriver> make_sim_driver(const SimOptions& options);

}  // namespace cpverify::sim
