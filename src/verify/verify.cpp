#include "cpverify/verify.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/coverage.hpp"
#include "cpverify/data.hpp"
#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"
#include "gpu/lane.hpp"
#include "judge/judge.hpp"
#include "mutants/defects.hpp"
#include "reference/attention.hpp"
#include "run/runner.hpp"
#include "sim/driver/sim_driver.hpp"
#include "verify/expectations.hpp"
#include "verify/kernel_directory.hpp"
#include "verify/sim_lane.hpp"

namespace cpverify {
namespace {

using Cell = std::pair<StrategyKind, DataMode>;

/// Makes each run, data set and reference once, when a cell first needs it.
class Verification {
 public:
  Verification(const Scenario& scenario, const VerifyOptions& options)
      : options_{options}, problem_{make_problem(scenario)} {}

  CellVerdict judge(StrategyKind strategy, DataMode mode);

 private:
  [[nodiscard]] const Scenario& scenario() const noexcept { return problem_.scenario; }
  const std::vector<Plan>& plans(StrategyKind strategy);
  bool is_runnable(StrategyKind strategy);
  const std::vector<RequestData>& data(DataMode mode);
  const std::vector<reference::StepReference>& references(DataMode mode);
  run::RunCapture execute(StrategyKind strategy, DataMode mode);
  const run::RunCapture* run_once(StrategyKind strategy, DataMode mode);

