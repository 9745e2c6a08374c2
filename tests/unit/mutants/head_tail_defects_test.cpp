// What each defect of padded head and tail chunks changes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/defects.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/mutants/defect_subject.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify::mutants {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Two ranks: a prefill of 5 tokens after 4, decodes at positions 5 and 6; tokens 0-4, 5 and 6.
/// Half order of rank 0: tokens 5 6 | 0 1 | pads; of rank 1: 5 6 | 2 3 | 4 and a pad.
class HeadTailDefects : public DefectSubject {
 protected:
  HeadTailDefects() {
    Scenario scenario = small_scenario();
    scenario.topology.kv_sharding = KvSharding::pcp_dcp;
    problem() = test::hand_made_problem(
        scenario, {{{4, 5}, {5, 1, RowState::decode}, {6, 1, RowState::decode}}});
    plan_by(StrategyKind::pcp_head_tail);
  }

  auto context_merges(std::size_t index) {
    const std::vector<std::string> labels = test::labels(rank(index));
    return std::count(labels.begin(), labels.end(), "merge the cached context");
  }
  std::int32_t is_causal(std::size_t index, const std::string& label) {
    return std::get<std::int32_t>(test::launch_labelled(rank(index), label).arguments.at(14));
  }
};

TEST_F(HeadTailDefects, GatheredOrderIsLeft) {
  EXPECT_THAT(values(1, "restore_index"), ElementsAre(0, 6, 1, 7, 2, 3, 8, 9, 10, 11, 4, 5));
  put_in("head_tail_not_restored");
  EXPECT_THAT(values(1, "restore_index"), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
}

TEST_F(HeadTailDefects, HeadsAndTailsAreSwappedAndDecodesAreNot) {
  EXPECT_THAT(values(0, "q_head_tail_index"), ElementsAre(0, 1, 2, 3, 4, 5));
  put_in("head_tail_swapped");
  EXPECT_THAT(values(0, "q_head_tail_index"), ElementsAre(0, 1, 4, 5, 2, 3));
  EXPECT_THAT(values(0, "q_full_index"), ElementsAre(0, 1, 2, 3, 4, 5));
}

TEST_F(HeadTailDefects, PadsAreMergedAndDecodesAreNot) {
  EXPECT_THAT(values(0, "merge_index"), ElementsAre(-1, -1, 2, 3, -1, -1));
  put_in("head_tail_pads_merged");
  EXPECT_THAT(values(0, "merge_index"), ElementsAre(-1, -1, 2, 3, 4, 5));
  EXPECT_THAT(values(1, "merge_index"), ElementsAre(-1, -1, 2, 3, 4, 5));
}

TEST_F(HeadTailDefects, OwnChunksLoseTheirMask) {
  put_in("head_tail_unmasked");
  EXPECT_EQ(is_causal(0, "attention of heads to their own chunks"), 0);
  EXPECT_EQ(is_causal(1, "attention of tails to their own chunks"), 0);
}

TEST_F(HeadTailDefects, ContextIsMergedTwice) {
  EXPECT_EQ(context_merges(0), 1);
  put_in("head_tail_context_twice");
  EXPECT_EQ(context_merges(0), 2);
  EXPECT_EQ(context_merges(1), 2);
}

TEST_F(HeadTailDefects, ContextIsDropped) {
  put_in("head_tail_context_dropped");
  EXPECT_EQ(context_merges(0), 0);
  EXPECT_EQ(context_merges(1), 0);
}

TEST_F(HeadTailDefects, EmptyPartOfTheFirstRankWeighs) {
  put_in("head_tail_empty_weighs");
  const auto pattern = [this](std::size_t index) {
    return std::get<Fill>(test::operation_labelled(rank(index), "set lse_nomask to -inf").body)
        .pattern;
  };
  EXPECT_EQ(pattern(0), 0U);
  EXPECT_EQ(pattern(1), 0xff800000U);
}

// Two blocks of 8 tokens for each request: the second has blocks 3 and 4, the third
// 5 and 6. Positions 5 and 6 are the third slot of rank 1 and the fourth of rank 0: 3 * 4 + 2 and
// 5 * 4 + 3.
TEST_F(HeadTailDefects, SecondDecodeLosesItsSlot) {
  EXPECT_THAT(values(0, "decode_slots"), ElementsAre(-1, 23));
  EXPECT_THAT(values(1, "decode_slots"), ElementsAre(14, -1));
  put_in("head_tail_decode_slots");
  EXPECT_THAT(values(0, "decode_slots"), ElementsAre(-1, -1));
  EXPECT_THAT(values(1, "decode_slots"), ElementsAre(14, -1));
}

// Positions 0-5 are three on each rank; of 0-6, rank 0 has four. The rank that holds a decode's own
// token is the one that loses it.
TEST_F(HeadTailDefects, DecodesDoNotSeeThemselves) {
  EXPECT_THAT(values(0, "kv_lens_decode"), ElementsAre(3, 4));
  EXPECT_THAT(values(1, "kv_lens_decode"), ElementsAre(3, 3));
  put_in("head_tail_decode_blind");
  EXPECT_THAT(values(0, "kv_lens_decode"), ElementsAre(3, 3));
  EXPECT_THAT(values(1, "kv_lens_decode"), ElementsAre(2, 3));
}

TEST_F(HeadTailDefects, NeedTheirStrategy) {
  plan_by(StrategyKind::pcp_virtual_batch);
  for (const DefectInfo& defect : all_defects()) {
    const std::string name{defect.name};
    if (!name.starts_with("head_tail_")) continue;
    EXPECT_THROW(put_in(name), InputError) << name;
  }
}

// Every other defect changes something here or says what it needs.
TEST_F(HeadTailDefects, OfOtherStrategiesAreRefusedOrFit) {
  for (const DefectInfo& defect : all_defects()) {
    plan_by(StrategyKind::pcp_head_tail);
    try {
      put_in(std::string{defect.name});
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), HasSubstr("changes nothing in this scenario")) << defect.name;
    }
  }
}

}  // namespace
}  // namespace cpverify::mutants
