#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "unit/scenario/scenario_text.hpp"

namespace cpverify {
namespace {

using test::ScenarioText;
using testing::ElementsAre;

Scenario read(const ScenarioText& text) {
  return parse_scenario(text.text(), "dir/tiny.yaml");
}

TEST(Reader, FillsInTheDefaults) {
  const Scenario scenario = read({});
  EXPECT_EQ(scenario.path, "dir/tiny.yaml");
  EXPECT_EQ(scenario.name, "tiny");
  EXPECT_EQ(scenario.description, "");
  EXPECT_EQ(scenario.model.attention, AttentionKind::gqa);
  EXPECT_EQ(scenario.model.softmax_scale, 0.125F);  // 1 / sqrt(64)
  EXPECT_EQ(scenario.model.soft_cap, 0.0F);
  EXPECT_FALSE(scenario.model.has_sinks);
  EXPECT_EQ(scenario.model.sliding_window, 0);
  EXPECT_EQ(scenario.topology.tp, 1U);
  EXPECT_THAT(scenario.strategies, ElementsAre(StrategyKind::single, StrategyKind::zigzag));
  EXPECT_EQ(scenario.attention_kernel, AttentionKernel::automatic);
  EXPECT_EQ(scenario.cache.num_blocks, 0U);
  EXPECT_FALSE(scenario.cache.shuffle_seed);
  EXPECT_EQ(scenario.scheduler.max_batched_tokens, 0);
  EXPECT_EQ(scenario.padding.token_multiple, 1);
  EXPECT_THAT(scenario.data.modes,
              ElementsAre(DataMode::random, DataMode::count, DataMode::poison));
  EXPECT_EQ(scenario.data.seed, 0U);
  EXPECT_EQ(scenario.schedule.policy, SchedulePolicy::round_robin);
  EXPECT_EQ(scenario.checks.size(), 12U);
  EXPECT_EQ(scenario.checks.front(), Check::metadata);
  EXPECT_EQ(scenario.checks.back(), Check::determinism);
  EXPECT_FALSE(scenario.inject);
  EXPECT_TRUE(scenario.expect.empty());
  ASSERT_EQ(scenario.requests.size(), 1U);
  EXPECT_EQ(scenario.requests[0].cached_prefix, 0);
  EXPECT_EQ(scenario.requests[0].decode, 0);
  EXPECT_EQ(scenario.requests[0].arrival_step, 0);
  EXPECT_FALSE(scenario.requests[0].shared_prefix);
}

TEST(Reader, TakesEveryKey) {
  const Scenario scenario = parse_scenario(R"(
name: all of it
description: every key
model: {attention: mqa, num_heads_q: 4, num_heads_kv: 1, head_dim: 32, dtype: f16,
        softmax_scale: 0.2}
topology: {cp: 3, tp: 2}
strategies: [zigzag]
attention_kernel: fma
cache: {block_size: 8, num_blocks: 99, shuffle_seed: 18446744073709551615}
requests:
  - {id: first, cached_prefix: 5, prompt: 9, decode: 2, arrival_step: 1}
  - {id: second, shared_prefix: {request: first, tokens: 12}, prompt: 20}
scheduler: {max_batched_tokens: 16}
padding: {token_multiple: 4}
data: {modes: [poison, random], seed: 3}
schedule: {policy: pct, seed: 9, depth: 5, threads: independent}
checks: [output, metadata]
inject: {defect: some_defect, rank: 1, delta: -1}
expect:
  findings:
    - {check: output, kind: over_bound, strategy: zigzag, mode: random, step: 1, rank: 5,
       request: second, token: 3, key: 2, head: 0, page: 7, slot: 60, buffer: out, element: 8,
       kernel: attention_fma_f16_d32, source: "kernels/attention_fma.cuh:120", detail: bound}
)",
                                           "x.yaml");
  EXPECT_EQ(scenario.name, "all of it");
  EXPECT_EQ(scenario.description, "every key");
  EXPECT_EQ(scenario.model.attention, AttentionKind::mqa);
  EXPECT_EQ(scenario.model.dtype, DType::f16);
  EXPECT_EQ(scenario.model.softmax_scale, 0.2F);
  EXPECT_EQ(scenario.topology.cp, 3U);
  EXPECT_EQ(scenario.topology.tp, 2U);
  EXPECT_THAT(scenario.strategies, ElementsAre(StrategyKind::zigzag));
  EXPECT_EQ(scenario.attention_kernel, AttentionKernel::fma);
  EXPECT_EQ(scenario.cache.block_size, 8U);
  EXPECT_EQ(scenario.cache.num_blocks, 99U);
  EXPECT_EQ(scenario.cache.shuffle_seed, 18446744073709551615ULL);
  EXPECT_EQ(scenario.cache.where.line, 9);
  ASSERT_EQ(scenario.requests.size(), 2U);
  EXPECT_EQ(scenario.requests[0].cached_prefix, 5);
  EXPECT_EQ(scenario.requests[0].decode, 2);
  EXPECT_EQ(scenario.requests[0].arrival_step, 1);
  EXPECT_EQ(scenario.requests[0].where.line, 11);
  EXPECT_EQ(scenario.requests[0].where.column, 5);
  ASSERT_TRUE(scenario.requests[1].shared_prefix);
  EXPECT_EQ(scenario.requests[1].shared_prefix->request, RequestId{0});
  EXPECT_EQ(scenario.requests[1].shared_prefix->tokens, 12);
  EXPECT_EQ(scenario.scheduler.max_batched_tokens, 16);
  EXPECT_EQ(scenario.padding.token_multiple, 4);
  EXPECT_THAT(scenario.data.modes, ElementsAre(DataMode::poison, DataMode::random));
  EXPECT_EQ(scenario.data.seed, 3U);
  EXPECT_EQ(scenario.schedule.policy, SchedulePolicy::pct);
  EXPECT_EQ(scenario.schedule.seed, 9U);
  EXPECT_EQ(scenario.schedule.depth, 5U);
  EXPECT_EQ(scenario.schedule.threads, ThreadScheduling::independent);
  EXPECT_THAT(scenario.checks, ElementsAre(Check::metadata, Check::output));  // Sorted.
  ASSERT_TRUE(scenario.inject);
  EXPECT_EQ(scenario.inject->defect, "some_defect");
  EXPECT_EQ(scenario.inject->parameters.at("delta"), -1);
  EXPECT_EQ(scenario.inject->where.line, 18);
  ASSERT_EQ(scenario.expect.size(), 1U);
  EXPECT_EQ(scenario.expect[0].check, Check::output);
  EXPECT_EQ(scenario.expect[0].fields.size(), 16U);
  EXPECT_EQ(scenario.expect[0].fields.at("rank"), "5");
  EXPECT_EQ(scenario.expect[0].fields.at("source"), "kernels/attention_fma.cuh:120");
  EXPECT_EQ(scenario.expect[0].fields.count("check"), 0U);
}

TEST(Reader, DerivesTheAttentionKindFromTheHeads) {
  const auto kind = [](int q, int kv) {
    return read({.model = fmt::format("model: {{num_heads_q: {}, num_heads_kv: {}, head_dim: 64, "
                                      "dtype: bf16}}",
                                      q, kv)})
        .model.attention;
  };
  EXPECT_EQ(kind(4, 4), AttentionKind::mha);
  EXPECT_EQ(kind(4, 2), AttentionKind::gqa);
  EXPECT_EQ(kind(4, 1), AttentionKind::mqa);
}

TEST(Reader, AcceptsOneHeadAsBothMhaAndMqa) {
  for (const std::string kind : {"mha", "mqa"}) {
    EXPECT_NO_THROW(static_cast<void>(
        read({.model = "model: {attention: " + kind +
                       ", num_heads_q: 1, num_heads_kv: 1, head_dim: 64, dtype: bf16}"})))
        << kind;
  }
}

TEST(Reader, AcceptsTensorParallelRanksThatShareAKvHead) {
  // 8 query heads on 2 KV heads and tp 4: each KV head lives on two ranks.
  EXPECT_NO_THROW(static_cast<void>(
      read({.model = "model: {num_heads_q: 8, num_heads_kv: 2, head_dim: 64, dtype: bf16}",
            .topology = "topology: {cp: 2, tp: 4}"})));
}

TEST(Reader, DecodesFromACachedPrefixWithoutAPrompt) {
  const Scenario scenario =
      read({.requests = "requests: [{id: a, cached_prefix: 4, prompt: 0, decode: 2}]"});
  EXPECT_EQ(scenario.requests[0].total_tokens(), 6);
}

TEST(Reader, DoesNotMindTheOrderOfSections) {
  EXPECT_NO_THROW(static_cast<void>(parse_scenario(
      "expect: {findings: [{request: a, rank: 1}]}\n" + ScenarioText{}.text(), "x.yaml")));
}

TEST(Reader, ReadsCarriageReturnsAndAByteOrderMark) {
  std::string text = "\xef\xbb\xbf";
  for (const char c : ScenarioText{}.text())
    text += c == '\n' ? std::string{"\r\n"} : std::string{c};
  EXPECT_EQ(parse_scenario(text, "x.yaml").requests[0].id, "a");
}

TEST(Reader, ReadsHowSumsAreTaken) {
  const Scenario scenario = parse_scenario(
      "model: {num_heads_q: 2, num_heads_kv: 1, head_dim: 32, dtype: f32}\n"
      "topology: {cp: 2}\n"
      "cache: {block_size: 16}\n"
      "requests: [{id: a, prompt: 13}]\n"
      "mma_accumulation: truncating\n"
      "reduction: {order: ring, ring: [1, 0], channels: 2, chunk: 512}\n",
      "sums.yaml");
  EXPECT_EQ(scenario.mma_accumulation, MmaAccumulation::truncating);
  EXPECT_EQ(text(scenario.reduction), "ring(1 0; channels 2; chunk 512)");
}

}  // namespace
}  // namespace cpverify
