// Wall time of every shipped scenario, all its cells, reruns and references included: what a user
// of `cpverify run FILE` waits for. One benchmark per file, named after it, on all cores; of some
// one more on one thread, jobs:1.
#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"

namespace {

const std::set<std::string> kAlsoOnOneThread{"chunked_prefix", "correct/zigzag/f16_mma",
                                             "correct/zigzag/mooncake_slice",
                                             "correct/zigzag/racecheck_fma"};

void verify_scenario(benchmark::State& state, const std::filesystem::path& path) {
  const cpverify::Scenario scenario = cpverify::load_scenario(path);
  cpverify::VerifyOptions options;
  options.jobs = static_cast<unsigned>(state.range(0));
  for (auto _ : state) {
    const cpverify::Verdict verdict = cpverify::verify(scenario, options);
    if (verdict.outcome != cpverify::Outcome::passed) state.SkipWithError("did not pass");
  }
}

bool register_all() {
  const std::filesystem::path root = std::filesystem::path{CPVERIFY_SOURCE_DIR} / "scenarios";
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{root}) {
    if (entry.path().extension() == ".yaml") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    const std::string name = path.lexically_relative(root).replace_extension().generic_string();
    auto* const bench = benchmark::RegisterBenchmark(name.c_str(), verify_scenario, path);
    bench->ArgName("jobs")
        ->Arg(0)
        ->Unit(benchmark::kMillisecond)
        ->MeasureProcessCPUTime()
        ->UseRealTime();
    if (kAlsoOnOneThread.contains(name)) bench->Arg(1);
  }
  return true;
}

const bool kIsRegistered = register_all();

}  // namespace
