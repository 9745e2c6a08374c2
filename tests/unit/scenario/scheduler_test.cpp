#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "unit/scenario/scenario_text.hpp"

// Schedules worked by hand from the rules of docs/scenario.md.
namespace cpverify {
namespace {

using test::ScenarioText;
using testing::ElementsAre;

Problem schedule(const std::string& requests, const std::string& cache,
                 const std::string& rest = "") {
  const ScenarioText text{
      .cache = "cache: " + cache, .requests = "requests: " + requests, .rest = rest};
  return make_problem(parse_scenario(text.text(), "x.yaml"));
}

/// "a 4+2p" is: request a, 4 tokens computed, 2 scheduled, prefill.
std::vector<std::string> rows_of(const Problem& problem, std::size_t step) {
  std::vector<std::string> rows;
  for (const StepRow& row : problem.steps.at(step).rows) {
    rows.push_back(fmt::format("{} {}+{}{}", problem.scenario.requests.at(row.request.value()).id,
                               row.computed, row.scheduled,
                               row.state == RowState::prefill ? 'p' : 'd'));
  }
  return rows;
}

TEST(Scheduler, ComputesAPromptInOneStepWithoutABudget) {
  const Problem problem = schedule("[{id: a, prompt: 6}]", "{block_size: 4}");
  ASSERT_EQ(problem.steps.size(), 1U);
  EXPECT_EQ(problem.steps[0].index, 0U);
  EXPECT_EQ(problem.steps[0].num_tokens(), 6);
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("a 0+6p"));
  const StepRow& row = problem.steps[0].rows[0];
  // Block 0 is the null block; tokens 0-3 go to block 1 (slots 4-7), 4 and 5 to block 2.
  EXPECT_THAT(row.block_table, ElementsAre(1, 2));
  EXPECT_THAT(row.slots, ElementsAre(4, 5, 6, 7, 8, 9));
  // 2 used, the null block, 4 free.
  EXPECT_EQ(problem.num_blocks, 7U);
}

TEST(Scheduler, CutsPromptsAtTheBudgetInTheMiddleOfAPage) {
  const Problem problem = schedule("[{id: a, prompt: 12}, {id: b, prompt: 4}]", "{block_size: 4}",
                                   "scheduler: {max_batched_tokens: 5}");
  ASSERT_EQ(problem.steps.size(), 4U);
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("a 0+5p"));
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("a 5+5p"));
  // 2 tokens of a are left; b gets the other 3, and its last one in the next step.
  EXPECT_THAT(rows_of(problem, 2), ElementsAre("a 10+2p", "b 0+3p"));
  EXPECT_THAT(rows_of(problem, 3), ElementsAre("b 3+1p"));
  // Token 5 continues block 2, which token 4 opened; the third block comes with token 8.
  EXPECT_THAT(problem.steps[0].rows[0].block_table, ElementsAre(1, 2));
  EXPECT_THAT(problem.steps[1].rows[0].block_table, ElementsAre(1, 2, 3));
  EXPECT_THAT(problem.steps[1].rows[0].slots, ElementsAre(9, 10, 11, 12, 13));
  EXPECT_THAT(problem.steps[2].rows[1].block_table, ElementsAre(4));
  EXPECT_THAT(problem.steps[3].rows[0].slots, ElementsAre(19));
}

TEST(Scheduler, SchedulesDecodesBeforePrefillsAndCallsRowsByState) {
  const Problem problem =
      schedule("[{id: ask, prompt: 7, arrival_step: 1}, {id: talk, prompt: 2, decode: 3}]",
               "{block_size: 4}", "scheduler: {max_batched_tokens: 4}");
  ASSERT_EQ(problem.steps.size(), 4U);
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("talk 0+2p"));
  // The decode takes 1 of 4 tokens, though ask stands first in the file, as in the rows.
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("ask 0+3p", "talk 2+1d"));
  EXPECT_THAT(rows_of(problem, 2), ElementsAre("ask 3+3p", "talk 3+1d"));
  // The last chunk of ask is one token long and still a prefill.
  EXPECT_THAT(rows_of(problem, 3), ElementsAre("ask 6+1p", "talk 4+1d"));
}

TEST(Scheduler, LetsDecodesWaitWhenTheBudgetIsSmallerThanTheirNumber) {
  const Problem problem = schedule(
      "[{id: a, cached_prefix: 1, prompt: 0, decode: 2}, {id: b, cached_prefix: 1, prompt: 0, "
      "decode: 1}]",
      "{block_size: 4}", "scheduler: {max_batched_tokens: 1}");
  ASSERT_EQ(problem.steps.size(), 3U);
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("a 1+1d"));
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("a 2+1d"));
  EXPECT_THAT(rows_of(problem, 2), ElementsAre("b 1+1d"));
}

TEST(Scheduler, ServesArrivalsInOrderAndSkipsIdleTime) {
  const Problem problem =
      schedule("[{id: late, prompt: 3, arrival_step: 9}, {id: soon, prompt: 3, arrival_step: 2}]",
               "{block_size: 4}");
  // Nothing happens in clock steps 0, 1 and 3-8: they are no steps of the problem.
  ASSERT_EQ(problem.steps.size(), 2U);
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("soon 0+3p"));
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("late 0+3p"));
  EXPECT_EQ(problem.steps[1].index, 1U);
}

