#include "cpverify/verify.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/coverage.hpp"
#include "cpverify/data.hpp"
#include "cpverify/error.hpp"
#include "cpverify/mma_accumulation.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/reduction.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"
#include "gpu/lane.hpp"
#include "judge/judge.hpp"
#include "mutants/defects.hpp"
#include "reference/attention.hpp"
#include "run/runner.hpp"
#include "support/parallel.hpp"
#include "verify/expectations.hpp"
#include "verify/kernel_directory.hpp"
#include "verify/lanes.hpp"
#include "verify/launch_cell.hpp"
#include "verify/system_rules.hpp"

namespace cpverify {
namespace {

using Cell = std::pair<StrategyKind, DataMode>;

/// Mode poison has random's values, so the two share data and references.
DataMode values_of(DataMode mode) noexcept {
  return mode == DataMode::poison ? DataMode::random : mode;
}

/// Judges every cell of a scenario. Runs, data sets and references are made once, ahead of the
/// cells that need them and on several threads: each run has simulated GPUs of its own, so that
/// what it gives does not depend on the others.
class Verification {
 public:
  Verification(const Scenario& scenario, const VerifyOptions& options)
      : options_{options}, problem_{make_problem(scenario)} {}

  std::vector<CellVerdict> judge_all();

 private:
  struct Values {
    Made<std::vector<RequestData>> data;
    Made<std::vector<reference::StepReference>> references;
  };
  struct Plans {
    Made<std::vector<Plan>> plans;
    Made<bool> is_runnable;
  };
  using Task = std::function<void()>;

  [[nodiscard]] const Scenario& scenario() const noexcept { return problem_.scenario; }
  [[nodiscard]] bool is_refused(StrategyKind strategy) const;
  [[nodiscard]] bool needs_single(StrategyKind strategy) const;
  void run_all(const std::vector<Task>& tasks) const;
  void make_plans_and_data();
  void make_references_and_runs();
  [[nodiscard]] std::vector<reference::StepReference> make_references(DataMode values) const;
  [[nodiscard]] bool is_clean(const std::vector<Plan>& made) const;
  run::RunCapture execute(StrategyKind strategy, DataMode mode);
  [[nodiscard]] const run::RunCapture* run_of(StrategyKind strategy, DataMode mode) const;
  CellVerdict judge(StrategyKind strategy, DataMode mode);

