#pragma once

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// Strategy pcp_head_tail: prefills padded to 2P chunks of which every CP rank has two, decodes on
/// every rank, the cache sharded over the CP group of each tp rank. `plan` has its ranks with their
/// heads; the scenario divides the cache among the CP ranks.
void build_pcp_head_tail(const Problem& problem, const Step& step, Plan& plan);

}  // namespace cpverify::plan
