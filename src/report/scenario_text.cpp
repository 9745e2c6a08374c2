#include "report/scenario_text.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "report/cell_names.hpp"
#include "report/finding_text.hpp"
#include "report/rule_text.hpp"

namespace cpverify::report {
namespace {

/// Columns of one table; more cells make another table below. 6 * 15 columns fit 110 characters.
constexpr std::size_t kCellsPerTable = 6;
constexpr std::size_t kCheckWidth = 13;
/// Findings printed per scenario; --json has all of them.
constexpr std::size_t kFindingsShown = 20;

using Cells = std::vector<const CellVerdict*>;

std::string_view color_code(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::passed:
      return "\x1b[32m";
    case Outcome::failed:
    case Outcome::error:
      return "\x1b[31m";
    case Outcome::weak:
      return "\x1b[33m";
    case Outcome::refused:
    case Outcome::skipped:
      return "\x1b[2m";
  }
  return "";
}

/// "PASS 0.43": lse and output show their largest error / bound. Values of kernels that are
/// launched alone have no bound.
std::string result_text(const CheckResult& result, StrategyKind strategy) {
  if (result.outcome == Outcome::skipped) return "-";
  const bool has_ratio = strategy != StrategyKind::launch &&
                         (result.check == Check::lse || result.check == Check::output) &&
                         result.compared > 0;
  return has_ratio ? fmt::format("{} {:.3g}", name(result.outcome), result.worst_ratio)
                   : std::string{name(result.outcome)};
}

/// Why checks have no plain result: the same reason in the same cells is said once for all of them.
struct ReasonLine {
  std::string label;  ///< "-" for skipped.
  std::string reason;
  Cells cells;
  std::vector<std::string> checks;
};

std::vector<ReasonLine> reason_lines(const std::vector<CellVerdict>& cells) {
  std::map<std::pair<Check, std::pair<std::string, std::string>>, Cells> cells_by_reason;
  for (const CellVerdict& cell : cells) {
    for (const CheckResult& result : cell.checks) {
      if (result.outcome == Outcome::passed || result.outcome == Outcome::failed) continue;
      const std::string label{result.outcome == Outcome::skipped ? "-" : name(result.outcome)};
      cells_by_reason[{result.check, {label, result.reason}}].push_back(&cell);
    }
  }
  std::vector<ReasonLine> lines;
  for (const auto& entry : cells_by_reason) {
    ReasonLine line{entry.first.second.first, entry.first.second.second, entry.second, {}};
    const auto known = std::find_if(lines.begin(), lines.end(), [&line](const ReasonLine& other) {
      return other.label == line.label && other.reason == line.reason && other.cells == line.cells;
    });
    std::vector<std::string>& checks = known != lines.end() ? known->checks : line.checks;
    checks.emplace_back(name(entry.first.first));
    if (known == lines.end()) lines.push_back(std::move(line));
  }
  return lines;
}

/// A finding that several modes of a strategy share: what a plan does wrong does not depend on
/// data.
struct FindingGroup {
  const Finding* first = nullptr;
  std::vector<std::string> modes;
};

bool is_same_but_for_mode(const Finding& left, const Finding& right) {
  std::map<std::string, std::string> left_fields = left.fields();
  std::map<std::string, std::string> right_fields = right.fields();
  left_fields.erase("mode");
  right_fields.erase("mode");
  return left.count == right.count && left_fields == right_fields;
}

std::vector<FindingGroup> group_findings(const std::vector<Finding>& findings) {
  std::vector<FindingGroup> groups;
  for (const Finding& finding : findings) {
    const auto known = std::find_if(groups.begin(), groups.end(), [&](const FindingGroup& group) {
      return is_same_but_for_mode(*group.first, finding);
    });
    if (known != groups.end()) {
      known->modes.emplace_back(name(finding.mode));
    } else {
      groups.push_back({&finding, {std::string{name(finding.mode)}}});
    }
  }
  return groups;
}

/// "zigzag/random,count".
std::string cells_of(const FindingGroup& group) {
  const StrategyKind strategy = group.first->strategy;
  if (strategy == StrategyKind::launch) return std::string{name(strategy)};
  return fmt::format("{}/{}", name(strategy), fmt::join(group.modes, ","));
}

class ScenarioText {
 public:
  ScenarioText(const Verdict& verdict, bool use_color) : verdict_{verdict}, use_color_{use_color} {}

  std::string text() {
    line(fmt::format("{}  {}  {}", paint(verdict_.outcome, name(verdict_.outcome)),
                     verdict_.scenario, verdict_.path));
    for (std::size_t first = 0; first < verdict_.cells.size(); first += kCellsPerTable) {
      add_table(first, std::min(first + kCellsPerTable, verdict_.cells.size()));
    }
    add_reasons();
    add_rules();
    add_findings();
    if (!verdict_.repro.empty()) line("  repro: " + verdict_.repro);
    return text_;
  }

 private:
  [[nodiscard]] std::string paint(Outcome outcome, std::string_view content) const {
    return painted(outcome, content, use_color_);
  }

