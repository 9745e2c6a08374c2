#include "layout/config_rules.hpp"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/system.hpp"
#include "cpverify/verdict.hpp"
#include "layout/configuration.hpp"

namespace cpverify::layout {
namespace {

void add_broken(std::span<const ConfigRule> rules, const Configuration& configuration,
                std::vector<BrokenRule>& broken) {
  for (const ConfigRule& rule : rules) {
    if (!rule.applies_to(configuration.system)) continue;
    std::string violation = rule.violation(configuration);
    if (!violation.empty()) broken.push_back({&rule, std::move(violation)});
  }
}

std::string systems_text(const ConfigRule& rule) {
  std::string text;
  for (const System system : all_systems()) {
    if (!rule.applies_to(system)) continue;
    if (!text.empty()) text += ", ";
    text += name(system);
  }
  return text;
}

void add_table(std::string_view title, std::span<const ConfigRule> rules, std::string& page) {
  page += fmt::format(
      "\n## {}\n\n| rule | stated by | asked of | effect | meaning | instead |\n"
      "|---|---|---|---|---|---|\n",
      title);
  for (const ConfigRule& rule : rules) {
    page += fmt::format("| {} | {} | {} | {} | {} | {} |\n", rule.id, name(rule.origin),
                        systems_text(rule), name(rule.effect), rule.meaning, rule.instead);
  }
}

}  // namespace

std::string_view name(RuleEffect effect) noexcept {
  switch (effect) {
    case RuleEffect::refused:
      return "refused";
    case RuleEffect::changed:
      return "changed";
    case RuleEffect::unsafe:
      return "unsafe";
  }
  return "?";
}

std::vector<BrokenRule> broken_rules(const Configuration& configuration) {
  std::vector<BrokenRule> broken;
  add_broken(vllm_rules(), configuration, broken);
  add_broken(sglang_rules(), configuration, broken);
  add_broken(own_rules(), configuration, broken);
  return broken;
}

bool is_refused(const std::vector<BrokenRule>& broken) noexcept {
  return std::any_of(broken.begin(), broken.end(), [](const BrokenRule& entry) {
    return entry.rule->effect != RuleEffect::changed;
  });
}

cpverify::BrokenRule told(const BrokenRule& broken) {
  const ConfigRule& rule = *broken.rule;
  return {std::string{rule.id}, std::string{name(rule.origin)}, std::string{name(rule.effect)},
          broken.violation,     std::string{rule.meaning},      std::string{rule.instead}};
}

std::string rules_page() {
  std::string page =
      "# Configuration rules\n\n"
      "Generated from `src/layout/rules_vllm.cpp`, `src/layout/rules_sglang.cpp` and "
      "`src/layout/rules_own.cpp` by\n`cpverify plan --rules > docs/configuration_rules.md`; a "
      "test "
      "compares the two.\n\n"
      "`cpverify plan` reports every rule that a configuration breaks, not the first. refused: the "
      "system stops with an error.\nchanged: it goes on with another value; the plan is not "
      "refused. "
      "unsafe: no system checks it, and what it computes is wrong,\nhangs or was never verified; "
      "those stated by cpverify are ours. pcp is `--cp`.\n";
  add_table("vLLM and vllm-ascend", vllm_rules(), page);
  add_table("SGLang", sglang_rules(), page);
  add_table("Ours", own_rules(), page);
  page +=
      "\n## Not decided from a configuration\n\n| rule | stated by | meaning | why not |\n"
      "|---|---|---|---|\n";
  for (const UndecidedRule& rule : undecided_rules()) {
    page += fmt::format("| {} | {} | {} | {} |\n", rule.id, name(rule.origin), rule.meaning,
                        rule.reason);
  }
  return page;
}

}  // namespace cpverify::layout
