#pragma once

#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::verify_detail {

/// All configuration rules that running the strategy on the scenario's system would break. Strategy
/// single is the comparison for the others and no configuration of anybody: it breaks none.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const Scenario& scenario, StrategyKind strategy);

/// Whether one of them stops the system, or is what no system checks.
[[nodiscard]] bool is_refused(const std::vector<BrokenRule>& rules);

/// Throws InputError where `expect` names a rule that does not exist.
void check_expected_rules(const Scenario& scenario);

}  // namespace cpverify::verify_detail