  void line(std::string_view content) {
    text_ += content;
    // Padding of the last column is not content.
    while (!text_.empty() && text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }

  /// Rows are checks, columns are cells.
  void add_table(std::size_t first, std::size_t last) {
    const std::vector<CellVerdict>& cells = verdict_.cells;
    std::vector<std::size_t> widths;
    std::string header = fmt::format("  {:<{}}", "check", kCheckWidth);
    for (std::size_t i = first; i < last; ++i) {
      widths.push_back(std::max<std::size_t>(cell_name(cells[i]).size(), 12) + 2);
      header += fmt::format("{:<{}}", cell_name(cells[i]), widths.back());
    }
    line(header);
    // A cell that is refused has no checks; the others have the same.
    const auto judged =
        std::find_if(cells.begin() + static_cast<std::ptrdiff_t>(first),
                     cells.begin() + static_cast<std::ptrdiff_t>(last),
                     [](const CellVerdict& cell) { return cell.outcome != Outcome::refused; });
    if (judged == cells.begin() + static_cast<std::ptrdiff_t>(last)) return;
    for (std::size_t row = 0; row < judged->checks.size(); ++row) {
      std::string text = fmt::format("  {:<{}}", name(judged->checks[row].check), kCheckWidth);
      for (std::size_t i = first; i < last; ++i) {
        if (cells[i].outcome == Outcome::refused) {
          const std::string_view label = row == 0 ? name(cells[i].outcome) : std::string_view{};
          text += paint(Outcome::refused, fmt::format("{:<{}}", label, widths[i - first]));
        }
        if (row >= cells[i].checks.size()) continue;
        const CheckResult& result = cells[i].checks[row];
        text += paint(result.outcome, fmt::format("{:<{}}", result_text(result, cells[i].strategy),
                                                  widths[i - first]));
      }
      line(text);
    }
  }

  void add_reasons() {
    for (const ReasonLine& entry : reason_lines(verdict_.cells)) {
      const std::string cells = cells_text(entry.cells, verdict_.cells);
      line(fmt::format("  {} {}: {}{}", entry.label, fmt::join(entry.checks, ", "), entry.reason,
                       cells.empty() ? "" : fmt::format(" ({})", cells)));
    }
  }

  /// Once per strategy: they do not depend on data.
  void add_rules() {
    std::set<StrategyKind> told;
    for (const CellVerdict& cell : verdict_.cells) {
      if (cell.rules.empty() || !told.insert(cell.strategy).second) continue;
      const bool is_refused = cell.outcome == Outcome::refused;
      line(is_refused ? fmt::format("  {}  {}", paint(Outcome::refused, name(cell.outcome)),
                                    name(cell.strategy))
                      : fmt::format("  CHANGED  {}", name(cell.strategy)));
      for (const BrokenRule& rule : cell.rules) text_ += rule_text(rule, 8);
    }
    for (const std::string& id : verdict_.unexpected_rules) {
      line(fmt::format("  {}  refused by {}, which is not expected", paint(Outcome::failed, "FAIL"),
                       id));
    }
  }

  void add_findings() {
    for (const std::string& missing : verdict_.missing_findings) {
      line(fmt::format("  {}  expected, not found: {}", paint(Outcome::failed, "FAIL"), missing));
    }
    add_list(Outcome::failed, "FAIL", verdict_.unexpected_findings);
    std::vector<Finding> expected;
    for (const CellVerdict& cell : verdict_.cells) {
      expected.insert(expected.end(), cell.findings.begin(), cell.findings.end());
    }
    // With expectations all met, what the subject did is still worth seeing.
    if (verdict_.unexpected_findings.empty()) add_list(Outcome::passed, "EXPECTED", expected);
  }

  void add_list(Outcome outcome, std::string_view label, const std::vector<Finding>& findings) {
    const std::vector<FindingGroup> groups = group_findings(findings);
    for (std::size_t i = 0; i < groups.size() && i < kFindingsShown; ++i) {
      const Finding& finding = *groups[i].first;
      line(fmt::format("  {}  {} {}: {}", paint(outcome, label), cells_of(groups[i]),
                       name(finding.check), finding.kind));
      line("        " + place_text(finding));
      if (!finding.detail.empty()) line("        " + finding.detail);
    }
    if (groups.size() > kFindingsShown) {
      line(fmt::format("  ... and {} more; --json lists all", groups.size() - kFindingsShown));
    }
  }

  const Verdict& verdict_;
  bool use_color_;
  std::string text_;
};

double worst_ratio(const Verdict& verdict, Check check) {
  double worst = 0.0;
  for (const CellVerdict& cell : verdict.cells) {
    for (const CheckResult& result : cell.checks) {
      if (result.check == check) worst = std::max(worst, result.worst_ratio);
    }
  }
  return worst;
}

}  // namespace

std::string painted(Outcome outcome, std::string_view content, bool use_color) {
  if (!use_color) return std::string{content};
  return fmt::format("{}{}\x1b[0m", color_code(outcome), content);
}

std::string scenario_text(const Verdict& verdict, bool use_color) {
  return ScenarioText{verdict, use_color}.text();
}

std::string scenario_line(const Verdict& verdict, bool use_color) {
  std::size_t checks = 0;
  std::size_t findings = 0;
  for (const CellVerdict& cell : verdict.cells) {
    checks += static_cast<std::size_t>(
        std::count_if(cell.checks.begin(), cell.checks.end(),
                      [](const CheckResult& result) { return result.outcome == Outcome::passed; }));
    findings += cell.findings.size();
  }
  const std::string facts = findings > 0 ? fmt::format("{} findings, as expected", findings)
                                         : fmt::format("{} checks, lse {:.3g}, output {:.3g}",
                                                       checks, worst_ratio(verdict, Check::lse),
                                                       worst_ratio(verdict, Check::output));
  return fmt::format("{}  {}  {}\n", painted(verdict.outcome, name(verdict.outcome), use_color),
                     verdict.path, facts);
}

}  // namespace cpverify::report
