#pragma once

#include <string>
#include <vector>

#include "cpverify/verdict.hpp"

namespace cpverify::report {

/// "zigzag/random".
[[nodiscard]] std::string cell_name(const CellVerdict& cell);

/// Some of a verdict's cells, as a reader would say it: "" for all of them, "single" for every mode
/// of a strategy, "random, poison" for modes of every strategy, else "single/random,
/// zigzag/poison".
[[nodiscard]] std::string cells_text(const std::vector<const CellVerdict*>& some,
                                     const std::vector<CellVerdict>& all);

}  // namespace cpverify::report
