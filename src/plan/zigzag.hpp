#pragma once

#include <cstdint>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Adds to a rank its part of a step that zigzag splits. `group` is the index of its CP group.
void build_zigzag_step(const Problem& problem, const Step& step, std::uint32_t group,
                       RankPlan& rank);

}  // namespace cpverify::plan
