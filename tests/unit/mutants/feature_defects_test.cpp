// What the defects of soft-cap, sinks and windows change in the launches of a plan.

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "plan/launches.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/mutants/defect_subject.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify::mutants {
namespace {

using plan::AttentionArguments;
using testing::HasSubstr;

constexpr const char* kEarly = "attention of the early blocks";

/// 8 tokens over two ranks, in f32: kernel fma.
class FeatureDefects : public DefectSubject {
 protected:
  void make(StrategyKind strategy, const ModelSpec& features) {
    Scenario scenario = small_scenario();
    scenario.model = features;
    problem() = test::hand_made_problem(scenario, {{{0, 8}}});
    plan_by(strategy);
  }
  template <class T>
  T argument(std::size_t rank, const std::string& label, std::size_t index) {
    return std::get<T>(test::launch_labelled(this->rank(rank), label).arguments.at(index));
  }
};

ModelSpec capped() {
  ModelSpec model = small_scenario().model;
  model.soft_cap = 20.0F;
  return model;
}

ModelSpec with_sinks() {
  ModelSpec model = small_scenario().model;
  model.has_sinks = true;
  return model;
}

ModelSpec windowed(std::int64_t window) {
  ModelSpec model = small_scenario().model;
  model.sliding_window = window;
  return model;
}

TEST_F(FeatureDefects, SoftCapMissingLeavesScoresAsTheyAre) {
  make(StrategyKind::zigzag, capped());
  put_in("soft_cap_missing");
  EXPECT_EQ(argument<float>(1, kEarly, AttentionArguments::kSoftCapScale), 0.0F);
  EXPECT_EQ(argument<float>(1, kEarly, AttentionArguments::kSoftmaxScaleLog2),
            static_cast<float>(0.125 * std::numbers::log2e));
}

TEST_F(FeatureDefects, SoftCapNotScaledBackKeepsTheCapOnly) {
  make(StrategyKind::zigzag, capped());
  put_in("soft_cap_not_scaled_back");
  EXPECT_EQ(argument<float>(0, kEarly, AttentionArguments::kSoftCapScale), 0.125F / 20.0F);
  EXPECT_EQ(argument<float>(0, kEarly, AttentionArguments::kSoftmaxScaleLog2),
            static_cast<float>(0.125 * std::numbers::log2e));
}

TEST_F(FeatureDefects, SoftCapAfterMaskReplacesTheKernel) {
  make(StrategyKind::zigzag, capped());
  put_in("soft_cap_after_mask");
  EXPECT_EQ(test::launch_labelled(plans()[0].ranks[0], kEarly).module,
            "mutants/attention_fma_capped_mask");
}

TEST_F(FeatureDefects, SinkMissingPassesNone) {
  make(StrategyKind::zigzag, with_sinks());
  spec().parameters = {{"rank", 1}};
  put_in("sink_missing");
  EXPECT_NO_THROW(argument<BufferRef>(0, kEarly, AttentionArguments::kSinks));
  EXPECT_EQ(argument<std::int64_t>(1, kEarly, AttentionArguments::kSinks), 0);
}

TEST_F(FeatureDefects, SinkOnEveryPartReachesTheOtherBlocks) {
  make(StrategyKind::ring, with_sinks());
  const std::string label = "attention of the block of hop 1";
  EXPECT_EQ(argument<std::int64_t>(1, label, AttentionArguments::kSinks), 0);
  put_in("sink_on_every_part");
  const auto sinks = argument<BufferRef>(1, label, AttentionArguments::kSinks);
  EXPECT_EQ(test::pointer(plans()[0].ranks[1], sinks), "sinks");
}

TEST_F(FeatureDefects, SinkOnEveryPartNeedsParts) {
  make(StrategyKind::zigzag, with_sinks());
  EXPECT_THAT(refusal("sink_on_every_part"), HasSubstr("a strategy that merges partial results"));
}

TEST_F(FeatureDefects, WindowOffByOneShiftsIt) {
  make(StrategyKind::zigzag, windowed(3));
  put_in("window_off_by_one");
  EXPECT_EQ(argument<std::int32_t>(1, kEarly, AttentionArguments::kWindow), 4);
}

// A window of 0 would be none at all, which is another defect.
TEST_F(FeatureDefects, WindowOffByOneKeepsAWindow) {
  make(StrategyKind::zigzag, windowed(1));
  spec().parameters = {{"shift", -1}};
  EXPECT_THAT(refusal("window_off_by_one"), HasSubstr("changes nothing"));
}

TEST_F(FeatureDefects, WindowMissingShowsAllKeys) {
  make(StrategyKind::zigzag, windowed(3));
  put_in("window_missing");
  EXPECT_EQ(argument<std::int32_t>(1, kEarly, AttentionArguments::kWindow), 0);
}

TEST_F(FeatureDefects, WindowOfCallReplacesTheKernel) {
  make(StrategyKind::zigzag, windowed(3));
  put_in("window_of_call");
  EXPECT_EQ(test::launch_labelled(plans()[0].ranks[0], kEarly).module,
            "mutants/attention_fma_local_window");
}

TEST_F(FeatureDefects, NeedTheFeature) {
  make(StrategyKind::zigzag, {});
  for (const char* defect :
       {"soft_cap_missing", "soft_cap_not_scaled_back", "soft_cap_after_mask", "sink_missing",
        "sink_on_every_part", "window_off_by_one", "window_missing", "window_of_call"}) {
    EXPECT_THAT(refusal(defect), HasSubstr("changes nothing in this scenario; it needs a model"));
  }
}

}  // namespace
}  // namespace cpverify::mutants
