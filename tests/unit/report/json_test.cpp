#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"
#include "report/report.hpp"
#include "scenario/schema.hpp"
#include "support/json_schema.hpp"
#include "unit/report/example_verdicts.hpp"

namespace cpverify::report {
namespace {

using nlohmann::json;
using test::JsonSchema;

std::string joined(const std::vector<std::string>& errors) {
  return fmt::format("{}", fmt::join(errors, "\n"));
}

JsonSchema schema(const std::string& file) {
  return JsonSchema{std::string{CPVERIFY_SOURCE_DIR} + "/docs/schema/" + file};
}

/// Two requests on cp 2: step 0 has CP on, step 1 decodes with CP off.
Problem example_problem() {
  return make_problem(parse_scenario(R"(
model: {attention: gqa, num_heads_q: 4, num_heads_kv: 2, head_dim: 32, dtype: bf16}
topology: {cp: 2, tp: 1}
cache: {block_size: 4}
requests:
  - {id: a, cached_prefix: 3, prompt: 9, decode: 1}
  - {id: b, prompt: 4, decode: 1}
)",
                                     "example.yaml"));
}

std::vector<Plan> example_plans(const Problem& problem,
                                StrategyKind strategy = StrategyKind::zigzag) {
  std::vector<Plan> plans;
  plans.reserve(problem.steps.size());
  for (const Step& step : problem.steps) plans.push_back(make_plan(problem, step.index, strategy));
  return plans;
}

/// A problem that every strategy can run.
Problem problem_for_all(DcpCombine combine) {
  Scenario scenario = parse_scenario(R"(
model: {num_heads_q: 4, num_heads_kv: 1, head_dim: 32, dtype: bf16}
topology: {cp: 2, tp: 2, dcp: 2}
cache: {block_size: 4}
requests:
  - {id: a, cached_prefix: 3, prompt: 9, decode: 1}
  - {id: b, prompt: 4, decode: 1}
)",
                                     "example.yaml");
  scenario.dcp.combine = combine;
  return make_problem(scenario);
}

TEST(VerdictsJson, FollowsItsSchema) {
  const std::string text = verdicts_json({test::passing_verdict(), test::failing_verdict(), {}});
  const std::vector<std::string> errors = schema("verdicts.schema.json").errors(json::parse(text));
  EXPECT_TRUE(errors.empty()) << joined(errors);
}

TEST(VerdictsJson, HasAllFieldsOfAFindingAndOnlyThoseSet) {
  const json verdicts = json::parse(verdicts_json({test::failing_verdict()}));
  const json& finding = verdicts["verdicts"][0]["cells"][0]["findings"][0];
  EXPECT_EQ(finding["kind"], "lse_error");
  EXPECT_EQ(finding["rank"], 1);
  EXPECT_EQ(finding["token"], 40);
  EXPECT_EQ(finding["element"], 19);
  EXPECT_EQ(finding["count"], 12);
  EXPECT_FALSE(finding.contains("page"));
  EXPECT_FALSE(finding.contains("kernel"));
}

TEST(VerdictsJson, RoundsRatiosToThreeDigitsAndHasNoInfinity) {
  const json good = json::parse(verdicts_json({test::passing_verdict()}));
  EXPECT_EQ(good["verdicts"][0]["cells"][0]["checks"][2]["worst_ratio"], 0.0512);
  const json bad = json::parse(verdicts_json({test::failing_verdict()}));
  EXPECT_TRUE(bad["verdicts"][0]["cells"][0]["checks"][2]["worst_ratio"].is_null());
}

TEST(VerdictsJson, CountsCellsByStrategyTopologyModeAndOutcome) {
  Verdict refused = test::passing_verdict();
  refused.topology.cp = 2;
  refused.cells[1].outcome = Outcome::refused;
  BrokenRule rule;
  rule.id = "vllm-2";
  rule.stated_by = "vllm";
  rule.effect = "refused";
  refused.cells[1].rules = {rule};
  Verdict passed = test::passing_verdict();
  passed.topology.cp = 2;
  const json document = json::parse(verdicts_json({refused, passed, test::passing_verdict()}));
  EXPECT_EQ(joined(schema("verdicts.schema.json").errors(document)), "");
  const json world = {{"cp", 2}, {"tp", 1}, {"dcp", 1}};
  // Of the three verdicts the third has another topology.
  ASSERT_EQ(document["executed"].size(), 4U);
  EXPECT_EQ(document["executed"][3], (json{{"strategy", "zigzag"},
                                           {"topology", world},
                                           {"mode", "random"},
                                           {"cells", {{"PASS", 1}, {"REFUSED", 1}}}}));
  EXPECT_EQ(document["verdicts"][0]["cells"][1]["broken_rules"][0]["id"], "vllm-2");
}

