#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

/// Prints a table instead of one line per measurement. Of the repetitions the fastest counts: other
/// work on the host only ever makes them slower.
namespace {

struct Best {
  double milliseconds = 0.0;
  double rate = 0.0;  ///< Thread instructions per second.
};

class Summary final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context& /*context*/) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) add(run);
  }
  void Finalize() override;

 private:
  void add(const Run& run);
  [[nodiscard]] Best find(const std::string& kernel, int checks, int vector) const;
  void print_row(const std::string& kernel) const;

  std::vector<std::string> kernels_;  ///< In the order of their first measurement.
  std::map<std::string, Best> best_;  ///< By name without repetitions and times.
  std::vector<std::string> errors_;
};

void Summary::add(const Run& run) {
  if (run.run_type != Run::RT_Iteration) return;
  const std::string name =
      run.run_name.function_name + (run.run_name.args.empty() ? "" : "/") + run.run_name.args;
  if (run.error_occurred) {
    errors_.push_back(fmt::format("{}: {}", name, run.error_message));
    return;
  }
  const auto rate = run.counters.find("thread_instructions");
  const std::string& kernel = run.run_name.function_name;
  const bool is_known = std::find(kernels_.begin(), kernels_.end(), kernel) != kernels_.end();
  if (rate != run.counters.end() && !is_known) kernels_.push_back(kernel);
  Best& best = best_[name];
  // Time of the CPU, which other work on the host disturbs less, but for what runs on two threads.
  const bool is_real = !run.run_name.time_type.empty();
  const double seconds = is_real ? run.real_accumulated_time : run.cpu_accumulated_time;
  const double milliseconds =
      seconds * 1e3 / static_cast<double>(std::max<long>(run.iterations, 1));
  if (best.milliseconds > 0.0 && best.milliseconds <= milliseconds) return;
  best.milliseconds = milliseconds;
  if (rate != run.counters.end()) best.rate = rate->second.value;
}

Best Summary::find(const std::string& kernel, int checks, int vector) const {
  const auto found = best_.find(fmt::format("{}/checks:{}/vector:{}", kernel, checks, vector));
  return found == best_.end() ? Best{} : found->second;
}

/// "-" where one of the two was not measured.
std::string ratio(double numerator, double denominator) {
  const bool is_known = numerator > 0.0 && denominator > 0.0;
  return is_known ? fmt::format("{:.2f}", numerator / denominator) : "-";
}

std::string rate_text(double rate) {
  return rate > 0.0 ? fmt::format("{:.2f}", rate * 1e-9) : "-";
}

void Summary::print_row(const std::string& kernel) const {
  const Best wide = find(kernel, 1, 512);
  const Best narrow = find(kernel, 1, 256);
  const Best widest = wide.milliseconds > 0.0 ? wide : narrow;
  const auto native = best_.find("native_" + kernel);
  const double loop = native == best_.end() ? 0.0 : native->second.milliseconds;
  fmt::print("{:<13}{:>9}{:>9}{:>14}{:>11}{:>11}{:>11}{:>11}{:>11}\n", kernel, rate_text(wide.rate),
             rate_text(narrow.rate), ratio(narrow.rate, wide.rate),
             ratio(find(kernel, 2, 512).milliseconds, wide.milliseconds),
             ratio(find(kernel, 2, 256).milliseconds, narrow.milliseconds),
             ratio(narrow.milliseconds, find(kernel, 0, 256).milliseconds),
             fmt::format("{:.3f}", widest.milliseconds), ratio(widest.milliseconds, loop));
}

void Summary::Finalize() {
  fmt::print(
      "Best of the repetitions. G/s: 10^9 thread instructions per second of one core, memcheck "
      "and\n"
      "initcheck on; racecheck: times as long with it; checks: times as long as with loads and "
      "stores\n"
      "without memcheck and initcheck, AVX2; native: times as long as a loop of the host with the "
      "same\n"
      "arithmetic and sizes, in the same run.\n\n");
  fmt::print("{:<13}{:>9}{:>9}{:>14}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "kernel", "AVX-512", "AVX2",
             "AVX2/AVX-512", "racecheck", "racecheck", "checks", "ms", "native");
  fmt::print("{:<13}{:>9}{:>9}{:>14}{:>11}{:>11}{:>11}{:>11}{:>11}\n", "", "G/s", "G/s", "",
             "AVX-512", "AVX2", "AVX2", "", "");
  for (const std::string& kernel : kernels_) print_row(kernel);
  fmt::print("\n");
  for (const auto& [name, best] : best_) {
    if (best.rate == 0.0) fmt::print("{:<28}{:>12.3f} ms\n", name, best.milliseconds);
  }
  const auto one = best_.find("eight_ranks/threads:1");
  const auto two = best_.find("eight_ranks/threads:2");
  if (one != best_.end() && two != best_.end()) {
    fmt::print("\nEight ranks on two threads, with the same bytes: {} times as fast as on one.\n",
               ratio(one->second.milliseconds, two->second.milliseconds));
  }
  for (const std::string& error : errors_) fmt::print("{}\n", error);
  static_cast<void>(std::fflush(stdout));
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  Summary summary;
  benchmark::RunSpecifiedBenchmarks(&summary);
  return 0;
}
