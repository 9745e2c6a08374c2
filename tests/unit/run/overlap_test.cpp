// Operations on a second stream: with the waits that they need the run is as on one stream, without
// them it is a race.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/data.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/reduction.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "gpu/lane.hpp"
#include "run/runner.hpp"
#include "sim/driver/sim_driver.hpp"
#include "verify/kernel_directory.hpp"
#include "verify/sim_lane.hpp"

namespace cpverify::run {
namespace {

class OverlapTest : public testing::Test {
 protected:
  OverlapTest() {
    const Scenario scenario = parse_scenario(
        "model: {num_heads_q: 2, num_heads_kv: 1, head_dim: 32, dtype: f32}\n"
        "topology: {cp: 2}\n"
        "cache: {block_size: 16}\n"
        "requests:\n"
        "  - {id: a, prompt: 13}\n",
        "overlap.yaml");
    problem_ = make_problem(scenario);
    data_ = make_data(problem_, DataMode::random);
    for (std::uint32_t step = 0; step < problem_.steps.size(); ++step) {
      plans_.push_back(make_plan(problem_, step, StrategyKind::zigzag));
    }
  }

  RunCapture run() const {
    sim::SimOptions options;
    options.device_count = 2;
    options.is_race_checked = true;
    const std::unique_ptr<gpu::Lane> lane = verify_detail::open_sim_lane(options, ReductionSpec{});
    return run_plans(problem_, data_, plans_, *lane,
                     {verify_detail::default_kernel_directory(), DataMode::random});
  }

  /// Every collective goes to the second stream, after the operation before it; what follows waits
  /// for it when asked to.
  void overlap(bool is_waited_for) {
    for (Plan& plan : plans_) {
      for (RankPlan& rank : plan.ranks) {
        for (std::uint32_t i = 0; i < rank.operations.size(); ++i) {
          if (!std::holds_alternative<Collective>(rank.operations[i].body)) continue;
          rank.operations[i].stream = 1;
          if (i > 0) rank.operations[i].after = {i - 1};
          if (is_waited_for && i + 1 < rank.operations.size()) {
            rank.operations[i + 1].after.push_back(i);
          }
        }
      }
    }
  }

  Problem problem_;
  std::vector<RequestData> data_;
  std::vector<Plan> plans_;
};

TEST_F(OverlapTest, WithItsWaitsGivesTheBitsOfOneStream) {
  const RunCapture alone = run();
  EXPECT_TRUE(alone.findings.empty());
  overlap(true);
  const RunCapture overlapped = run();
  EXPECT_TRUE(overlapped.findings.empty());
  EXPECT_EQ(overlapped.digest, alone.digest);
}

TEST_F(OverlapTest, WithoutThemIsARace) {
  overlap(false);
  const RunCapture capture = run();
  std::size_t races = 0;
  for (const Finding& finding : capture.findings) {
    if (finding.kind == "race") ++races;
  }
  EXPECT_GT(races, 0U);
}

}  // namespace
}  // namespace cpverify::run
