#pragma once

#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// Whether interleave splits the step: two ranks or more, and a token for each.
[[nodiscard]] bool is_interleave_on(const Problem& problem, const Step& step);
/// Whether contiguous does: the same, and no row in decode.
[[nodiscard]] bool is_contiguous_on(const Problem& problem, const Step& step);

/// One entry per world rank, of a step that is split.
[[nodiscard]] std::vector<RankIntegers> interleave_integers(const Problem& problem,
                                                            const Step& step);
[[nodiscard]] std::vector<RankIntegers> contiguous_integers(const Problem& problem,
                                                            const Step& step);

}  // namespace cpverify::reference
