#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "report/finding_text.hpp"
#include "report/report.hpp"

namespace cpverify::report {
namespace {

/// Columns of one table; more cells make another table below. 6 * 15 columns fit 110 characters.
constexpr std::size_t kCellsPerTable = 6;
constexpr std::size_t kCheckWidth = 13;
/// Findings printed per scenario; --json has all of them.
constexpr std::size_t kFindingsShown = 20;

struct Tally {
  std::uint64_t passed = 0;
  std::uint64_t failed = 0;
  std::uint64_t skipped = 0;

  /// WEAK and ERROR are failures: a gate that cannot decide must not open.
  void add(Outcome outcome) noexcept {
    switch (outcome) {
      case Outcome::passed:
        ++passed;
        break;
      case Outcome::failed:
      case Outcome::weak:
      case Outcome::error:
        ++failed;
        break;
      case Outcome::refused:
      case Outcome::skipped:
        ++skipped;
        break;
    }
  }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} passed, {} failed, {} skipped", passed, failed, skipped);
  }
};

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

std::string cell_name(const CellVerdict& cell) {
  return fmt::format("{}/{}", name(cell.strategy), name(cell.mode));
}

/// "PASS 0.43": lse and output show their largest error / bound.
std::string result_text(const CheckResult& result) {
  if (result.outcome == Outcome::skipped) return "-";
  const bool has_ratio =
      (result.check == Check::lse || result.check == Check::output) && result.compared > 0;
  return has_ratio ? fmt::format("{} {:.2g}", name(result.outcome), result.worst_ratio)
                   : std::string{name(result.outcome)};
}

class ScenarioText {
 public:
  ScenarioText(const Verdict& verdict, const ConsoleOptions& options)
      : verdict_{verdict}, options_{options} {}

  std::string text() {
    line(fmt::format("{}  {}  {}", painted(verdict_.outcome, name(verdict_.outcome)),
                     verdict_.scenario, verdict_.path));
    for (std::size_t first = 0; first < verdict_.cells.size(); first += kCellsPerTable)
      add_table(first, std::min(first + kCellsPerTable, verdict_.cells.size()));
    add_reasons();
    add_findings();
    if (!verdict_.repro.empty()) line("  repro: " + verdict_.repro);
    return text_;
  }

 private:
  void line(std::string_view content) {
    text_ += content;
    // Padding of the last column is not content.
    while (!text_.empty() && text_.back() == ' ') text_.pop_back();
    text_ += '\n';
  }

  [[nodiscard]] std::string painted(Outcome outcome, std::string_view content) const {
    if (!options_.use_color) return std::string{content};
    return fmt::format("{}{}\x1b[0m", color_code(outcome), content);
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
    for (std::size_t row = 0; row < cells[first].checks.size(); ++row) {
      std::string text = fmt::format("  {:<{}}", name(cells[first].checks[row].check), kCheckWidth);
      for (std::size_t i = first; i < last; ++i) {
        if (row >= cells[i].checks.size()) continue;
        const CheckResult& result = cells[i].checks[row];
        const std::string padded = fmt::format("{:<{}}", result_text(result), widths[i - first]);
        text += painted(result.outcome, padded);
      }
      line(text);
    }
  }

  /// Why a check was skipped or weak, and where: one line for all checks with the same reason in
  /// the same cells.
  void add_reasons() {
    using Reason = std::pair<std::string, std::string>;  // Label and reason.
    std::map<std::pair<std::size_t, Reason>, std::vector<std::string>> cells_by_check;
    for (const CellVerdict& cell : verdict_.cells) {
      for (std::size_t i = 0; i < cell.checks.size(); ++i) {
        const CheckResult& result = cell.checks[i];
        if (result.outcome == Outcome::passed || result.outcome == Outcome::failed) continue;
        const std::string label{result.outcome == Outcome::skipped ? "-" : name(result.outcome)};
        cells_by_check[{i, {label, result.reason}}].push_back(cell_name(cell));
      }
    }
    std::vector<std::pair<std::pair<Reason, std::vector<std::string>>, std::vector<std::string>>>
        lines;
    for (const auto& [key, cells] : cells_by_check) {
      const std::pair<Reason, std::vector<std::string>> what{key.second, cells};
      const std::string check{name(verdict_.cells.front().checks[key.first].check)};
      const auto known = std::find_if(lines.begin(), lines.end(),
                                      [&what](const auto& entry) { return entry.first == what; });
      if (known != lines.end()) {
        known->second.push_back(check);
      } else {
        lines.push_back({what, {check}});
      }
    }
    for (const auto& [what, checks] : lines) {
      const auto& [reason, cells] = what;
      const bool is_everywhere = cells.size() == verdict_.cells.size();
      line(fmt::format("  {} {}: {}{}", reason.first, fmt::join(checks, ", "), reason.second,
                       is_everywhere ? "" : fmt::format(" ({})", fmt::join(cells, ", "))));
    }
  }

  void add_findings() {
    for (const std::string& missing : verdict_.missing_findings)
      line(fmt::format("  {}  expected, not found: {}", painted(Outcome::failed, "FAIL"), missing));
    add_list(Outcome::failed, "FAIL", verdict_.unexpected_findings);
    std::vector<Finding> expected;
    for (const CellVerdict& cell : verdict_.cells)
      expected.insert(expected.end(), cell.findings.begin(), cell.findings.end());
    // With expectations all met, what the subject did is still worth seeing.
    if (verdict_.unexpected_findings.empty()) add_list(Outcome::passed, "EXPECTED", expected);
  }

  void add_list(Outcome outcome, std::string_view label, const std::vector<Finding>& findings) {
    for (std::size_t i = 0; i < findings.size() && i < kFindingsShown; ++i) {
      const Finding& finding = findings[i];
      line(fmt::format("  {}  {}/{} {}: {}", painted(outcome, label), name(finding.strategy),
                       name(finding.mode), name(finding.check), finding.kind));
      line("        " + place_text(finding));
      if (!finding.detail.empty()) line("        " + finding.detail);
    }
    if (findings.size() > kFindingsShown)
      line(fmt::format("  ... and {} more; --json lists all", findings.size() - kFindingsShown));
  }

  const Verdict& verdict_;
  const ConsoleOptions& options_;
  std::string text_;
};

}  // namespace

std::string console_text(const std::vector<Verdict>& verdicts, const ConsoleOptions& options) {
  std::string text;
  Tally scenarios;
  Tally checks;
  for (const Verdict& verdict : verdicts) {
    text += ScenarioText{verdict, options}.text();
    text += '\n';
    scenarios.add(verdict.outcome);
    for (const CellVerdict& cell : verdict.cells) {
      for (const CheckResult& result : cell.checks) checks.add(result.outcome);
    }
  }
  text += fmt::format("lse, output: largest error / bound. checks: {}\n", checks.text());
  text += scenarios.text() + '\n';
  return text;
}

}  // namespace cpverify::report