TEST(VerdictsJson, SurvivesTextThatIsNotUtf8) {
  Verdict verdict = test::failing_verdict();
  verdict.scenario = "bad\xff\"name\n";
  const json verdicts = json::parse(verdicts_json({verdict}));
  EXPECT_EQ(verdicts["verdicts"][0]["scenario"], "bad\xEF\xBF\xBD\"name\n");
}

TEST(VerdictsJson, OfNothingIsAnEmptyList) {
  EXPECT_EQ(verdicts_json({}), R"({
  "schema": "cpverify.verdicts",
  "schema_version": 1,
  "executed": [],
  "verdicts": []
}
)");
}

TEST(PlansJson, FollowsItsSchema) {
  const Problem problem = example_problem();
  const std::string text = plans_json(problem, example_plans(problem));
  const std::vector<std::string> errors = schema("plan.schema.json").errors(json::parse(text));
  EXPECT_TRUE(errors.empty()) << joined(errors);
}

TEST(PlansJson, FollowsItsSchemaForEveryStrategy) {
  const JsonSchema plan_schema = schema("plan.schema.json");
  for (const DcpCombine combine : scenario::kDcpCombines) {
    const Problem problem = problem_for_all(combine);
    for (const StrategyKind strategy : scenario::kStrategies) {
      const std::string text = plans_json(problem, example_plans(problem, strategy));
      const std::vector<std::string> errors = plan_schema.errors(json::parse(text));
      EXPECT_TRUE(errors.empty()) << name(strategy) << ": " << joined(errors);
    }
  }
}

TEST(VerdictsJson, FollowsItsSchemaForEveryStrategy) {
  for (const StrategyKind strategy : scenario::kStrategies) {
    Verdict verdict = test::failing_verdict();
    verdict.cells.front().strategy = strategy;
    const json document = json::parse(verdicts_json({verdict}));
    const std::vector<std::string> errors = schema("verdicts.schema.json").errors(document);
    EXPECT_TRUE(errors.empty()) << name(strategy) << ": " << joined(errors);
  }
}

TEST(PlansJson, HasEveryMetadataArrayOfEveryRankUnderItsName) {
  const Problem problem = example_problem();
  const std::vector<Plan> plans = example_plans(problem);
  const json document = json::parse(plans_json(problem, plans));
  for (std::size_t step = 0; step < plans.size(); ++step) {
    for (std::size_t rank = 0; rank < plans[step].ranks.size(); ++rank) {
      for (const Buffer& buffer : plans[step].ranks[rank].buffers) {
        if (buffer.role != BufferRole::metadata) continue;
        const json& array = document["plans"][step]["ranks"][rank]["metadata"][buffer.name];
        const json flat = buffer.shape.size() == 2 ? json(array).flatten() : json(array);
        EXPECT_EQ(flat.size(), buffer.values.size()) << buffer.name;
      }
    }
  }
  // Request a has 3 cached tokens and gets one page for each 4 of its 12; b needs one of 3.
  EXPECT_EQ(document["plans"][0]["ranks"][0]["metadata"]["block_table"][0].size(), 3U);
  // After the prompts both decode: 3 + 9 + 1 and 4 + 1 keys.
  EXPECT_EQ(document["plans"][1]["ranks"][1]["metadata"]["kv_lens"], (json{13, 5}));
}

TEST(PlansJson, PrintsAnArrayOnOneLine) {
  const Problem problem = example_problem();
  EXPECT_NE(plans_json(problem, example_plans(problem)).find("\"kv_lens\": [13,5]"),
            std::string::npos);
}

TEST(PlansText, NamesStepsRanksArraysAndOperations) {
  const Problem problem = example_problem();
  const std::string text = plans_text(problem, example_plans(problem));
  for (const char* expected :
       {"step 0, strategy zigzag, CP on\n", "step 1, strategy zigzag, CP off\n",
        "  request a: prefill, 3 computed, 9 scheduled\n",
        "  rank 1: cp 1, tp 0, query heads [0, 4), kv heads [0, 2)\n", "reorder_index",
        "i32 [2, 3]", "all_gather kv_send -> kv_gathered", "launch attention_"})
    EXPECT_NE(text.find(expected), std::string::npos) << expected << " not in\n" << text;
}

}  // namespace
}  // namespace cpverify::report
