#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategies ring and ring_contiguous: queries stay where they are, K and V blocks go around the
/// CP group of each tp rank, and what a rank finds in each is merged. `plan` has its ranks with
/// their heads.
void build_ring(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
