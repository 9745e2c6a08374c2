#pragma once

#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// One entry per tensor-parallel rank, of a step with the cache sharded over decode groups of two
/// ranks or more.
[[nodiscard]] std::vector<RankIntegers> dcp_integers(const Problem& problem, const Step& step,
                                                     StrategyKind strategy);

}  // namespace cpverify::reference
