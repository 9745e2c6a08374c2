#include "verify/system_rules.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "layout/config_rules.hpp"
#include "layout/scenario_configuration.hpp"
#include "support/nearest.hpp"

namespace cpverify::verify_detail {
namespace {

std::vector<std::string> rule_ids() {
  std::vector<std::string> ids;
  for (const auto& rules : {layout::vllm_rules(), layout::sglang_rules(), layout::own_rules()}) {
    for (const layout::ConfigRule& rule : rules) ids.emplace_back(rule.id);
  }
  return ids;
}

}  // namespace

SystemRules system_rules(const Scenario& scenario, StrategyKind strategy) {
  SystemRules rules;
  if (!scenario.system || strategy == StrategyKind::single) return rules;
  const std::vector<layout::BrokenRule> broken =
      layout::broken_rules(layout::scenario_configuration(scenario, strategy));
  rules.is_refused = layout::is_refused(broken);
  rules.broken.reserve(broken.size());
  for (const layout::BrokenRule& entry : broken) rules.broken.push_back(layout::told(entry));
  return rules;
}

void check_expected_rules(const Scenario& scenario) {
  const std::vector<std::string> known = rule_ids();
  for (const ExpectedRule& expected : scenario.expect_refused) {
    if (std::find(known.begin(), known.end(), expected.id) != known.end()) continue;
    throw InputError{expected.where,
                     fmt::format("there is no configuration rule '{}'{}; `cpverify plan --rules` "
                                 "lists them",
                                 expected.id, did_you_mean(expected.id, known))};
  }
}

}  // namespace cpverify::verify_detail
