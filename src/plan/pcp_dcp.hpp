#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Prefill context parallelism with the cache divided among the ranks of prefill and decode groups
/// together: strategy pcp_dcp. docs/strategies/pcp_dcp.md says what is computed.
void build_pcp_dcp(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
