#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"
#include "judge/checks.hpp"
#include "judge/finding_log.hpp"
#include "judge/judge.hpp"
#include "run/runner.hpp"
#include "support/check.hpp"

namespace cpverify::judge {
namespace {

struct CheckEntry {
  Check check;
  bool needs_run;
  CheckReport (*judge)(const CellEvidence&);
};

/// In the order of judgement, which is the order of enum Check.
constexpr std::array<CheckEntry, 13> kChecks{{
    {.check = Check::metadata, .needs_run = false, .judge = check_metadata},
    {.check = Check::collectives, .needs_run = false, .judge = check_collectives},
    {.check = Check::memcheck, .needs_run = true, .judge = check_memcheck},
    {.check = Check::initcheck, .needs_run = true, .judge = check_initcheck},
    {.check = Check::racecheck, .needs_run = true, .judge = check_racecheck},
    {.check = Check::synccheck, .needs_run = true, .judge = check_synccheck},
    {.check = Check::kv_pool, .needs_run = true, .judge = check_kv_pool},
    {.check = Check::count, .needs_run = true, .judge = check_count},
    {.check = Check::poison, .needs_run = true, .judge = check_poison},
    {.check = Check::lse, .needs_run = true, .judge = check_lse},
    {.check = Check::output, .needs_run = true, .judge = check_output},
    {.check = Check::bitwise, .needs_run = true, .judge = check_bitwise},
    {.check = Check::determinism, .needs_run = true, .judge = check_determinism},
}};

/// Findings that the runner made under one check.
CheckReport checker_report(const CellEvidence& evidence, Check check) {
  if (!evidence.run->has_checkers) return not_applicable("the lane has no checkers");
  CheckReport report;
  const std::size_t steps = std::min(evidence.run->steps.size(), evidence.plans->size());
  for (std::size_t step = 0; step < steps; ++step) {
    for (const RankPlan& rank : (*evidence.plans)[step].ranks)
      report.compared += rank.operations.size();
  }
  report.reason = fmt::format("{} operations watched", report.compared);
  for (const Finding& finding : evidence.run->findings) {
    if (finding.check == check) report.findings.push_back(finding);
  }
  return report;
}

/// A run that ended early must not pass because there is little left to compare. Its reason is
/// among the runner's findings unless the scenario does not ask for their check.
void add_incomplete_run(const CellEvidence& evidence, Check check, CheckReport& report) {
  const run::RunCapture& run = *evidence.run;
  const std::size_t complete = complete_steps(run);
  if (complete >= evidence.plans->size()) return;
  std::string reason = "no fault was recorded";
  for (const Finding& finding : run.findings) {
    if (evidence.problem->scenario.asks_for(finding.check)) return;
    reason = fmt::format("{} ({} is not asked for)", finding.kind, name(finding.check));
  }
  FindingLog log{check, evidence.strategy, evidence.mode};
  Finding* finding = log.note({.kind = "run_incomplete",
                               .step = static_cast<std::uint32_t>(complete),
                               .rank = std::nullopt,
                               .buffer = std::string{},
                               .request = std::string{}});
  finding->detail =
      fmt::format("{} of {} steps completed: {}", complete, evidence.plans->size(), reason);
  report.findings.insert(report.findings.end(), log.findings().begin(), log.findings().end());
}

CheckResult check_result(Check check, const CheckReport& report) {
  CheckResult result;
  result.check = check;
  result.reason = report.reason;
  result.compared = report.compared;
  result.worst_ratio = report.worst_ratio;
  if (!report.findings.empty()) {
    result.outcome = Outcome::failed;
  } else if (!report.is_applicable) {
    result.outcome = Outcome::skipped;
  } else if (report.compared == 0) {
    result.outcome = Outcome::weak;
    result.reason = "nothing was compared";
  } else {
    result.outcome = report.is_weak ? Outcome::weak : Outcome::passed;
  }
  return result;
}

Outcome cell_outcome(const CellEvidence& evidence, const CellVerdict& verdict) {
  const auto has = [&verdict](Outcome outcome) {
    return std::ranges::any_of(
        verdict.checks, [outcome](const CheckResult& result) { return result.outcome == outcome; });
  };
  if (has(Outcome::failed)) return Outcome::failed;
  if (evidence.run == nullptr) return Outcome::error;
  if (has(Outcome::weak)) return Outcome::weak;
  return has(Outcome::passed) ? Outcome::passed : Outcome::skipped;
}

/// Judges a cell check by check; the first one with findings ends it.
class CellJudge {
 public:
  explicit CellJudge(const CellEvidence& evidence) : evidence_{evidence} {}

