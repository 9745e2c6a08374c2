#pragma once

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"

namespace cpverify::verify_detail {

/// Runs the launches of a scenario that has some, and judges what the checkers saw and what the
/// buffers hold. Throws InputError at the launch that names no entry of the module or gives it
/// other parameters than it has.
[[nodiscard]] CellVerdict judge_launches(const Scenario& scenario, const VerifyOptions& options);

}  // namespace cpverify::verify_detail
