#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/verdict.hpp"
#include "report/report.hpp"
#include "report/scenario_text.hpp"

namespace cpverify::report {
namespace {

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

/// Checks of all cells. Those that failed in a scenario that passed had to fail.
std::string checks_line(const std::vector<Verdict>& verdicts) {
  Tally checks;
  std::uint64_t expected = 0;
  for (const Verdict& verdict : verdicts) {
    for (const CellVerdict& cell : verdict.cells) {
      for (const CheckResult& result : cell.checks) {
        const bool is_expected =
            result.outcome == Outcome::failed && verdict.outcome == Outcome::passed;
        expected += is_expected ? 1 : 0;
        checks.add(is_expected ? Outcome::passed : result.outcome);
      }
    }
  }
  checks.passed -= expected;
  const std::string found = expected > 0 ? fmt::format(", {} failed as expected", expected) : "";
  return fmt::format("lse, output: largest error / bound. checks: {}{}\n", checks.text(), found);
}

}  // namespace

std::string console_text(const std::vector<Verdict>& verdicts, const ConsoleOptions& options) {
  std::string text;
  Tally scenarios;
  for (const Verdict& verdict : verdicts) {
    const bool is_brief =
        verdicts.size() > 1 && !options.is_verbose && verdict.outcome == Outcome::passed;
    text += is_brief ? scenario_line(verdict, options.use_color)
                     : scenario_text(verdict, options.use_color) + '\n';
    scenarios.add(verdict.outcome);
  }
  if (!text.empty() && text.compare(text.size() - 2, 2, "\n\n") != 0) text += '\n';
  text += checks_line(verdicts);
  text += scenarios.text() + '\n';
  return text;
}

}  // namespace cpverify::report