  CellVerdict judge() {
    verdict_.strategy = evidence_.strategy;
    verdict_.mode = evidence_.mode;
    if (evidence_.run != nullptr) verdict_.digest = fmt::format("{:016x}", evidence_.run->digest);
    for (const CheckEntry& entry : kChecks)
      verdict_.checks.push_back(check_result(entry.check, report(entry)));
    verdict_.outcome = cell_outcome(evidence_, verdict_);
    return verdict_;
  }

 private:
  CheckReport report(const CheckEntry& entry) {
    if (!evidence_.problem->scenario.asks_for(entry.check)) return not_applicable("not asked for");
    if (!verdict_.findings.empty())
      return not_applicable(fmt::format("after findings of {}", name(failed_)));
    if (entry.needs_run && evidence_.run == nullptr) return not_applicable("the plan did not run");
    CheckReport report = entry.judge(evidence_);
    // Under the first check that judges the run, unless that one has something better to say.
    if (entry.needs_run && !is_run_judged_ && report.findings.empty())
      add_incomplete_run(evidence_, entry.check, report);
    is_run_judged_ = is_run_judged_ || entry.needs_run;
    if (!report.findings.empty()) failed_ = entry.check;
    verdict_.findings = report.findings;
    return report;
  }

  const CellEvidence& evidence_;
  CellVerdict verdict_;
  Check failed_ = Check::metadata;
  bool is_run_judged_ = false;
};

}  // namespace

std::size_t complete_steps(const run::RunCapture& run) {
  const auto end = std::ranges::find_if(
      run.steps, [](const run::StepCapture& step) { return !step.is_complete; });
  return static_cast<std::size_t>(end - run.steps.begin());
}

std::size_t comparable_steps(const CellEvidence& evidence) {
  return std::min({complete_steps(*evidence.run), evidence.plans->size(),
                   evidence.reference->size(), evidence.problem->steps.size()});
}

CheckReport check_memcheck(const CellEvidence& evidence) {
  return checker_report(evidence, Check::memcheck);
}

CheckReport check_initcheck(const CellEvidence& evidence) {
  return checker_report(evidence, Check::initcheck);
}

CheckReport check_racecheck(const CellEvidence& evidence) {
  return checker_report(evidence, Check::racecheck);
}

CheckReport check_synccheck(const CellEvidence& evidence) {
  return checker_report(evidence, Check::synccheck);
}

std::vector<Finding> judge_plan(const Problem& problem, const Plan& plan, DataMode mode) {
  CheckReport report;
  if (problem.scenario.asks_for(Check::metadata)) compare_metadata(problem, plan, mode, report);
  if (problem.scenario.asks_for(Check::collectives)) compare_collectives(plan, mode, report);
  return report.findings;
}

CellVerdict judge_cell(const CellEvidence& evidence) {
  CPVERIFY_CHECK(evidence.problem != nullptr);
  CPVERIFY_CHECK(evidence.plans != nullptr);
  CPVERIFY_CHECK(evidence.plans->size() <= evidence.problem->steps.size());
  for (std::size_t step = 0; step < evidence.plans->size(); ++step)
    CPVERIFY_CHECK((*evidence.plans)[step].step == step);
  if (evidence.run != nullptr) {
    CPVERIFY_CHECK(evidence.data != nullptr);
    CPVERIFY_CHECK(evidence.reference != nullptr);
    CPVERIFY_CHECK(evidence.reference->size() == evidence.problem->steps.size());
  }
  return CellJudge{evidence}.judge();
}

}  // namespace cpverify::judge