  const VerifyOptions& options_;
  Problem problem_;
  std::mutex coverage_mutex_;
  std::map<StrategyKind, verify_detail::SystemRules> rules_;
  std::map<StrategyKind, Plans> plans_;
  std::map<DataMode, Values> values_;
  std::map<Cell, Made<run::RunCapture>> runs_;
};

void Verification::run_all(const std::vector<Task>& tasks) const {
  for_each_index(tasks.size(), thread_count(options_.jobs), [&](std::size_t i) { tasks[i](); });
}

/// What a system would not run is not run here either.
bool Verification::is_refused(StrategyKind strategy) const {
  return rules_.at(strategy).is_refused;
}

bool Verification::needs_single(StrategyKind strategy) const {
  return strategy != StrategyKind::single && scenario().asks_for(Check::bitwise);
}

/// A plan that the static checks refuse is not run: what it would do is not the defect. They do
/// not look at data, so that one mode speaks for all.
bool Verification::is_clean(const std::vector<Plan>& made) const {
  return std::all_of(made.begin(), made.end(), [&](const Plan& plan) {
    return judge::judge_plan(problem_, plan, DataMode::random).empty();
  });
}

void Verification::make_plans_and_data() {
  for (const StrategyKind strategy : scenario().strategies) {
    rules_.emplace(strategy, verify_detail::system_rules(scenario(), strategy));
    if (is_refused(strategy)) continue;
    plans_.try_emplace(strategy);
    if (needs_single(strategy)) plans_.try_emplace(StrategyKind::single);
  }
  for (const DataMode mode : scenario().data.modes) values_.try_emplace(values_of(mode));
  std::vector<Task> tasks;
  tasks.reserve(plans_.size());
  for (auto& entry : plans_) {
    tasks.emplace_back([this, &entry] {
      Plans& plans = entry.second;
      plans.plans.make([&] { return mutants::make_subject_plans(problem_, entry.first); });
      plans.is_runnable.make([&] { return is_clean(plans.plans.get()); });
    });
  }
  for (auto& entry : values_) {
    tasks.emplace_back([this, &entry] {
      entry.second.data.make([&] { return make_data(problem_, entry.first); });
    });
  }
  run_all(tasks);
}

std::vector<reference::StepReference> Verification::make_references(DataMode values) const {
  std::vector<reference::StepReference> made;
  made.reserve(problem_.steps.size());
  for (const Step& step : problem_.steps) {
    made.push_back(reference::step_reference(problem_, step.index, values_.at(values).data.get(), 0,
                                             sink_logits(scenario(), values)));
  }
  return made;
}

void Verification::make_references_and_runs() {
  for (const StrategyKind strategy : scenario().strategies) {
    if (is_refused(strategy)) continue;
    for (const DataMode mode : scenario().data.modes) {
      runs_.try_emplace({strategy, mode});
      if (mode == DataMode::poison && scenario().asks_for(Check::poison)) {
        runs_.try_emplace({strategy, DataMode::random});
      }
      if (needs_single(strategy)) runs_.try_emplace({StrategyKind::single, mode});
    }
  }
  std::vector<Task> tasks;
  tasks.reserve(values_.size());
  for (auto& entry : values_) {
    tasks.emplace_back([this, &entry] {
      entry.second.references.make([&] { return make_references(entry.first); });
    });
  }
  for (auto& entry : runs_) {
    tasks.emplace_back([this, &entry] {
      // Of plans that are not runnable nobody asks for the run.
      const Plans& plans = plans_.at(entry.first.first);
      if (!plans.is_runnable.has(true)) return;
      entry.second.make([&] { return execute(entry.first.first, entry.first.second); });
    });
  }
  run_all(tasks);
}

run::RunCapture Verification::execute(StrategyKind strategy, DataMode mode) {
  const std::vector<Plan>& made = plans_.at(strategy).plans.get();
  const int devices = static_cast<int>(made.front().ranks.size());
  const std::unique_ptr<gpu::Lane> lane = verify_detail::open_lane(scenario(), options_, devices);
  run::RunOptions run_options;
  run_options.kernel_directory = options_.kernel_directory.empty()
                                     ? verify_detail::default_kernel_directory()
                                     : options_.kernel_directory;
  run_options.mode = mode;
  run::RunCapture capture =
      run::run_plans(problem_, values_.at(values_of(mode)).data.get(), made, *lane, run_options);
  if (options_.coverage != nullptr) {
    const Coverage coverage = lane->take_coverage();
    const std::lock_guard lock{coverage_mutex_};
    options_.coverage->merge(coverage);
  }
  return capture;
}

/// Null when the plans are not run.
const run::RunCapture* Verification::run_of(StrategyKind strategy, DataMode mode) const {
  if (!plans_.at(strategy).is_runnable.get()) return nullptr;
  return &runs_.at({strategy, mode}).get();
}

CellVerdict Verification::judge(StrategyKind strategy, DataMode mode) {
  if (is_refused(strategy)) return {strategy, mode, Outcome::refused, {}, {}, {}, {}};
  const Values& values = values_.at(values_of(mode));
  judge::CellEvidence evidence;
  evidence.problem = &problem_;
  evidence.strategy = strategy;
  evidence.mode = mode;
  evidence.data = &values.data.get();
  evidence.plans = &plans_.at(strategy).plans.get();
  evidence.reference = &values.references.get();
  evidence.run = run_of(strategy, mode);
  if (evidence.run != nullptr && mode == DataMode::poison && scenario().asks_for(Check::poison)) {
    evidence.random = run_of(strategy, DataMode::random);
  }
  if (evidence.run != nullptr && needs_single(strategy)) {
    evidence.single = run_of(StrategyKind::single, mode);
    evidence.single_plans = &plans_.at(StrategyKind::single).plans.get();
  }
  std::optional<run::RunCapture> rerun;
  if (evidence.run != nullptr && scenario().asks_for(Check::determinism)) {
    rerun = execute(strategy, mode);
    evidence.rerun = &*rerun;
  }
  return judge::judge_cell(evidence);
}

/// Every strategy in every data mode.
std::vector<CellVerdict> Verification::judge_all() {
  make_plans_and_data();
  make_references_and_runs();
  std::vector<Cell> cells;
  for (const StrategyKind strategy : scenario().strategies) {
    for (const DataMode mode : scenario().data.modes) cells.emplace_back(strategy, mode);
  }
  std::vector<CellVerdict> verdicts(cells.size());
  for_each_index(cells.size(), thread_count(options_.jobs),
                 [&](std::size_t i) { verdicts[i] = judge(cells[i].first, cells[i].second); });
  for (CellVerdict& verdict : verdicts) verdict.rules = rules_.at(verdict.strategy).broken;
  return verdicts;
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
  const bool is_problem = !effective.launch;
  if (is_problem && !options.strategies.empty()) effective.strategies = options.strategies;
  if (is_problem && !options.modes.empty()) effective.data.modes = options.modes;

  if (is_problem) {
    const std::string refused = refused_strategy(effective);
    if (!refused.empty()) {
      throw InputError{fmt::format("{}: --strategy {}", effective.path.generic_string(), refused)};
    }
    verify_detail::check_expected_rules(effective);
  }

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
  verdict.topology = effective.topology;
  if (options.lane == LaneKind::sim) {
    verdict.schedule = text(effective.schedule);
    verdict.mma_accumulation = name(effective.mma_accumulation);
    verdict.reduction = text(effective.reduction);
  }
  verdict.repro = repro_command(effective, options);
  if (is_problem) {
    verdict.cells = Verification{effective, options}.judge_all();
  } else {
    verdict.cells.push_back(verify_detail::judge_launches(effective, options));
  }
  verify_detail::settle(effective, verdict);
  return verdict;
}

}  // namespace cpverify
