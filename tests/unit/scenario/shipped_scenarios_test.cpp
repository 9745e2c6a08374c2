#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify {
namespace {

std::filesystem::path scenarios() {
  return std::filesystem::path{CPVERIFY_SOURCE_DIR} / "scenarios";
}

Problem shipped(const std::string& name) {
  return make_problem(load_scenario(scenarios() / "correct" / "zigzag" / (name + ".yaml")));
}

/// New tokens of each row, step by step.
std::vector<std::vector<std::int64_t>> scheduled(const Problem& problem) {
  std::vector<std::vector<std::int64_t>> steps;
  for (const Step& step : problem.steps) {
    std::vector<std::int64_t> rows;
    rows.reserve(step.rows.size());
    for (const StepRow& row : step.rows) rows.push_back(row.scheduled);
    steps.push_back(rows);
  }
  return steps;
}

/// What the zigzag strategy asks of a step before it splits it.
bool is_cp_on(const Problem& problem, const Step& step) {
  const std::int64_t minimum = 2 * std::int64_t{problem.scenario.topology.cp};
  return problem.scenario.topology.cp > 1 &&
         std::all_of(step.rows.begin(), step.rows.end(),
                     [minimum](const StepRow& row) { return row.scheduled >= minimum; });
}

using Steps = std::vector<std::vector<std::int64_t>>;

TEST(ShippedScenarios, LoadAreSmallAndSayWhatTheyAreFor) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator{scenarios()}) {
    if (entry.path().extension() != ".yaml") continue;
    SCOPED_TRACE(entry.path().string());
    std::ifstream stream{entry.path()};
    EXPECT_EQ(stream.get(), '#');
    ++count;
    const Scenario scenario = load_scenario(entry.path());
    if (scenario.launch) continue;
    const Problem problem = make_problem(scenario);
    std::int64_t tokens = 0;
    for (const RequestSpec& request : problem.scenario.requests) tokens += request.total_tokens();
    EXPECT_LE(tokens, problem.scenario.name == "mooncake_slice" ? 2000 : 200);
  }
  EXPECT_GE(count, 120U);
}

/// The comment that a file begins with, as one line.
std::string remark_of(const std::filesystem::path& path) {
  std::ifstream stream{path};
  std::string remark;
  for (std::string line; std::getline(stream, line) && line.starts_with("# ");) {
    remark += line.substr(1);
  }
  return remark;
}

/// "sgl-project/sglang#30439" of sglang_30439.
std::string report_of(const std::string& stem) {
  const std::size_t cut = stem.rfind('_');
  const std::map<std::string, std::string> projects{{"sglang", "sgl-project/sglang#"},
                                                    {"vllm", "vllm-project/vllm#"},
                                                    {"vllm_ascend", "vllm-project/vllm-ascend#"}};
  return projects.at(stem.substr(0, cut)) + stem.substr(cut + 1);
}

TEST(ShippedScenarios, OfPublicBugsNameTheReportAndFindTheDefectThatTheyName) {
  std::size_t count = 0;
  for (const auto& entry :
       std::filesystem::directory_iterator{scenarios() / "correct" / "public_bugs"}) {
    SCOPED_TRACE(entry.path().string());
    ++count;
    const std::string remark = remark_of(entry.path());
    EXPECT_THAT(remark, testing::HasSubstr(report_of(entry.path().stem().string())));
    const std::string introduction = "The defect: ";
    const std::size_t defect = remark.find(introduction);
    const auto wrong = scenarios() / "wrong" / "public_bugs" / entry.path().filename();
    ASSERT_EQ(std::filesystem::exists(wrong), defect != std::string::npos);
    if (defect == std::string::npos) continue;
    const std::string name = remark.substr(defect + introduction.size());
    ASSERT_TRUE(load_scenario(wrong).inject.has_value());
    EXPECT_EQ(load_scenario(wrong).inject->defect, name.substr(0, name.find('.')));
  }
  EXPECT_GE(count, 30U);
}

