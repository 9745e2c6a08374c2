#pragma once

#include <functional>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy single: tp ranks, each with the whole step.
void build_single(const Problem& problem, const Step& step, Plan& plan);

/// Adds to a rank what it does when it computes the whole step itself: strategy single, and every
/// rank of a CP strategy while CP is off.
void build_whole_step(const Problem& problem, const Step& step, RankPlan& rank);

/// Every rank of a strategy: by `build_split` while the plan has CP on, else with the whole step.
void build_ranks(const Problem& problem, const Step& step, Plan& plan,
                 const std::function<void(RankPlan&)>& build_split);

}  // namespace cpverify::plan
