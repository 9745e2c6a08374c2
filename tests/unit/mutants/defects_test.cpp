#include "mutants/defects.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/mutants/defect_subject.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify::mutants {
namespace {

using test::buffer_named;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using Values = std::vector<std::int64_t>;

/// Step 0: [7,7,7] at cp 2, the first with a prefix of 5, so M = 12, Pm = 12. Step 1: one decode
/// row. 8 rows at a time: 24 and 8 input rows.
class Defects : public DefectSubject {
 protected:
  explicit Defects(DType dtype = DType::f32) {
    Scenario scenario = small_scenario(dtype);
    scenario.padding.token_multiple = 8;
    problem() =
        test::hand_made_problem(scenario, {{{5, 7}, {0, 7}, {0, 7}}, {{12, 1, RowState::decode}}});
    for (std::uint32_t step = 0; step < 2; ++step) {
      plans().push_back(make_plan(problem(), step, StrategyKind::zigzag));
    }
    spec().where = {"wrong.yaml", 12, 3};
  }

  const Values& values(std::size_t step, std::size_t rank, const std::string& name) {
    return buffer_named(plans().at(step).ranks.at(rank), name).values;
  }
  const Values& shape(std::size_t step, std::size_t rank, const std::string& name) {
    return buffer_named(plans().at(step).ranks.at(rank), name).shape;
  }
  Collective collective(std::size_t rank, const std::string& label) {
    return std::get<Collective>(test::operation_labelled(plans().at(0).ranks.at(rank), label).body);
  }
};

class Bf16Defects : public Defects {
 protected:
  Bf16Defects() : Defects{DType::bf16} {}
};

TEST(AllDefects, HaveDistinctNamesAndSayWhatTheyAre) {
  std::set<std::string> names;
  for (const DefectInfo& defect : all_defects()) {
    EXPECT_TRUE(names.insert(std::string{defect.name}).second) << defect.name;
    EXPECT_FALSE(defect.summary.empty()) << defect.name;
    EXPECT_FALSE(defect.needs.empty()) << defect.name;
  }
  EXPECT_GE(names.size(), 16U);
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

// A defect that no scenario contains is a claim that nobody checks.
TEST(AllDefects, HaveAScenarioEach) {
  std::string scenarios;
  const std::filesystem::path folder =
      std::filesystem::path{CPVERIFY_SOURCE_DIR} / "scenarios/wrong";
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
    if (entry.path().extension() == ".yaml") {
      scenarios += text_of(entry.path());
    }
  }
  for (const DefectInfo& defect : all_defects()) {
    const std::string line = "inject: {defect: " + std::string{defect.name};
    EXPECT_TRUE(scenarios.find(line + "}") != std::string::npos ||
                scenarios.find(line + ",") != std::string::npos)
        << defect.name;
  }
}

TEST(AllDefects, AreDocumentedWithTheirParameters) {
  const std::string text = text_of(std::filesystem::path{CPVERIFY_SOURCE_DIR} / "docs/defects.md");
  for (const DefectInfo& defect : all_defects()) {
    EXPECT_THAT(text, HasSubstr("| `" + std::string{defect.name} + "` |"));
    for (const ParameterInfo& parameter : defect.parameters) {
      EXPECT_THAT(text, HasSubstr("`" + std::string{parameter.name} + "`"));
    }
  }
}

TEST_F(Defects, RefusesAnUnknownNameWithTheNearest) {
  EXPECT_THAT(refusal("wrong_slots"),
              AllOf(HasSubstr("wrong.yaml:12:3: unknown defect 'wrong_slots'"),
                    HasSubstr("did you mean 'wrong_slot'?")));
}

TEST_F(Defects, RefusesAnUnknownParameter) {
  spec().parameters = {{"tokn", 1}};
  EXPECT_THAT(refusal("wrong_slot"),
              AllOf(HasSubstr("no parameter 'tokn'"), HasSubstr("did you mean 'token'?")));
}

TEST_F(Defects, RefusesRanksAndStepsThatAreNotThere) {
  spec().parameters = {{"rank", 2}};
  EXPECT_THAT(refusal("wrong_slot"),
              HasSubstr("rank of defect 'wrong_slot' is 2, expected -1 .. 1"));
  spec().parameters = {{"step", 2}};
  EXPECT_THAT(refusal("wrong_slot"), HasSubstr("expected -1 .. 1"));
  spec().parameters = {{"token", -1}};
  EXPECT_THAT(refusal("wrong_slot"), HasSubstr("expected 0 or more"));
}

// Step 1 is a decode step: nothing is split there.
TEST_F(Defects, RefusesADefectThatChangesNothing) {
  spec().parameters = {{"step", 1}};
  EXPECT_THAT(refusal("row_dropped"), HasSubstr("changes nothing in this scenario; it needs"));
  EXPECT_THAT(refusal("missing_barrier"), HasSubstr("needs attention_kernel mma"));
}

// Early blocks of 7 on rank 0 are tokens 0-1: 5 + 2, 2 and 2 keys.
TEST_F(Defects, KvLenWithoutPrefixDropsCachedTokens) {
  ASSERT_THAT(values(0, 0, "kv_lens_prev"), ElementsAre(7, 2, 2));
  put_in("kv_len_without_prefix");
  EXPECT_THAT(values(0, 0, "kv_lens_prev"), ElementsAre(2, 2, 2));
  EXPECT_THAT(values(0, 0, "cu_seqlens_k_prev"), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(values(0, 1, "kv_lens_next"), ElementsAre(6, 6, 6));
  EXPECT_THAT(values(1, 0, "kv_lens"), ElementsAre(13));
}

TEST_F(Defects, RankParameterLeavesOtherRanksAlone) {
  spec().parameters = {{"rank", 1}};
  put_in("kv_len_without_prefix");
  EXPECT_THAT(values(0, 0, "kv_lens_prev"), ElementsAre(7, 2, 2));
  EXPECT_THAT(values(0, 1, "kv_lens_prev"), ElementsAre(4, 4, 4));
}

// Request 0: blocks 2,2,2,1 at rows 0, 12, then 12 + 6 and 6 (late rows follow 6 early ones).
TEST_F(Defects, ReorderRanksSwappedExchangesOwners) {
  Values before = values(0, 0, "reorder_index");
  before.resize(7);
  ASSERT_THAT(before, ElementsAre(0, 1, 12, 13, 18, 19, 6));
  put_in("reorder_ranks_swapped");
  Values after = values(0, 0, "reorder_index");
  EXPECT_EQ(after.back(), -1);
  after.resize(7);
  EXPECT_THAT(after, ElementsAre(12, 13, 0, 1, 6, 7, 18));
}

// M = Pm = 12 here: counting by physical rows would be right.
TEST_F(Defects, ReorderByPhysicalRowsNeedsADifference) {
  EXPECT_THAT(refusal("reorder_by_physical_rows"), HasSubstr("changes nothing"));
}

TEST_F(Defects, StaleMetadataKeepsTheSplitsLengths) {
  put_in("stale_metadata");
  EXPECT_THAT(values(1, 0, "cu_seqlens_q"), ElementsAre(0, 2));
  EXPECT_THAT(values(1, 0, "kv_lens"), ElementsAre(7));
  EXPECT_THAT(values(1, 1, "kv_lens"), ElementsAre(9));
}

// 21 tokens in 24 rows: rank 0 owns the last block, whose keys end at 7.
TEST_F(Defects, PadRowAttendedLengthensTheLastRequest) {
  put_in("pad_row_attended");
  EXPECT_THAT(values(0, 0, "kv_lens_next"), ElementsAre(12, 7, 7 + 3));
  EXPECT_THAT(values(0, 1, "kv_lens_next"), ElementsAre(11, 6, 6));
  EXPECT_THAT(values(1, 1, "kv_lens"), ElementsAre(13 + 7));
}

TEST_F(Defects, PositionRestartDropsThePrefix) {
  spec().parameters = {{"step", 0}};
  put_in("position_restart");
  EXPECT_THAT(values(0, 0, "positions"), ElementsAre(0, 1, 0, 1, 0, 1, 6, 6, 6, 0, 0, 0));
  EXPECT_EQ(values(1, 0, "positions").front(), 12);
}

TEST_F(Defects, RowDroppedLosesATokenOfOneRank) {
  spec().parameters = {{"row", 2}};
  put_in("row_dropped");
  EXPECT_EQ(values(0, 0, "shard_index")[2], -1);
  EXPECT_EQ(values(0, 0, "shard_index")[3], 8);
  EXPECT_EQ(values(0, 1, "shard_index")[2], 9);
}

TEST_F(Defects, RowDroppedRefusesAPadRow) {
  spec().parameters = {{"row", 9}};
  EXPECT_THAT(refusal("row_dropped"), HasSubstr("changes nothing"));
}

TEST_F(Defects, WrongSlotMovesOneToken) {
  spec().parameters = {{"token", 7}, {"step", 0}};
  const Values before = values(0, 0, "slot_mapping");
  put_in("wrong_slot");
  EXPECT_EQ(values(0, 0, "slot_mapping")[7], before[7] + 1);
  EXPECT_EQ(values(0, 0, "slot_mapping")[6], before[6]);
  EXPECT_EQ(values(0, 1, "slot_mapping")[7], before[7]);
}

TEST_F(Defects, TpHeadShiftNeedsAnotherRanksHeads) {
  EXPECT_THAT(refusal("tp_head_shift"), HasSubstr("changes nothing"));
}

TEST_F(Defects, TpHeadShiftMovesInputsAndClaims) {
  problem().scenario.topology = {2, 2};
  plans() = {make_plan(problem(), 0, StrategyKind::zigzag)};
  put_in("tp_head_shift");
  const RankPlan& rank = plans()[0].ranks[2];
  EXPECT_EQ(rank.heads_q.first, 1U);
  EXPECT_EQ(buffer_named(rank, "q").input->heads.first, 1U);
  EXPECT_EQ(buffer_named(rank, "out_local").output->heads.first, 1U);
  EXPECT_EQ(buffer_named(rank, "k").input->heads.first, 0U);
  EXPECT_EQ(plans()[0].ranks[3].heads_q.first, 2U);
}

// ceil(21 / 2) = 11 rows where rank 1 has 12; the all-gather still moves 12.
TEST_F(Defects, GatherBufferCeilShrinksBuffersOnly) {
  put_in("gather_buffer_ceil");
  EXPECT_EQ(shape(0, 0, "kv_send")[0], 11);
  EXPECT_EQ(shape(0, 0, "kv_gathered")[0], 22);
  EXPECT_EQ(collective(0, "all-gather k and v rows").count, 12 * 2 * 2 * 32);
}

// Pages of 4: 12, 7 and 7 tokens in 3, 2 and 2 of them; ids 1.., 5.. and 9.. (4 a request).
TEST_F(Defects, PageTableTooNarrowKeepsEntriesInPlace) {
  ASSERT_THAT(values(0, 0, "block_table"), ElementsAre(1, 2, 3, 5, 6, 0, 9, 10, 0));
  put_in("page_table_too_narrow");
  EXPECT_THAT(values(0, 0, "block_table"), ElementsAre(1, 2, 3, 5, 6, 0));
  EXPECT_THAT(shape(0, 0, "block_table"), ElementsAre(3, 2));
}

TEST_F(Defects, LateOffsetLostStartsAtRowZero) {
  put_in("late_offset_lost");
  const RankPlan& rank = plans()[0].ranks[0];
  const std::vector<std::string> arguments =
      test::argument_texts(rank, test::launch_labelled(rank, "attention of the late blocks"));
  EXPECT_EQ(arguments[0], "q_local");
  EXPECT_EQ(arguments[6], "out_local");
  EXPECT_EQ(arguments[7], "lse_local");
}

TEST_F(Defects, SkippedCollectiveIsMissingOnOneRank) {
  const std::size_t count = plans()[0].ranks[0].operations.size();
  put_in("skipped_collective");
  EXPECT_EQ(plans()[0].ranks[0].operations.size(), count);
  EXPECT_EQ(plans()[0].ranks[1].operations.size(), count - 1);
  EXPECT_THROW((void)collective(1, "all-gather k and v rows"), std::out_of_range);
}

TEST_F(Defects, CollectiveCountDiffersByWholeRows) {
  spec().parameters = {{"index", 1}, {"rows", 2}};
  put_in("collective_count_differs");
  EXPECT_EQ(collective(0, "all-gather attention rows").count, 12 * 128);
  EXPECT_EQ(collective(1, "all-gather attention rows").count, 10 * 128);
  EXPECT_EQ(collective(1, "all-gather k and v rows").count, 12 * 128);
}

TEST_F(Defects, MissingEventWaitMovesTheCollectiveAndNothingComesAfterIt) {
  put_in("missing_event_wait");
  const std::vector<Operation>& operations = plans()[0].ranks[0].operations;
  const auto place = std::find_if(operations.begin(), operations.end(), [](const Operation& each) {
    return std::holds_alternative<Collective>(each.body);
  });
  ASSERT_NE(place, operations.end());
  EXPECT_EQ(place->stream, 1U);
  EXPECT_THAT(place->after, ElementsAre(place - operations.begin() - 1));
  for (const Operation& operation : operations) {
    if (&operation == &*place) continue;
    EXPECT_EQ(operation.stream, 0U);
    EXPECT_TRUE(operation.after.empty());
  }
}

TEST_F(Defects, KernelDefectsReplaceTheModuleOnly) {
  put_in("causal_off_by_one");
  const Launch& early = test::launch_labelled(plans()[0].ranks[1], "attention of the early blocks");
  EXPECT_EQ(early.module, "mutants/attention_fma_causal_plus_one");
  EXPECT_EQ(early.entry, "attention_fma_f32_d32");
}

TEST_F(Bf16Defects, KernelDefectsFollowTheKernelInUse) {
  put_in("lse_base2");
  const Launch& early = test::launch_labelled(plans()[0].ranks[1], "attention of the early blocks");
  EXPECT_EQ(early.module, "mutants/attention_mma_lse_base2");
  EXPECT_EQ(early.entry, "attention_mma_bf16_d32");
}

TEST_F(Bf16Defects, RoundingPagesNeedsTheFmaKernel) {
  EXPECT_THAT(refusal("page_rounded"), HasSubstr("it needs attention_kernel fma"));
}

TEST_F(Defects, NullBlockWrittenReplacesTheCacheWrite) {
  spec().parameters = {{"rank", 1}};
  put_in("null_block_written");
  EXPECT_EQ(test::launch_labelled(plans()[0].ranks[0], "write k and v to the pools").module,
            "kv_write");
  EXPECT_EQ(test::launch_labelled(plans()[0].ranks[1], "write k and v to the pools").module,
            "mutants/kv_write_negative_slot");
}

}  // namespace
}  // namespace cpverify::mutants
