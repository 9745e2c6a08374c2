#pragma once

#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// One entry per world rank, with a CP group of more than one rank.
[[nodiscard]] std::vector<RankIntegers> ulysses_integers(const Problem& problem, const Step& step);

}  // namespace cpverify::reference
