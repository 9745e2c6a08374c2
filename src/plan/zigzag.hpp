#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy zigzag: splits the step over the CP group of each tp rank where it can, and lets every
/// rank compute the whole step where not. `plan` has its ranks with their heads.
void build_zigzag(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
