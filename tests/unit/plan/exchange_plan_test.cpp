// Plans of the strategies that exchange blocks or heads: what the integer oracle does not look at.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "support/hand_made_problem.hpp"

namespace cpverify {
namespace {

using testing::ElementsAre;

Problem problem_of(std::uint32_t cp, std::int64_t prefix, std::int64_t tokens) {
  Scenario scenario;
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = 2;
  scenario.model.head_dim = 32;
  scenario.model.dtype = DType::bf16;
  scenario.topology.cp = cp;
  scenario.cache.block_size = 16;
  return test::hand_made_problem(scenario, {{{prefix, tokens}}});
}

std::vector<std::string> labels_of(const RankPlan& rank) {
  std::vector<std::string> labels;
  for (const Operation& operation : rank.operations) labels.push_back(operation.label);
  return labels;
}

std::vector<const Collective*> messages_of(const RankPlan& rank) {
  std::vector<const Collective*> messages;
  for (const Operation& operation : rank.operations) {
    const auto* collective = std::get_if<Collective>(&operation.body);
    if (collective != nullptr && collective->kind == CollectiveKind::send_recv) {
      messages.push_back(collective);
    }
  }
  return messages;
}

// C-1 messages to the right, each received where the next is sent from. 2 * M * K * D elements:
// 7 tokens on three ranks are 3, 2, 2, so 2 * 3 * 2 * 32.
TEST(RingPlan, PassesBlocksOnInTwoBuffers) {
  const Problem problem = problem_of(3, 0, 7);
  const Plan plan = make_plan(problem, 0, StrategyKind::ring_contiguous);
  for (const RankPlan& rank : plan.ranks) {
    const std::vector<const Collective*> messages = messages_of(rank);
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(messages[0]->recv.buffer, messages[1]->send.buffer);
    EXPECT_EQ(messages[0]->send.buffer, messages[1]->recv.buffer);
    for (const Collective* message : messages) {
      EXPECT_EQ(message->count, 384);
      EXPECT_EQ(message->send_peer, (rank.cp_rank + 1) % 3);
      EXPECT_EQ(message->recv_peer, (rank.cp_rank + 2) % 3);
    }
  }
}

// The first rank sees its own block alone, whose partial becomes its result; it passes all on.
TEST(RingPlan, SkipsBlocksOfWhichNothingIsSeen) {
  const Problem problem = problem_of(2, 0, 6);
  const Plan plan = make_plan(problem, 0, StrategyKind::ring_contiguous);
  EXPECT_THAT(
      labels_of(plan.ranks[0]),
      ElementsAre("gather the rank's query rows", "gather the rank's k rows",
                  "gather the rank's v rows", "zero out_running", "set lse_running to -inf",
                  "zero out_local", "set lse_local to -inf", "pass the block of hop 0 on",
                  "attention of the block of hop 0", "merge the block of hop 0",
                  "write the block of hop 0 to the pools", "write the block of hop 1 to the pools",
                  "all-gather attention rows", "reorder attention rows"));
}

// C partials, one more of a prefix, merged one after the other.
TEST(RingPlan, SaysHowManyPartialsAreMerged) {
  const Problem fresh = problem_of(4, 0, 9);
  const Problem prefix = problem_of(4, 5, 9);
  const Plan plan = make_plan(fresh, 0, StrategyKind::ring);
  EXPECT_EQ(plan.numerics.merge.partials, 4);
  EXPECT_EQ(plan.numerics.merge.depth, 3);
  EXPECT_EQ(plan.numerics.merge.partial_dtype, DType::bf16);
  EXPECT_FALSE(plan.is_bitwise);
  EXPECT_EQ(make_plan(prefix, 0, StrategyKind::ring).numerics.merge.partials, 5);
}

TEST(RingPlan, IsSingleOnOneRank) {
  const Problem problem = problem_of(1, 0, 9);
  const Plan plan = make_plan(problem, 0, StrategyKind::ring);
  EXPECT_FALSE(plan.is_cp_on);
  EXPECT_TRUE(plan.is_bitwise);
  EXPECT_EQ(plan.numerics.merge.partials, 1);
  EXPECT_THAT(labels_of(plan.ranks[0]),
              ElementsAre("zero out", "set lse to -inf", "write k and v to the pools",
                          "attention of all rows"));
}

// Four ranks share two KV heads; pools hold one each, inputs both.
TEST(UlyssesPlan, KeepsTheExchangedKvHeadsInThePools) {
  const Problem problem = problem_of(4, 0, 9);
  const Plan plan = make_plan(problem, 0, StrategyKind::ulysses);
  EXPECT_TRUE(plan.is_bitwise);
  std::vector<std::uint32_t> firsts;
  for (const RankPlan& rank : plan.ranks) {
    ASSERT_TRUE(rank.pool_heads.has_value());
    firsts.push_back(rank.pool_heads->first);
    EXPECT_EQ(rank.heads_kv.count, 2U);
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.role == BufferRole::kv_pool) {
        EXPECT_EQ(buffer.shape.at(2), 1);
      } else if (buffer.name == "out_heads") {
        EXPECT_EQ(buffer.output->heads.first, rank.cp_rank);
      }
    }
  }
  EXPECT_THAT(firsts, ElementsAre(0, 0, 1, 1));
}

}  // namespace
}  // namespace cpverify
