#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy single: tp ranks, each with the whole step.
void build_single(const Problem& problem, const Step& step, Plan& plan);

/// Adds to a rank what it does when it computes the whole step itself: strategy single, and every
/// rank of a CP strategy while CP is off.
void build_whole_step(const Problem& problem, const Step& step, RankPlan& rank);

}  // namespace cpverify::plan