TEST(ShippedScenarios, ChunkedPrefixHitsTheCacheAndCutsAPromptMidPage) {
  const Problem problem = make_problem(load_scenario(scenarios() / "chunked_prefix.yaml"));
  EXPECT_EQ(scheduled(problem), (Steps{{40}, {44}, {15, 25}, {1}}));
  EXPECT_EQ(problem.steps[1].rows[0].computed, 32);
  EXPECT_EQ((32 + 44) % 16, 12);
  EXPECT_TRUE(is_cp_on(problem, problem.steps[0]));
  EXPECT_TRUE(is_cp_on(problem, problem.steps[1]));
  EXPECT_TRUE(is_cp_on(problem, problem.steps[2]));
  EXPECT_FALSE(is_cp_on(problem, problem.steps[3]));
  const std::vector<std::int32_t>& source = problem.steps[0].rows[0].block_table;
  const std::vector<std::int32_t>& hit = problem.steps[1].rows[0].block_table;
  EXPECT_TRUE(std::equal(source.begin(), source.begin() + 2, hit.begin()));
}

TEST(ShippedScenarios, HaveTheSchedulesThatTheirRemarksPromise) {
  // Hits of 32, 16 and 16 tokens: 48-32, 30-16, 32-16; 10 new tokens behind 23 cached ones.
  EXPECT_EQ(scheduled(shipped("prefix_cache")), (Steps{{37}, {16, 14, 16, 10}}));
  EXPECT_EQ(scheduled(shipped("chunked_prefill")), (Steps{{22}, {22}, {22}, {9, 13}, {22}, {5}}));
  EXPECT_EQ(scheduled(shipped("mixed_batch")), (Steps{{16}, {1, 16}, {1, 16}, {1, 1}, {1}}));
  EXPECT_EQ(scheduled(shipped("short_request")), (Steps{{7, 40}}));
  EXPECT_EQ(scheduled(shipped("cp_on_off_on")), (Steps{{20}, {3}, {17}}));
  EXPECT_EQ(scheduled(shipped("one_token")), (Steps{{1}, {1}}));
  EXPECT_EQ(scheduled(shipped("uneven_lengths_three_requests")), (Steps{{9, 16, 11}}));
  EXPECT_EQ(scheduled(shipped("uneven_lengths_8_7_cp2")), (Steps{{8, 7}}));
  EXPECT_EQ(scheduled(shipped("uneven_lengths_7_7_7_cp2")), (Steps{{7, 7, 7}}));
  EXPECT_EQ(scheduled(shipped("padded_buffers")), (Steps{{7, 6}}));
  const Problem mixed = shipped("mixed_batch");
  EXPECT_EQ(mixed.steps[3].rows[0].state, RowState::decode);
  EXPECT_EQ(mixed.steps[3].rows[1].state, RowState::prefill);
}

TEST(ShippedScenarios, TurnCpOnAndOffAsTheirRemarksPromise) {
  const auto cp_steps = [](const std::string& name) {
    const Problem problem = shipped(name);
    std::string steps;
    for (const Step& step : problem.steps) steps += is_cp_on(problem, step) ? '1' : '0';
    return steps;
  };
  EXPECT_EQ(cp_steps("cp_on_off_on"), "101");
  EXPECT_EQ(cp_steps("chunked_prefill"), "111111");
  EXPECT_EQ(cp_steps("mixed_batch"), "10000");
  EXPECT_EQ(cp_steps("short_request"), "0");
  EXPECT_EQ(cp_steps("exact_minimum"), "1");
  EXPECT_EQ(cp_steps("more_ranks_than_tokens"), "0");
  // Real traffic uses both paths.
  EXPECT_THAT(cp_steps("mooncake_slice"),
              testing::AllOf(testing::HasSubstr("1"), testing::HasSubstr("0")));
}

TEST(ShippedScenarios, MooncakeSliceSharesPrefixesOfARealTrace) {
  const Problem problem = shipped("mooncake_slice");
  ASSERT_EQ(problem.scenario.requests.size(), 12U);
  // Line 9 has 52 - 3 = 49 blocks in common with line 4: 49 * 512 / 256 = 98 tokens.
  const RequestSpec& ninth = problem.scenario.requests[8];
  ASSERT_TRUE(ninth.shared_prefix);
  EXPECT_EQ(ninth.shared_prefix->request, RequestId{3});
  EXPECT_EQ(ninth.shared_prefix->tokens, 98);
  EXPECT_EQ(ninth.prompt, 266);  // 68208 / 256
  EXPECT_EQ(ninth.arrival_step, 3);
  std::map<std::uint32_t, std::int64_t> first_computed;
  for (const Step& step : problem.steps) {
    for (const StepRow& row : step.rows) {
      first_computed.emplace(row.request.value(), row.computed);
    }
  }
  EXPECT_EQ(first_computed.at(8), 98);
}

}  // namespace
}  // namespace cpverify
