#pragma once

#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// Whether ring splits the step: some request has a prompt to compute, and there is a ring.
[[nodiscard]] bool is_ring_on(const Problem& problem, const Step& step);

/// One entry per world rank of a step that is split. `strategy` is ring or ring_contiguous.
[[nodiscard]] std::vector<RankIntegers> ring_integers(const Problem& problem, const Step& step,
                                                      StrategyKind strategy);

}  // namespace cpverify::reference