TEST(Scheduler, PrefersTheEarlierArrivalForTheBudget) {
  const Problem problem =
      schedule("[{id: late, prompt: 5, arrival_step: 1}, {id: soon, prompt: 8}]", "{block_size: 4}",
               "scheduler: {max_batched_tokens: 6}");
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("soon 0+6p"));
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("late 0+4p", "soon 6+2p"));
  EXPECT_THAT(rows_of(problem, 2), ElementsAre("late 4+1p"));
}

TEST(Scheduler, PutsCachedTokensIntoBlocksOfTheirRequest) {
  const Problem problem = schedule("[{id: a, cached_prefix: 5, prompt: 2}]", "{block_size: 4}");
  ASSERT_EQ(problem.cached.size(), 5U);
  EXPECT_EQ(problem.cached[0].slot, 4);
  EXPECT_EQ(problem.cached[4].position, 4);
  EXPECT_EQ(problem.cached[4].slot, 8);
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("a 5+2p"));
  // The prompt goes on in the page that the cached prefix has begun.
  EXPECT_THAT(problem.steps[0].rows[0].block_table, ElementsAre(1, 2));
  EXPECT_THAT(problem.steps[0].rows[0].slots, ElementsAre(9, 10));
}

TEST(Scheduler, SharesWholeBlocksThatWereComputedBefore) {
  const Problem problem = schedule(
      "[{id: a, prompt: 10}, {id: b, prompt: 12, arrival_step: 1, shared_prefix: {request: a, "
      "tokens: 10}}]",
      "{block_size: 4}");
  // Two whole blocks of four; tokens 8 and 9 are computed again in a block of b's own.
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("b 8+4p"));
  EXPECT_THAT(problem.steps[0].rows[0].block_table, ElementsAre(1, 2, 3));
  EXPECT_THAT(problem.steps[1].rows[0].block_table, ElementsAre(1, 2, 4));
  EXPECT_THAT(problem.steps[1].rows[0].slots, ElementsAre(16, 17, 18, 19));
}

TEST(Scheduler, ComputesTheLastPromptTokenEvenWhenItIsKnown) {
  const Problem problem = schedule(
      "[{id: a, prompt: 8}, {id: b, prompt: 8, arrival_step: 1, shared_prefix: {request: a, "
      "tokens: 8}}]",
      "{block_size: 4}");
  // 7 tokens may be taken from the cache, which is one whole block.
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("b 4+4p"));
}

TEST(Scheduler, DoesNotWaitForAPrefixThatIsNotThereYet) {
  // In one step with its source, and one step too early because the source is cut.
  const Problem same_step =
      schedule("[{id: a, prompt: 8}, {id: b, prompt: 9, shared_prefix: {request: a, tokens: 8}}]",
               "{block_size: 4}");
  EXPECT_THAT(rows_of(same_step, 0), ElementsAre("a 0+8p", "b 0+9p"));
  EXPECT_THAT(same_step.steps[0].rows[1].block_table, ElementsAre(3, 4, 5));
  const Problem unfinished = schedule(
      "[{id: a, prompt: 8, arrival_step: 1}, {id: b, prompt: 9, shared_prefix: {request: a, "
      "tokens: 8}}]",
      "{block_size: 4}");
  EXPECT_THAT(rows_of(unfinished, 0), ElementsAre("b 0+9p"));
}

TEST(Scheduler, SharesACachedPrefixInTheFirstStep) {
  const Problem problem = schedule(
      "[{id: a, cached_prefix: 8, prompt: 4}, {id: b, prompt: 9, shared_prefix: {request: a, "
      "tokens: 8}}]",
      "{block_size: 4}");
  EXPECT_THAT(rows_of(problem, 0), ElementsAre("a 8+4p", "b 8+1p"));
  EXPECT_THAT(problem.steps[0].rows[0].block_table, ElementsAre(1, 2, 3));
  EXPECT_THAT(problem.steps[0].rows[1].block_table, ElementsAre(1, 2, 4));
}

TEST(Scheduler, SharesNothingBelowOneBlock) {
  const Problem problem = schedule(
      "[{id: a, prompt: 8}, {id: b, prompt: 9, arrival_step: 1, shared_prefix: {request: a, "
      "tokens: 3}}]",
      "{block_size: 4}");
  EXPECT_THAT(rows_of(problem, 1), ElementsAre("b 0+9p"));
}

TEST(Scheduler, SharesThroughAChainOfRequests) {
  const Problem problem = schedule(
      "[{id: a, prompt: 5}, {id: b, prompt: 9, arrival_step: 1, shared_prefix: {request: a, "
      "tokens: 4}}, {id: c, prompt: 10, arrival_step: 2, shared_prefix: {request: b, tokens: 9}}]",
      "{block_size: 4}");
  EXPECT_THAT(rows_of(problem, 2), ElementsAre("c 8+2p"));
  // a: 1 2; b: 1 from a, then 3 4; c: 1 3 from b, then 5.
  EXPECT_THAT(problem.steps[2].rows[0].block_table, ElementsAre(1, 3, 5));
}