  const VerifyOptions& options_;
  Problem problem_;
  std::map<StrategyKind, std::vector<Plan>> plans_;
  std::map<StrategyKind, bool> is_runnable_;
  std::map<DataMode, std::vector<RequestData>> data_;
  std::map<DataMode, std::vector<reference::StepReference>> references_;
  std::map<Cell, run::RunCapture> runs_;
};

const std::vector<Plan>& Verification::plans(StrategyKind strategy) {
  const auto known = plans_.find(strategy);
  if (known != plans_.end()) return known->second;
  return plans_.emplace(strategy, mutants::make_subject_plans(problem_, strategy)).first->second;
}

/// A plan that the static checks refuse is not run: what it would do is not the defect. They do
/// not look at data, so that one mode speaks for all.
bool Verification::is_runnable(StrategyKind strategy) {
  const auto known = is_runnable_.find(strategy);
  if (known != is_runnable_.end()) return known->second;
  const std::vector<Plan>& made = plans(strategy);
  const bool is_clean = std::all_of(made.begin(), made.end(), [&](const Plan& plan) {
    return judge::judge_plan(problem_, plan, DataMode::random).empty();
  });
  return is_runnable_.emplace(strategy, is_clean).first->second;
}

/// Mode poison has random's values, so the two share one entry.
const std::vector<RequestData>& Verification::data(DataMode mode) {
  const DataMode values = mode == DataMode::poison ? DataMode::random : mode;
  auto known = data_.find(values);
  if (known == data_.end()) known = data_.emplace(values, make_data(problem_, values)).first;
  return known->second;
}

const std::vector<reference::StepReference>& Verification::references(DataMode mode) {
  const DataMode values = mode == DataMode::poison ? DataMode::random : mode;
  const auto known = references_.find(values);
  if (known != references_.end()) return known->second;
  std::vector<reference::StepReference> made;
  for (const Step& step : problem_.steps) {
    made.push_back(reference::step_reference(problem_, step.index, data(values)));
  }
  return references_.emplace(values, std::move(made)).first->second;
}

run::RunCapture Verification::execute(StrategyKind strategy, DataMode mode) {
  const std::vector<Plan>& made = plans(strategy);
  const int devices = static_cast<int>(made.front().ranks.size());
  // A fresh lane for each run: a fault leaves a real context unusable, and nothing may leak over.
  sim::SimOptions sim_options;
  sim_options.device_count = devices;
  sim_options.has_coverage = options_.coverage != nullptr;
  sim_options.is_race_checked = scenario().asks_for(Check::racecheck);
  sim_options.schedule = scenario().schedule;
  const std::unique_ptr<gpu::Lane> lane = options_.lane == LaneKind::cuda
                                              ? gpu::open_cuda_lane(devices)
                                              : verify_detail::open_sim_lane(sim_options);
  run::RunOptions run_options;
  run_options.kernel_directory = options_.kernel_directory.empty()
                                     ? verify_detail::default_kernel_directory()
                                     : options_.kernel_directory;
  run_options.mode = mode;
  run::RunCapture capture = run::run_plans(problem_, data(mode), made, *lane, run_options);
  if (options_.coverage != nullptr) options_.coverage->merge(lane->take_coverage());
  return capture;
}

const run::RunCapture* Verification::run_once(StrategyKind strategy, DataMode mode) {
  if (!is_runnable(strategy)) return nullptr;
  auto known = runs_.find({strategy, mode});
  if (known == runs_.end()) {
    known = runs_.emplace(Cell{strategy, mode}, execute(strategy, mode)).first;
  }
  return &known->second;
}

CellVerdict Verification::judge(StrategyKind strategy, DataMode mode) {
  judge::CellEvidence evidence;
  evidence.problem = &problem_;
  evidence.strategy = strategy;
  evidence.mode = mode;
  evidence.data = &data(mode);
  evidence.plans = &plans(strategy);
  evidence.reference = &references(mode);
  evidence.run = run_once(strategy, mode);
  if (evidence.run != nullptr && mode == DataMode::poison && scenario().asks_for(Check::poison)) {
    evidence.random = run_once(strategy, DataMode::random);
  }
  if (evidence.run != nullptr && strategy != StrategyKind::single &&
      scenario().asks_for(Check::bitwise)) {
    evidence.single = run_once(StrategyKind::single, mode);
    evidence.single_plans = &plans(StrategyKind::single);
  }
  std::optional<run::RunCapture> rerun;
  if (evidence.run != nullptr && scenario().asks_for(Check::determinism)) {
    rerun = execute(strategy, mode);
    evidence.rerun = &*rerun;
  }
  return judge::judge_cell(evidence);
}

std::string repro_command(const Scenario& scenario, const VerifyOptions& options) {
  std::string command = fmt::format("./cpverify --scenario {}", scenario.path.generic_string());
  if (options.lane == LaneKind::cuda) command += " --lane cuda";
  if (options.seed) command += fmt::format(" --seed {}", *options.seed);
  if (options.schedule) command += fmt::format(" --schedule {}", text(*options.schedule));
  for (const StrategyKind strategy : options.strategies) {
    command += fmt::format(" --strategy {}", name(strategy));
  }
  for (const DataMode mode : options.modes) command += fmt::format(" --mode {}", name(mode));
  return command;
}

}  // namespace

Verdict verify(const Scenario& scenario, const VerifyOptions& options) {
  Scenario effective = scenario;
  if (options.seed) effective.data.seed = *options.seed;
  if (options.schedule) effective.schedule = *options.schedule;
  if (!options.strategies.empty()) effective.strategies = options.strategies;
  if (!options.modes.empty()) effective.data.modes = options.modes;

  const bool is_default_schedule = effective.schedule.policy == SchedulePolicy::round_robin &&
                                   effective.schedule.threads == ThreadScheduling::converged;
  if (options.lane == LaneKind::cuda && !is_default_schedule) {
    throw InputError{fmt::format("{}: schedule {} is for lane sim; GPUs have their own",
                                 effective.path.generic_string(), text(effective.schedule))};
  }

  if (effective.asks_for(Check::racecheck) && !runs_one_cta_at_a_time(effective.schedule.policy)) {
    throw InputError{fmt::format(
        "{}: schedule {} keeps several CTAs and racecheck follows one at a time; take racecheck "
        "out of 'checks', or choose policy round_robin, reverse or run_to_block",
        effective.path.generic_string(), text(effective.schedule))};
  }

  Verdict verdict;
  verdict.scenario = effective.name;
  verdict.path = effective.path.generic_string();
  if (options.lane == LaneKind::sim) verdict.schedule = text(effective.schedule);
  verdict.repro = repro_command(effective, options);
  Verification verification{effective, options};
  for (const StrategyKind strategy : effective.strategies) {
    for (const DataMode mode : effective.data.modes) {
      verdict.cells.push_back(verification.judge(strategy, mode));
    }
  }
  verify_detail::settle(effective, verdict);
  return verdict;
}

}  // namespace cpverify
