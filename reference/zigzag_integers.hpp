#pragma once

#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// Whether zigzag splits the step: every row is a prefill of at least 2C new tokens.
[[nodiscard]] bool is_zigzag_on(const Problem& problem, const Step& step);

/// One entry per world rank, of a step that zigzag splits; with one attention call for both halves
/// (`is_combined`) or one for each.
[[nodiscard]] std::vector<RankIntegers> zigzag_integers(const Problem& problem, const Step& step,
                                                        bool is_combined);

}  // namespace cpverify::reference
