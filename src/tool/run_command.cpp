#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "cpverify/coverage.hpp"
#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"
#include "report/report.hpp"
#include "scenario/schema.hpp"
#include "support/nearest.hpp"
#include "support/parallel.hpp"
#include "tool/commands.hpp"
#include "tool/exit_code.hpp"
#include "tool/output_file.hpp"
#include "tool/read_schedule.hpp"
#include "tool/scenario_files.hpp"

namespace cpverify::tool {
namespace {

struct RunFlags {
  std::vector<std::string> paths;
  VerifyOptions verify;
  std::uint64_t seed = 0;
  std::string json_path;
  std::string coverage_path;
  unsigned jobs = 0;
  bool has_no_color = false;
  bool is_verbose = false;
};

/// "3/12 scenarios" on a terminal's stderr, nothing elsewhere: stdout is the result.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_{total}, is_shown_{::isatty(STDERR_FILENO) == 1} {}
  void count_one() {
    const std::lock_guard lock{mutex_};
    ++done_;
    if (!is_shown_) return;
    fmt::print(stderr, "\r{}/{} scenarios{}", done_, total_, done_ == total_ ? "\r\033[K" : "");
    static_cast<void>(std::fflush(stderr));
  }

 private:
  std::mutex mutex_;
  std::size_t done_ = 0;
  std::size_t total_;
  bool is_shown_;
};

/// Counts a scenario when it ends, whether or not it throws.
class CountOne {
 public:
  explicit CountOne(Progress& progress) : progress_{&progress} {}
  CountOne(const CountOne&) = delete;
  CountOne& operator=(const CountOne&) = delete;
  ~CountOne() { progress_->count_one(); }

 private:
  Progress* progress_;
};

struct RunResult {
  std::vector<Verdict> verdicts;
  Coverage coverage;  ///< Of all; empty when not asked for.
};

/// Scenarios in parallel, and what cores are left inside of each; verdicts in the order of the
/// files: order of finishing is not a result.
RunResult verify_all(const std::vector<Scenario>& scenarios, const RunFlags& flags) {
  RunResult result;
  result.verdicts.resize(scenarios.size());
  std::mutex coverage_mutex;
  Progress progress{scenarios.size()};
  const unsigned threads = thread_count(flags.jobs);
  const auto at_once = static_cast<unsigned>(std::min<std::size_t>(threads, scenarios.size()));
  const auto verify_one = [&](std::size_t i) {
    Coverage coverage;
    VerifyOptions options = flags.verify;
    options.jobs = threads / at_once;
    if (!flags.coverage_path.empty()) options.coverage = &coverage;
    result.verdicts[i] = verify(scenarios[i], options);
    const std::lock_guard lock{coverage_mutex};
    result.coverage.merge(coverage);
  };
  for_each_index(scenarios.size(), at_once, [&](std::size_t i) {
    const CountOne count{progress};
    verify_one(i);
  });
  return result;
}

int run(const RunFlags& flags) {
  if (!flags.coverage_path.empty() && flags.verify.lane != LaneKind::sim) {
    throw InputError{"--coverage: only the lane sim counts instructions"};
  }
  if (!flags.json_path.empty()) check_writable(flags.json_path);
  if (!flags.coverage_path.empty()) check_writable(flags.coverage_path);
  const std::vector<Scenario> scenarios = load_scenarios(find_scenarios(flags.paths));
  const RunResult result = verify_all(scenarios, flags);
  const std::vector<Verdict>& verdicts = result.verdicts;
  // With --json - the JSON is the result, and the only thing on stdout.
  if (flags.json_path != "-") {
    report::ConsoleOptions console;
    console.use_color = !flags.has_no_color && ::isatty(STDOUT_FILENO) == 1;
    console.is_verbose = flags.is_verbose;
    write_stdout(report::console_text(verdicts, console));
    if (!flags.coverage_path.empty()) write_stdout(report::coverage_text(result.coverage));
  }
  if (!flags.json_path.empty()) write_output(flags.json_path, report::verdicts_json(verdicts));
  if (!flags.coverage_path.empty()) {
    write_output(flags.coverage_path, report::lcov_text(result.coverage));
  }
  const bool has_passed = std::all_of(verdicts.begin(), verdicts.end(), [](const Verdict& verdict) {
    return verdict.outcome == Outcome::passed || verdict.outcome == Outcome::refused;
  });
  return has_passed ? kExitPassed : kExitFindings;
}

/// Turns a word into an enumerator; an unknown word is told what is allowed and what is near.
template <class Enum>
class WordOf : public CLI::Validator {
 public:
  WordOf(const char* what, const std::map<std::string, Enum>& words) : CLI::Validator{""} {
    func_ = [what, words](std::string& word) -> std::string {
      const auto found = words.find(word);
      if (found == words.end()) return unknown(what, word, words);
      word = fmt::format("{}", static_cast<int>(found->second));
      return {};
    };
  }

