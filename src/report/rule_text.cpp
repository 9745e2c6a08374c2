#include "report/rule_text.hpp"

#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cpverify/verdict.hpp"

namespace cpverify::report {

std::string rule_text(const BrokenRule& rule, std::size_t indent) {
  const std::string blanks(indent, ' ');
  return fmt::format("{0}{1} ({2}, {3}): {4}\n{0}  {5}\n{0}  instead: {6}\n", blanks, rule.id,
                     rule.stated_by, rule.effect, rule.violation, rule.meaning, rule.instead);
}

nlohmann::ordered_json rule_json(const BrokenRule& rule) {
  return {{"id", rule.id},           {"stated_by", rule.stated_by},
          {"effect", rule.effect},   {"violation", rule.violation},
          {"meaning", rule.meaning}, {"instead", rule.instead}};
}

}  // namespace cpverify::report
