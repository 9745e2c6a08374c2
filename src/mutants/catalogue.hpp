#pragma once

#include <cstdint>
#include <vector>

#include "mutants/defects.hpp"
#include "mutants/injection.hpp"

namespace cpverify::mutants {

/// A defect as users see it, and what puts it in.
struct Defect {
  DefectInfo info;
  Apply apply;
};

/// Every defect, in the order in which they are listed to users.
[[nodiscard]] std::vector<Defect> catalogue();

/// Those that only some strategies or models can have, as part of the catalogue.
[[nodiscard]] std::vector<Defect> strategy_defects();

/// Parameters that nearly every defect has.
[[nodiscard]] ParameterInfo step_parameter();
[[nodiscard]] ParameterInfo rank_parameter(std::int64_t default_value);

}  // namespace cpverify::mutants
