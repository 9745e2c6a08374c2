#pragma once

#include <memory>

#include "cpverify/scenario.hpp"
#include "cpverify/verify.hpp"
#include "gpu/lane.hpp"

namespace cpverify::verify_detail {

/// A fresh lane for one run: a fault leaves a real context unusable, and nothing may leak over.
/// Throws EnvironmentError when the lane is not there.
[[nodiscard]] std::unique_ptr<gpu::Lane> open_lane(const Scenario& scenario,
                                                   const VerifyOptions& options, int devices);

}  // namespace cpverify::verify_detail
