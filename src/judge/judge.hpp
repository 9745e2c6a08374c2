#pragma once

#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"
#include "reference/attention.hpp"
#include "run/runner.hpp"

namespace cpverify::judge {

/// What a cell is judged by. Pointers are never null unless said so and outlive the call.
struct CellEvidence {
  const Problem* problem = nullptr;
  StrategyKind strategy = StrategyKind::single;
  DataMode mode = DataMode::random;
  const std::vector<RequestData>* data = nullptr;
  const std::vector<Plan>* plans = nullptr;  ///< One per step, as executed (defect included).
  const std::vector<reference::StepReference>* reference = nullptr;  ///< One per step.
  const run::RunCapture* run = nullptr;     ///< Null: the plan failed before it could run.
  const run::RunCapture* rerun = nullptr;   ///< Null: not run a second time.
  const run::RunCapture* single = nullptr;  ///< Strategy single, same mode; null: not run.
  const std::vector<Plan>* single_plans = nullptr;
  const run::RunCapture* random = nullptr;  ///< Same strategy, mode random; null: not run.
};

/// Exact comparison of a plan with the integer oracle and of the ranks' collective sequences; no
/// kernel runs. Findings of checks that the scenario does not ask for are not made.
[[nodiscard]] std::vector<Finding> judge_plan(const Problem& problem, const Plan& plan,
                                              DataMode mode);

/// Judges in the order of enum Check and stops after the first check that has findings: what
/// follows from a defect is not reported as another. Later checks are then `skipped`.
[[nodiscard]] CellVerdict judge_cell(const CellEvidence& evidence);

}  // namespace cpverify::judge
