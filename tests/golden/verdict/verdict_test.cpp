#include "cpverify/verdict.hpp"

#include <filesystem>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/data.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verify.hpp"
#include "gpu/lane.hpp"
#include "report/report.hpp"
#include "run/runner.hpp"
#include "sim/driver/sim_driver.hpp"
#include "sim/machine/machine_code.hpp"
#include "support/hash.hpp"
#include "verify/kernel_directory.hpp"
#include "verify/sim_lane.hpp"

/// Golden digests of whole verifications: 1 and more threads, AVX2 and AVX-512, and every compiler
/// of cpverify itself give the same bytes. They change when kernels, numerics or the JSON are meant
/// to change; the kernels are built by the clang that the README asks for.
namespace cpverify {
namespace {

struct Subject {
  const char* scenario;  ///< In scenarios/.
  const char* json;      ///< FNV-1a of what `cpverify run --json` writes.
  const char* zigzag;    ///< The digest of strategy zigzag with random data.
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.scenario;
}

class Verdicts : public testing::TestWithParam<Subject> {
 protected:
  Verdicts() : scenario_{load_scenario(root() / "scenarios" / GetParam().scenario)} {
    // As from the root of the repository, whose name is not a result.
    scenario_.path = std::filesystem::path{"scenarios"} / GetParam().scenario;
  }
  static std::filesystem::path root() { return CPVERIFY_SOURCE_DIR; }

  Scenario scenario_;
};

std::string hash_of(const std::string& text) {
  Fnv1a hash;
  hash.add_bytes(text.data(), text.size());
  return fmt::format("{:016x}", hash.value());
}

TEST_P(Verdicts, AreTheSameBytesForAnyNumberOfThreads) {
  for (const unsigned jobs : {1U, 2U, 5U, 0U}) {
    VerifyOptions options;
    options.jobs = jobs;
    EXPECT_EQ(hash_of(report::verdicts_json({verify(scenario_, options)})), GetParam().json)
        << jobs << " threads";
  }
}

TEST_P(Verdicts, AreTheSameBytesForAnyWidthOfVectors) {
  for (const sim::VectorWidth width : {sim::VectorWidth::bits_256, sim::VectorWidth::bits_512}) {
    if (width > sim::widest_vectors()) continue;
    const Problem problem = make_problem(scenario_);
    std::vector<Plan> plans;
    for (const Step& step : problem.steps) {
      plans.push_back(make_plan(problem, step.index, StrategyKind::zigzag));
    }
    sim::SimOptions options;
    options.device_count = static_cast<int>(plans.front().ranks.size());
    options.is_race_checked = scenario_.asks_for(Check::racecheck);
    options.vectors = width;
    const std::unique_ptr<gpu::Lane> lane =
        verify_detail::open_sim_lane(options, scenario_.reduction);
    run::RunOptions run_options;
    run_options.kernel_directory = verify_detail::default_kernel_directory();
    const run::RunCapture capture =
        run::run_plans(problem, make_data(problem, run_options.mode), plans, *lane, run_options);
    EXPECT_EQ(fmt::format("{:016x}", capture.digest), GetParam().zigzag)
        << "width " << static_cast<int>(width);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Scenarios, Verdicts,
    testing::Values(Subject{"correct/zigzag/racecheck_fma.yaml", "39f8caf947dc9384",
                            "070bc4cfced699cb"},
                    Subject{"correct/zigzag/f16_mma.yaml", "fa6019ea0e9fd97f", "c41139878d2f8279"}),
    [](const auto& test) { return std::filesystem::path{test.param.scenario}.stem().string(); });

}  // namespace
}  // namespace cpverify
