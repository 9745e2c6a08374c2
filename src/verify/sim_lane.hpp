#pragma once

#include <memory>

#include "cpverify/reduction.hpp"
#include "gpu/lane.hpp"
#include "sim/driver/sim_driver.hpp"

namespace cpverify::verify_detail {

/// Simulated GPUs with NCCL, which takes sums as `reduction` says, built from the simulated
/// driver's events and copies.
[[nodiscard]] std::unique_ptr<gpu::Lane> open_sim_lane(const sim::SimOptions& options,
                                                       const ReductionSpec& reduction);

}  // namespace cpverify::verify_detail
