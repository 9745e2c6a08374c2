#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy dcp: the KV cache sharded over decode groups, visibility and combination as
/// Scenario::dcp says. `plan` has its ranks with their heads.
void build_dcp(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
