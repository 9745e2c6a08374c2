#include <cstddef>
#include <string>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cpverify/system.hpp"
#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/cost.hpp"
#include "layout/coverage.hpp"
#include "layout/splits.hpp"
#include "layout/world_groups.hpp"
#include "support/json_schema.hpp"
#include "tool/plan_report.hpp"

namespace cpverify::tool {
namespace {

using nlohmann::json;

json document_of(const PlanReport& report) {
  return json::parse(plan_json(report));
}

std::string errors_of(const json& document) {
  const test::JsonSchema schema{std::string{CPVERIFY_SOURCE_DIR} +
                                "/docs/schema/configuration.schema.json"};
  return fmt::format("{}", fmt::join(schema.errors(document), "\n"));
}

PlanReport report_of(const layout::Configuration& configuration) {
  return {configuration, layout::broken_rules(configuration), {}};
}

layout::Configuration zigzag() {
  layout::Configuration configuration;
  configuration.strategy = layout::SplitKind::zigzag;
  configuration.cp = 2;
  configuration.features.set(static_cast<std::size_t>(Feature::lora));
  return configuration;
}

TEST(PlanJson, FollowsItsSchemaWithAndWithoutABatch) {
  PlanReport report = report_of(zigzag());
  EXPECT_EQ(errors_of(document_of(report)), "");
  const layout::Configuration c = report.configuration;
  layout::BatchSplit batch{layout::split_spec(c), {{3, 9, false}}};
  layout::SplitProblems problems;
  problems.total = 1;
  problems.kept.emplace_back();
  const layout::CostModel model;
  layout::BatchCost cost = layout::cost_of(batch, model);
  report.batch.emplace(BatchReport{batch, problems, model, cost, 0.0});
  const json document = document_of(report);
  EXPECT_EQ(errors_of(document), "");
  EXPECT_EQ(document["batch"]["requests"][0]["computed"], 3);
  EXPECT_EQ(document["configuration"]["features"], json{"lora"});
}

TEST(PlanJson, FollowsItsSchemaWhenItIsRefused) {
  layout::Configuration configuration = zigzag();
  configuration.system = System::vllm;
  const json document = document_of(report_of(configuration));
  EXPECT_EQ(errors_of(document), "");
  EXPECT_EQ(document["is_refused"], true);
  EXPECT_FALSE(document["broken_rules"].empty());
  EXPECT_FALSE(document.contains("num_ranks"));
}

TEST(PlanJson, OfAnotherShapeDoesNotFollowTheSchema) {
  json document = document_of(report_of(zigzag()));
  document["configuration"]["tp"] = "two";
  EXPECT_NE(errors_of(document), "");
}

}  // namespace
}  // namespace cpverify::tool
