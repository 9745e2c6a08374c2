#pragma once

#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// One entry per world rank, of a step that pcp_virtual_batch splits.
[[nodiscard]] std::vector<RankIntegers> pcp_virtual_batch_integers(const Problem& problem,
                                                                   const Step& step);

}  // namespace cpverify::reference
