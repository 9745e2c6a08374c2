#pragma once

#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// The integers of strategy pcp_head_tail for a step with several CP ranks; world rank order.
[[nodiscard]] std::vector<RankIntegers> pcp_head_tail_integers(const Problem& problem,
                                                               const Step& step);

}  // namespace cpverify::reference
