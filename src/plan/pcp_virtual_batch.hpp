#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy pcp_virtual_batch: prefills cut into rows over the CP ranks, decodes on every rank, the
/// whole cache on each. `plan` has its ranks with their heads.
void build_pcp_virtual_batch(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
