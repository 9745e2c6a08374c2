#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy ulysses: all-to-alls within the CP group of each tp rank turn some tokens of all heads
/// into all tokens of some heads, and back. `plan` has its ranks with their heads.
void build_ulysses(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