 private:
  static std::string unknown(const char* what, const std::string& word,
                             const std::map<std::string, Enum>& words) {
    std::vector<std::string> allowed;
    allowed.reserve(words.size());
    for (const auto& entry : words) allowed.push_back(entry.first);
    return fmt::format("unknown {} '{}'{}; allowed: {}", what, word, did_you_mean(word, allowed),
                       fmt::join(allowed, ", "));
  }
};

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  names.reserve(scenario::kStrategies.size());
  for (const StrategyKind strategy : scenario::kStrategies) names.emplace_back(name(strategy));
  return names;
}

std::map<std::string, StrategyKind> strategy_words() {
  std::map<std::string, StrategyKind> words;
  for (const StrategyKind strategy : scenario::kStrategies) {
    words.emplace(name(strategy), strategy);
  }
  return words;
}

void add_flags(CLI::App& command, const std::shared_ptr<RunFlags>& flags) {
  command.add_option("--lane", flags->verify.lane, "Where kernels run: sim (default) or cuda")
      ->transform(WordOf<LaneKind>{"lane", {{"sim", LaneKind::sim}, {"cuda", LaneKind::cuda}}})
      ->type_name("L");
  const std::vector<std::string> strategies = strategy_names();
  command
      .add_option("--strategy", flags->verify.strategies,
                  fmt::format("Only these: {}", fmt::join(strategies, ",")))
      ->delimiter(',')
      ->transform(WordOf<StrategyKind>{"strategy", strategy_words()})
      ->type_name("S,..");
  command.add_option("--mode", flags->verify.modes, "Only these: random,count,poison")
      ->delimiter(',')
      ->transform(WordOf<DataMode>{
          "mode",
          {{"random", DataMode::random}, {"count", DataMode::count}, {"poison", DataMode::poison}}})
      ->type_name("M,..");
  command
      .add_option_function<std::uint64_t>(
          "--seed", [flags](const std::uint64_t& seed) { flags->verify.seed = seed; },
          "Replaces data.seed of every scenario")
      ->type_name("N");
  command
      .add_option_function<std::string>(
          "--schedule",
          [flags](const std::string& word) { flags->verify.schedule = read_schedule(word); },
          "Order of warps: round_robin,reverse,run_to_block,random:N,pct:N; "
          "and of lanes with +its")
      ->type_name("P[:N][+its]");
  command.add_option("--json", flags->json_path, "Write the verdicts as JSON; - is stdout")
      ->type_name("FILE");
  command
      .add_option("--coverage", flags->coverage_path,
                  "Write what the kernels executed, for genhtml of lcov")
      ->type_name("FILE");
  command.add_option("--kernels", flags->verify.kernel_directory, "Folder that holds <module>.ptx")
      ->type_name("DIR");
  command.add_option("--jobs", flags->jobs, "Host threads; default: one per core")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  command.add_flag("--verbose", flags->is_verbose,
                   "Of several scenarios, print those that passed in full too");
  command.add_flag("--no-color", flags->has_no_color, "Plain text also on a terminal");
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", "Verify scenarios");
  command->add_option("paths", flags->paths, "Scenario files, or folders of them")
      ->required()
      ->type_name("FILE|DIR");
  add_flags(*command, flags);
  command->callback([flags, &action] { action = [flags] { return run(*flags); }; });
}

void add_scenario_option(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  app.add_option("--scenario", flags->paths, "Verify one scenario: the same as `run FILE`")
      ->type_name("FILE");
  add_flags(app, flags);
  app.callback([flags, &app, &action] {
    if (app.count("--scenario") > 0) action = [flags] { return run(*flags); };
  });
}

}  // namespace cpverify::tool