// a has blocks 1 and 2, b 3; a ends in step 0. In step 1 b needs none and c takes 2, then 1; b
// ends. In step 2 c takes what b had, and in step 3 a new one.
TEST(Scheduler, GivesOutBlocksOfFinishedRequestsAgain) {
  const std::string requests =
      "[{id: a, prompt: 7}, {id: b, prompt: 2, decode: 1}, {id: c, prompt: 8, decode: 5, "
      "arrival_step: 1}]";
  const Problem reused = schedule(requests, "{block_size: 4, reuse: finished}");
  EXPECT_THAT(reused.steps[0].rows[0].block_table, ElementsAre(1, 2));
  EXPECT_THAT(reused.steps[0].rows[1].block_table, ElementsAre(3));
  EXPECT_THAT(reused.steps[1].rows[1].block_table, ElementsAre(2, 1));
  EXPECT_THAT(reused.steps[2].rows[0].block_table, ElementsAre(2, 1, 3));
  EXPECT_THAT(reused.steps[6].rows[0].block_table, ElementsAre(2, 1, 3, 4));
  // Four of the requests, the null block and four free ones.
  EXPECT_EQ(reused.num_blocks, 9U);
  const Problem kept = schedule(requests, "{block_size: 4}");
  EXPECT_THAT(kept.steps[1].rows[1].block_table, ElementsAre(4, 5));
}

TEST(Scheduler, KeepsBlocksThatALaterRequestMayShare) {
  const Problem problem = schedule(
      "[{id: a, prompt: 8}, {id: b, prompt: 9, arrival_step: 2, shared_prefix: {request: a, "
      "tokens: 8}}, {id: c, prompt: 4, arrival_step: 1}]",
      "{block_size: 4, reuse: finished}");
  EXPECT_THAT(problem.steps[1].rows[0].block_table, ElementsAre(3));
  EXPECT_THAT(problem.steps[2].rows[0].block_table, ElementsAre(1, 2, 3));
}

TEST(Scheduler, HandsOutSingleSlots) {
  const Problem problem =
      schedule("[{id: a, cached_prefix: 2, prompt: 3}]", "{block_size: 4, unit: slot}");
  EXPECT_EQ(problem.block_tokens(), 1);
  EXPECT_THAT(problem.steps[0].rows[0].block_table, ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(problem.steps[0].rows[0].slots, ElementsAre(3, 4, 5));
  EXPECT_EQ(problem.cached.at(1).slot, 2);
  EXPECT_EQ(problem.num_blocks, 10U);
}

TEST(Scheduler, ShufflesBlockIdsBySeedAndKeepsTheNullBlock) {
  const std::string requests = "[{id: a, prompt: 20}]";
  const Problem plain = schedule(requests, "{block_size: 1}");
  const Problem one = schedule(requests, "{block_size: 1, shuffle_seed: 1}");
  const Problem again = schedule(requests, "{block_size: 1, shuffle_seed: 1}");
  const Problem two = schedule(requests, "{block_size: 1, shuffle_seed: 2}");
  EXPECT_EQ(one.steps[0].rows[0].block_table, again.steps[0].rows[0].block_table);
  EXPECT_NE(one.steps[0].rows[0].block_table, two.steps[0].rows[0].block_table);
  EXPECT_NE(one.steps[0].rows[0].block_table, plain.steps[0].rows[0].block_table);
  EXPECT_THAT(one.steps[0].rows[0].block_table, testing::Each(testing::Gt(0)));
  EXPECT_EQ(one.num_blocks, 25U);
}

TEST(Scheduler, SaysHowManyBlocksAPoolNeeds) {
  const std::string requests = "[{id: a, prompt: 9}, {id: b, cached_prefix: 1, prompt: 3}]";
  // a needs 3 blocks of 4, b one; with the null block 5.
  EXPECT_EQ(schedule(requests, "{block_size: 4, num_blocks: 5}").num_blocks, 5U);
  try {
    static_cast<void>(schedule(requests, "{block_size: 4, num_blocks: 4}"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "x.yaml:3:36: 'num_blocks' is 4, but the requests need 5 blocks of 4 tokens, the "
                 "null block included");
  }
}

TEST(Scheduler, RefusesSchedulesThatDoNotFitIntoMemory) {
  // 70,000 steps of one token; and tables of up to 40,000 blocks over 40,000 steps.
  EXPECT_THROW(static_cast<void>(schedule("[{id: a, prompt: 70000}]", "{block_size: 1024}",
                                          "scheduler: {max_batched_tokens: 1}")),
               InputError);
  EXPECT_THROW(
      static_cast<void>(schedule("[{id: a, prompt: 1, decode: 40000}]", "{block_size: 1}")),
      InputError);
}

}  // namespace
}  // namespace cpverify
