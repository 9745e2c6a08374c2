#pragma once

#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::verify_detail {

/// What the scenario's system says of a strategy.
struct SystemRules {
  std::vector<BrokenRule> broken;  ///< All of them.
  bool is_refused = false;         ///< One stops the system, or is what no system checks.
};

/// Strategy single is the comparison for the others and no configuration of anybody: it breaks no
/// rule, and without a system nobody has one.
[[nodiscard]] SystemRules system_rules(const Scenario& scenario, StrategyKind strategy);

/// Throws InputError where `expect` names a rule that does not exist.
void check_expected_rules(const Scenario& scenario);

}  // namespace cpverify::verify_detail
