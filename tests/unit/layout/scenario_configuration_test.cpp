#include "layout/scenario_configuration.hpp"

#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/system.hpp"
#include "layout/configuration.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

Scenario scenario_on(System system) {
  Scenario scenario;
  scenario.system = SystemSpec{system, AttentionBackend::fa3, {Feature::lora}};
  scenario.model.num_heads_q = 8;
  scenario.model.num_heads_kv = 2;
  scenario.model.head_dim = 128;
  scenario.topology.cp = 2;
  scenario.topology.tp = 4;
  scenario.topology.dcp = 2;
  scenario.topology.kv_interleave = 8;
  scenario.cache.block_size = 16;
  scenario.scheduler.max_batched_tokens = 44;
  scenario.requests.resize(3);
  scenario.dcp.combine = DcpCombine::a2a;
  return scenario;
}

TEST(ScenarioConfiguration, OfDcpHasNoPrefillRanks) {
  const Configuration c = scenario_configuration(scenario_on(System::vllm), StrategyKind::dcp);
  EXPECT_EQ(c.strategy, SplitKind::dcp);
  EXPECT_EQ(c.cp, 1);
  EXPECT_EQ(c.tp, 4);
  EXPECT_EQ(c.dcp, 2);
  EXPECT_EQ(c.interleave_size, 8);
  EXPECT_EQ(c.combine, Combine::a2a);
  EXPECT_EQ(c.backend, AttentionBackend::fa3);
  EXPECT_TRUE(c.has(Feature::lora));
  EXPECT_FALSE(c.has(Feature::mla));
  EXPECT_EQ(c.heads_q, 8);
  EXPECT_EQ(c.heads_kv, 2);
  EXPECT_EQ(c.head_dim, 128);
  EXPECT_EQ(c.block_size, 16);
  EXPECT_EQ(c.chunk_tokens, 44);
  EXPECT_EQ(c.requests, 3);
}

TEST(ScenarioConfiguration, OfZigzagHasNoShards) {
  const Configuration c = scenario_configuration(scenario_on(System::vllm), StrategyKind::zigzag);
  EXPECT_EQ(c.cp, 2);
  EXPECT_EQ(c.dcp, 1);
  EXPECT_EQ(c.interleave_size, 1);
  EXPECT_EQ(c.combine, Combine::automatic);
}

// cp 2 and four TP ranks each: SGLang is started with --tp 8, and attention TP is 8 / 2 = 4 again.
TEST(ScenarioConfiguration, OfSglangHasThePrefillRanksInsideTp) {
  const Configuration c = scenario_configuration(scenario_on(System::sglang), StrategyKind::zigzag);
  EXPECT_EQ(c.tp, 8);
  EXPECT_EQ(c.attention_tp(), 4);
  EXPECT_EQ(c.world_size(), 8);
}

TEST(ScenarioConfiguration, BothRingsAreOneSplit) {
  EXPECT_EQ(split_kind(StrategyKind::ring), SplitKind::ring);
  EXPECT_EQ(split_kind(StrategyKind::ring_contiguous), SplitKind::ring);
}

}  // namespace
}  // namespace cpverify::layout
