#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/checks.hpp"
#include "judge/judge.hpp"
#include "support/ideal_cell.hpp"
#include "unit/judge/expect_findings.hpp"

namespace cpverify::judge {
namespace {

using test::expect_only;
using test::kinds;
using test::small_problem;

Plan zigzag_plan(const Problem& problem, std::uint32_t step = 0) {
  return make_plan(problem, step, StrategyKind::zigzag);
}

Buffer& buffer_of(Plan& plan, std::size_t rank, const std::string& name) {
  std::vector<Buffer>& buffers = plan.ranks.at(rank).buffers;
  return buffers.at(static_cast<std::size_t>(
      std::find_if(buffers.begin(), buffers.end(),
                   [&](const Buffer& buffer) { return buffer.name == name; }) -
      buffers.begin()));
}

std::vector<Collective*> collectives_of(RankPlan& rank) {
  std::vector<Collective*> found;
  for (Operation& operation : rank.operations) {
    if (auto* collective = std::get_if<Collective>(&operation.body)) found.push_back(collective);
  }
  return found;
}

std::vector<Finding> judged(const Problem& problem, const Plan& plan) {
  return judge_plan(problem, plan, DataMode::random);
}

TEST(JudgePlan, AcceptsTheRightPlans) {
  const Problem problem = small_problem();
  for (const Step& step : problem.steps) {
    for (const StrategyKind strategy : {StrategyKind::single, StrategyKind::zigzag}) {
      const std::vector<Finding> findings =
          judged(problem, make_plan(problem, step.index, strategy));
      EXPECT_TRUE(findings.empty()) << test::dump(findings);
    }
  }
}

// Every metadata array of every rank, its first and its last value, off by one: one finding that
// names rank, buffer and element.
TEST(JudgePlan, NamesEveryWrongMetadataValue) {
  const Problem problem = small_problem();
  for (const std::uint32_t step : {0U, 1U}) {
    const Plan right = zigzag_plan(problem, step);
    for (std::size_t r = 0; r < right.ranks.size(); ++r) {
      for (std::size_t b = 0; b < right.ranks[r].buffers.size(); ++b) {
        const std::size_t size = right.ranks[r].buffers[b].values.size();
        if (size == 0) continue;
        for (const std::size_t element : {std::size_t{0}, size - 1}) {
          Plan plan = right;
          Buffer& buffer = plan.ranks[r].buffers[b];
          ++buffer.values[element];
          expect_only(judged(problem, plan), {{"check", "metadata"},
                                              {"kind", "metadata_mismatch"},
                                              {"rank", std::to_string(r)},
                                              {"step", std::to_string(step)},
                                              {"buffer", buffer.name},
                                              {"element", std::to_string(element)}});
        }
      }
    }
  }
}

// "long" has 3 computed and 13 scheduled tokens, "short" 0 and 4. In step 1 both decode: kv_lens
// are 17 and 5. Forgetting the prefix gives 1 and 1.
TEST(JudgePlan, SaysWhoseKvLengthIsWrong) {
  const Problem problem = small_problem();
  Plan plan = zigzag_plan(problem, 1);
  buffer_of(plan, 1, "kv_lens").values = {1, 1};
  const std::vector<Finding> findings = judged(problem, plan);
  expect_only(findings, {{"request", "long"},
                         {"rank", "1"},
                         {"element", "0"},
                         {"detail", "kv_lens[0]: found 1, expected 17"}});
  EXPECT_EQ(findings.front().count, 2U);
}

TEST(JudgePlan, NamesTheTokenOfAWrongSlot) {
  const Problem problem = small_problem();
  Plan plan = zigzag_plan(problem);
  // Flattened token 14 is the second of "short", after 13 of "long".
  buffer_of(plan, 0, "slot_mapping").values[14] = 0;
  expect_only(judged(problem, plan),
              {{"kind", "metadata_mismatch"}, {"request", "short"}, {"token", "1"}});
}

TEST(JudgePlan, FindsMissingExtraAndMisshapenBuffers) {
  const Problem problem = small_problem();
  Plan missing = zigzag_plan(problem);
  buffer_of(missing, 0, "reorder_index").name = "reorder";
  EXPECT_EQ(kinds(judged(problem, missing)),
            (std::set<std::string>{"metadata_missing", "metadata_extra"}));

  Plan short_buffer = zigzag_plan(problem);
  --buffer_of(short_buffer, 1, "kv_gathered").shape[0];
  expect_only(judged(problem, short_buffer),
              {{"kind", "metadata_shape_mismatch"}, {"rank", "1"}, {"buffer", "kv_gathered"}});

  Plan few_values = zigzag_plan(problem);
  buffer_of(few_values, 1, "positions").values.pop_back();
  expect_only(judged(problem, few_values),
              {{"kind", "metadata_shape_mismatch"}, {"buffer", "positions"}});

  Plan pool = zigzag_plan(problem);
  --buffer_of(pool, 0, "v_pool").shape[0];
  expect_only(judged(problem, pool), {{"kind", "metadata_shape_mismatch"}, {"buffer", "v_pool"}});

  Plan doubled = zigzag_plan(problem);
  doubled.ranks[0].buffers.push_back(buffer_of(doubled, 0, "kv_full"));
  expect_only(judged(problem, doubled), {{"kind", "metadata_extra"}, {"buffer", "kv_full"}});
}

TEST(JudgePlan, FindsSwappedRowClaims) {
  const Problem problem = small_problem();
  Plan plan = zigzag_plan(problem);
  std::vector<std::int64_t>& rows = buffer_of(plan, 1, "out_local").output->row_tokens;
  std::swap(rows[2], rows[3]);
  expect_only(
      judged(problem, plan),
      {{"kind", "row_tokens_mismatch"}, {"rank", "1"}, {"buffer", "out_local"}, {"element", "2"}});
}

TEST(JudgePlan, FindsWrongHeads) {
  const Problem problem = small_problem();
  Plan own = zigzag_plan(problem);
  own.ranks[1].heads_kv.first = 1;
  expect_only(judged(problem, own), {{"kind", "head_range_mismatch"}, {"rank", "1"}});
  Plan input = zigzag_plan(problem);
  buffer_of(input, 0, "k").input->heads.first = 1;
  expect_only(judged(problem, input), {{"kind", "head_range_mismatch"}, {"buffer", "k"}});
}

TEST(JudgePlan, ComparesNothingElseWhenCpIsOnInsteadOfOff) {
  const Problem problem = small_problem();
  Plan plan = zigzag_plan(problem);
  plan.step = 1;
  expect_only(judged(problem, plan),
              {{"kind", "cp_on_mismatch"}, {"step", "1"}, {"detail", "found on, expected off"}});
}

TEST(JudgePlan, FindsAMissingRank) {
  const Problem problem = small_problem();
  Plan plan = zigzag_plan(problem);
  plan.ranks.pop_back();
  EXPECT_EQ(kinds(judged(problem, plan)).count("rank_count_mismatch"), 1U);
}

struct CollectiveCase {
  const char* name;
  const char* kind;
  std::function<void(RankPlan&)> spoil;
};

// cp 4, so that three agree against one; each rank in turn is the odd one out.
TEST(JudgePlan, NamesTheRankThatDisagreesInACollective) {
  Scenario scenario = parse_scenario(test::kSmallScenario, "small.yaml");
  scenario.topology.cp = 4;
  scenario.requests = {scenario.requests[0]};
  const Problem problem = make_problem(scenario);
  const std::vector<CollectiveCase> cases{
      {"count", "collective_count_mismatch", [](RankPlan& r) { ++collectives_of(r)[0]->count; }},
      {"dtype", "collective_dtype_mismatch",
       [](RankPlan& r) { collectives_of(r)[0]->dtype = DType::u8; }},
      {"meaning", "collective_meaning_mismatch",
       [](RankPlan& r) { collectives_of(r)[1]->meaning = "rows of another step"; }},
      {"order", "collective_order_mismatch",
       [](RankPlan& r) { std::swap(*collectives_of(r)[0], *collectives_of(r)[1]); }},
      {"group", "collective_group_invalid", [](RankPlan& r) { collectives_of(r)[1]->group = 9; }},
  };
  for (const CollectiveCase& test_case : cases) {
    for (std::size_t rank = 0; rank < 4; ++rank) {
      SCOPED_TRACE(test_case.name);
      Plan plan = zigzag_plan(problem);
      ASSERT_TRUE(plan.is_cp_on);
      test_case.spoil(plan.ranks[rank]);
      const std::vector<Finding> findings = judged(problem, plan);
      ASSERT_FALSE(findings.empty());
      EXPECT_EQ(findings.front().kind, test_case.kind) << test::dump(findings);
      for (const Finding& finding : findings) {
        EXPECT_EQ(finding.check, Check::collectives);
        EXPECT_EQ(finding.rank->value(), rank);
      }
    }
  }
}

// Interleave on four ranks, 5 tokens of a and 3 of b: rank 0 has tokens 0 and 4, both of a, so that
// its second length is a's although a batch of two has b second.
TEST(JudgePlan, NamesTheRequestOfAQuery) {
  Scenario scenario = parse_scenario(test::kSmallScenario, "small.yaml");
  scenario.topology.cp = 4;
  scenario.requests.resize(2);
  for (RequestSpec& request : scenario.requests) request = RequestSpec{};
  scenario.requests[0].id = "a";
  scenario.requests[0].prompt = 5;
  scenario.requests[1].id = "b";
  scenario.requests[1].prompt = 3;
  const Problem problem = make_problem(scenario);
  const auto request_of = [&](std::string_view name, std::size_t element) {
    Plan plan = make_plan(problem, 0, StrategyKind::interleave);
    for (Buffer& buffer : plan.ranks[0].buffers) {
      if (buffer.name == name) ++buffer.values.at(element);
    }
    const std::vector<Finding> findings = judged(problem, plan);
    return findings.size() == 1 ? findings.front().request : "not one finding";
  };
  EXPECT_EQ(request_of("kv_lens", 1), "a");
  EXPECT_EQ(request_of("cu_seqlens_q", 2), "a");
  EXPECT_EQ(request_of("token_to_selected", 1), "a");
}

/// Two ranks in two groups of both of them.
Plan plan_of_two_groups(const std::vector<std::vector<Collective>>& calls) {
  Plan plan;
  plan.groups = {{"one", {RankId{0}, RankId{1}}}, {"two", {RankId{0}, RankId{1}}}};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    plan.ranks.emplace_back().rank = RankId{rank};
    for (const Collective& call : calls[rank]) plan.ranks[rank].operations.push_back({"", call});
  }
  return plan;
}

std::vector<std::string> kinds_of_collectives(const Plan& plan) {
  CheckReport report;
  compare_collectives(plan, DataMode::random, report);
  std::vector<std::string> kinds;
  for (const Finding& finding : report.findings) kinds.push_back(finding.kind);
  return kinds;
}

// Rank 0 waits in group one for rank 1, which waits in group two for rank 0.
TEST(JudgePlan, FindsADeadlockOfTwoGroups) {
  Collective one;
  Collective two;
  two.group = 1;
  EXPECT_EQ(kinds_of_collectives(plan_of_two_groups({{one, two}, {two, one}})),
            (std::vector<std::string>{"collective_deadlock", "collective_deadlock"}));
  EXPECT_TRUE(kinds_of_collectives(plan_of_two_groups({{one, two}, {one, two}})).empty());
}

// Each rank sends to the other; rank 1 expects to hear from itself.
TEST(JudgePlan, FindsAReceiverToWhomNobodySends) {
  Collective first;
  first.kind = CollectiveKind::send_recv;
  first.send_peer = 1;
  first.recv_peer = 1;
  Collective second = first;
  second.send_peer = 0;
  second.recv_peer = 0;
  EXPECT_TRUE(kinds_of_collectives(plan_of_two_groups({{first}, {second}})).empty());
  second.recv_peer = 1;
  EXPECT_EQ(kinds_of_collectives(plan_of_two_groups({{first}, {second}})),
            (std::vector<std::string>{"collective_peer_mismatch"}));
}

TEST(JudgePlan, FindsARankThatLacksACollective) {
  const Problem problem = small_problem();
  Plan plan = zigzag_plan(problem);
  std::vector<Operation>& operations = plan.ranks[1].operations;
  const auto last = std::find_if(operations.rbegin(), operations.rend(), [](const Operation& op) {
    return std::holds_alternative<Collective>(op.body);
  });
  last->body = Fill{};
  expect_only(judged(problem, plan),
              {{"kind", "collective_missing"}, {"rank", "1"}, {"element", "1"}});
}

TEST(JudgePlan, MakesNoFindingsOfChecksThatAreNotAskedFor) {
  Problem problem = small_problem();
  Plan plan = zigzag_plan(problem);
  ++buffer_of(plan, 0, "kv_lens_prev").values[0];
  ++collectives_of(plan.ranks[0])[0]->count;
  problem.scenario.checks = {Check::collectives};
  EXPECT_EQ(kinds(judged(problem, plan)), std::set<std::string>{"collective_count_mismatch"});
  problem.scenario.checks = {Check::metadata};
  EXPECT_EQ(kinds(judged(problem, plan)), std::set<std::string>{"metadata_mismatch"});
  problem.scenario.checks = {Check::lse};
  EXPECT_TRUE(judged(problem, plan).empty());
}

}  // namespace
}  // namespace cpverify::judge
