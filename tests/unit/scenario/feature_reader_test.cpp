// Keys soft_cap, sinks and sliding_window of a model.

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "unit/scenario/scenario_text.hpp"

namespace cpverify {
namespace {

using test::error_of;
using test::ScenarioText;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

std::string with_model(const std::string& line) {
  return error_of(ScenarioText{.model = line}.text());
}

TEST(FeatureReader, TakesCapSinksAndWindow) {
  const ScenarioText text{.model =
                              "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: bf16, "
                              "soft_cap: 30, sinks: [1, -2.5, 0, 4], sliding_window: 128}"};
  const ModelSpec model = parse_scenario(text.text(), "x.yaml").model;
  EXPECT_EQ(model.soft_cap, 30.0F);
  EXPECT_TRUE(model.has_sinks);
  EXPECT_THAT(model.sinks, ElementsAre(1.0F, -2.5F, 0.0F, 4.0F));
  EXPECT_EQ(model.sliding_window, 128);
}

TEST(FeatureReader, SayWhatIsWrongWithSoftCapsSinksAndWindows) {
  const auto model = [](const std::string& key) {
    return with_model("model: {" + key +
                      ", num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: bf16}");
  };
  EXPECT_THAT(model("soft_cap: 0"), StartsWith("x.yaml:1:19: 'soft_cap' is 0; expected more than"));
  EXPECT_THAT(model("soft_cap: 1001"), HasSubstr("'soft_cap' is 1001; expected"));
  EXPECT_EQ(model("sinks: yes"),
            "x.yaml:1:16: 'sinks': expected true, false or a list of logits, found 'yes'");
  EXPECT_EQ(model("sinks: [1, 2]"),
            "x.yaml:1:16: 'sinks' has 2 logits; expected one for each of 4 query heads");
  EXPECT_THAT(model("sinks: [1, 2, nan, 4]"), HasSubstr("'sinks' is nan; expected"));
  EXPECT_THAT(model("sinks: [1, 2, 3, 101]"), HasSubstr("'sinks' is 101; expected"));
  EXPECT_THAT(model("sliding_window: 0"), HasSubstr("'sliding_window' is 0; expected"));
  EXPECT_THAT(model("sliding_window: 1.5"), HasSubstr("'sliding_window'"));
}

// A window of a shard's own tokens is another; where nothing is split, it is the same.
TEST(FeatureReader, RefuseWindowsOnStrategiesThatCutUpARequestsKeys) {
  const auto of = [](const std::string& topology, const std::string& strategy) {
    return error_of(
        "model: {num_heads_q: 4, num_heads_kv: 1, head_dim: 64, dtype: bf16, sliding_window: 4}\n"
        "topology: " +
        topology + "\nstrategies: [single, " + strategy +
        "]\ncache: {block_size: 16}\nrequests: [{id: a, prompt: 9}]\n");
  };
  EXPECT_THAT(of("{cp: 1, tp: 2, dcp: 2}", "dcp"),
              AllOf(HasSubstr("'strategies' has dcp, which gives a rank a part of the cache"),
                    HasSubstr("expected no sliding_window")));
  EXPECT_THAT(of("{cp: 2}", "ring"), HasSubstr("ring, which attends to the blocks of other ranks"));
  EXPECT_THAT(of("{cp: 2}", "ring_contiguous"), HasSubstr("expected no sliding_window"));
}

}  // namespace
}  // namespace cpverify
