#pragma once

#include <memory>

#include "gpu/lane.hpp"
#include "sim/driver/sim_driver.hpp"

namespace cpverify::verify_detail {

/// Simulated GPUs with NCCL built from the simulated driver's events and copies.
[[nodiscard]] std::unique_ptr<gpu::Lane> open_sim_lane(const sim::SimOptions& options);

}  // namespace cpverify::verify_detail
