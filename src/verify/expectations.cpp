#include "verify/expectations.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::verify_detail {
namespace {

/// Paths of sources depend on where the kernels were compiled, and details carry numbers: for these
/// two, containing the expected text is enough.
bool is_contained_match(const std::string& field) {
  return field == "detail" || field == "source";
}

/// The part of a source behind its last colon.
std::string line_of(const Finding& finding) {
  const std::size_t colon = finding.source.rfind(':');
  return colon == std::string::npos ? std::string{} : finding.source.substr(colon + 1);
}

bool matches(const ExpectedFinding& expected, const Finding& finding) {
  if (expected.check && *expected.check != finding.check) return false;
  const std::map<std::string, std::string> fields = finding.fields();
  return std::all_of(expected.fields.begin(), expected.fields.end(), [&](const auto& wanted) {
    if (wanted.first == "line") return line_of(finding) == wanted.second;
    const auto found = fields.find(wanted.first);
    if (found == fields.end()) return false;
    return is_contained_match(wanted.first) ? found->second.find(wanted.second) != std::string::npos
                                            : found->second == wanted.second;
  });
}

std::string describe(const ExpectedFinding& expected) {
  std::string text = fmt::format("{}:{}:", expected.where.file, expected.where.line);
  if (expected.check) text += fmt::format(" check={}", name(*expected.check));
  for (const auto& field : expected.fields) {
    text += fmt::format(" {}={}", field.first, field.second);
  }
  return text;
}

Outcome worst_cell(const std::vector<CellVerdict>& cells) {
  const auto has = [&cells](Outcome outcome) {
    return std::any_of(cells.begin(), cells.end(),
                       [outcome](const CellVerdict& cell) { return cell.outcome == outcome; });
  };
  for (const Outcome outcome : {Outcome::error, Outcome::failed, Outcome::weak, Outcome::refused}) {
    if (has(outcome)) return outcome;
  }
  return has(Outcome::passed) ? Outcome::passed : Outcome::skipped;
}

/// The rules that refuse must be those that the scenario expects, when it expects any.
void settle_rules(const Scenario& scenario, Verdict& verdict) {
  if (scenario.expect_refused.empty()) return;
  std::set<std::string> found;
  for (const CellVerdict& cell : verdict.cells) {
    if (cell.outcome != Outcome::refused) continue;
    for (const BrokenRule& rule : cell.rules) found.insert(rule.id);
  }
  for (const ExpectedRule& expected : scenario.expect_refused) {
    if (found.erase(expected.id) > 0) continue;
    verdict.missing_findings.push_back(
        fmt::format("{}:{}: refused by {}", expected.where.file, expected.where.line, expected.id));
  }
  verdict.unexpected_rules.assign(found.begin(), found.end());
}

}  // namespace

void settle(const Scenario& scenario, Verdict& verdict) {
  std::vector<std::size_t> hits(scenario.expect.size());
  for (const CellVerdict& cell : verdict.cells) {
    for (const Finding& finding : cell.findings) {
      bool is_expected = false;
      for (std::size_t i = 0; i < hits.size(); ++i) {
        if (!matches(scenario.expect[i], finding)) continue;
        ++hits[i];
        is_expected = true;
      }
      if (!is_expected) verdict.unexpected_findings.push_back(finding);
    }
  }
  for (std::size_t i = 0; i < hits.size(); ++i) {
    if (hits[i] == 0) verdict.missing_findings.push_back(describe(scenario.expect[i]));
  }
  settle_rules(scenario, verdict);
  if (scenario.expect.empty() && scenario.expect_refused.empty()) {
    verdict.outcome = worst_cell(verdict.cells);
    return;
  }
  const bool is_as_expected = verdict.missing_findings.empty() &&
                              verdict.unexpected_findings.empty() &&
                              verdict.unexpected_rules.empty();
  if (!is_as_expected) {
    verdict.outcome = Outcome::failed;
    return;
  }
  // Without findings that must occur, the cells that are not refused must be as good as ever.
  const Outcome worst = worst_cell(verdict.cells);
  const bool is_settled = !scenario.expect.empty() || worst == Outcome::refused;
  verdict.outcome = is_settled ? Outcome::passed : worst;
}

}  // namespace cpverify::verify_detail
