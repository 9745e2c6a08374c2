#include "verify/system_rules.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/system.hpp"
#include "cpverify/verdict.hpp"
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

std::vector<BrokenRule> broken_rules(const Scenario& scenario, StrategyKind strategy) {
  if (!scenario.system || strategy == StrategyKind::single) return {};
  std::vector<BrokenRule> broken;
  for (const layout::BrokenRule& entry :
       layout::broken_rules(layout::scenario_configuration(scenario, strategy))) {
    broken.push_back({std::string{entry.rule->id}, std::string{name(entry.rule->origin)},
                      std::string{name(entry.rule->effect)}, entry.violation,
                      std::string{entry.rule->meaning}, std::string{entry.rule->instead}});
  }
  return broken;
}

bool is_refused(const std::vector<BrokenRule>& rules) {
  return std::any_of(rules.begin(), rules.end(), [](const BrokenRule& rule) {
    return rule.effect != name(layout::RuleEffect::changed);
  });
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
