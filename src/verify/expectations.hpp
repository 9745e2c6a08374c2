#pragma once

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::verify_detail {

/// Compares the findings of all cells with what the scenario expects, and sets the verdict's
/// outcome, missing_findings and unexpected_findings. Every expected finding must match at least
/// one found one, and every found one must be matched. When rules are expected to refuse, exactly
/// those must have refused a cell.
void settle(const Scenario& scenario, Verdict& verdict);

}  // namespace cpverify::verify_detail
