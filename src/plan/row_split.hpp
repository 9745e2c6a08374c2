#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategies interleave and contiguous; whole steps on every rank where they do not apply. `plan`
/// has its ranks with their heads.
void build_interleave(const Problem& problem, const Step& step, Plan& plan);
void build_contiguous(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
