#include "layout/config_rules.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <ios>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/configuration.hpp"
#include "layout/splits.hpp"
#include "layout/strategy_table.hpp"
#include "layout/world_groups.hpp"

namespace cpverify::layout {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::vector<std::string> ids(const Configuration& configuration) {
  std::vector<std::string> all;
  for (const BrokenRule& broken : broken_rules(configuration)) {
    all.emplace_back(broken.rule->id);
  }
  return all;
}

Configuration of(System system) {
  Configuration c;
  c.system = system;
  return c;
}

void turn_on(Configuration& c, std::initializer_list<Feature> features) {
  for (const Feature feature : features) c.features.set(static_cast<std::size_t>(feature));
}

std::string committed(const std::string& page) {
  std::ifstream file{std::string{CPVERIFY_SOURCE_DIR} + "/docs/" + page, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

TEST(ConfigRules, PageIsTheOneThatIsCommitted) {
  EXPECT_TRUE(committed("configuration_rules.md") == rules_page())
      << "out of date: cpverify plan --rules > docs/configuration_rules.md";
}

TEST(StrategyTable, PageIsTheOneThatIsCommitted) {
  EXPECT_TRUE(committed("strategies.md") == strategies_page())
      << "out of date: cpverify plan --table > docs/strategies.md";
}

TEST(StrategyTable, IsInTheOrderOfTheKinds) {
  for (const SplitKind kind : all_split_kinds()) EXPECT_EQ(strategy_facts(kind).kind, kind);
}

TEST(ConfigRules, HaveIdsOfTheirOwn) {
  std::set<std::string_view> seen;
  for (const auto rules : {vllm_rules(), sglang_rules(), own_rules()}) {
    for (const ConfigRule& rule : rules) {
      EXPECT_TRUE(seen.insert(rule.id).second) << rule.id;
      EXPECT_NE(rule.applies, 0) << rule.id;
      EXPECT_FALSE(rule.meaning.empty() || rule.instead.empty()) << rule.id;
    }
  }
}

// q = 12, kv = 2, TP = 6, D = 2 passes all checks of vLLM: 6 > 2, 2 <= 6 // 2 = 3, 6 % 2 = 0. Yet
// of ranks 0-5 the first three hold KV head 0, so that the group {2, 3} mixes both.
TEST(ConfigRules, FindTheGroupThatMixesKvHeads) {
  Configuration c = of(System::vllm);
  c.strategy = SplitKind::dcp;
  c.tp = 6;
  c.dcp = 2;
  c.heads_q = 12;
  c.heads_kv = 2;
  const std::vector<BrokenRule> broken = broken_rules(c);
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken[0].rule->id, "vllm-5b");
  EXPECT_EQ(broken[0].rule->origin, System::vllm_ascend);
  EXPECT_THAT(broken[0].violation, HasSubstr("the group of ranks 2 to 3 holds KV heads 0 and 1"));
  EXPECT_TRUE(is_refused(broken));
}

TEST(ConfigRules, ReportAllThatAreBrokenInTheOrderOfTheTable) {
  Configuration c = of(System::vllm);
  c.strategy = SplitKind::dcp;
  c.tp = 8;
  c.dcp = 3;
  c.heads_q = 32;
  c.heads_kv = 8;
  c.interleave_size = 3;
  EXPECT_THAT(ids(c), ElementsAre("vllm-1", "vllm-5-tp", "vllm-5-size", "vllm-5-ratio", "vllm-6",
                                  "cpverify-power-of-two"));
}

TEST(ConfigRules, LetAPlainConfigurationPass) {
  for (const System system : all_systems()) EXPECT_THAT(ids(of(system)), IsEmpty());
}

TEST(ConfigRules, OfOneSystemDoNotTouchAnother) {
  Configuration c = of(System::sglang);
  c.strategy = SplitKind::dcp_virtual;
  c.tp = 6;
  c.dcp = 2;
  c.heads_q = 12;
  c.heads_kv = 2;
  EXPECT_THAT(ids(c), IsEmpty());
}

TEST(ConfigRules, ThatOnlyChangeAValueDoNotRefuse) {
  Configuration c = of(System::vllm);
  c.deprecated_interleave = 16;
  const std::vector<BrokenRule> broken = broken_rules(c);
  ASSERT_THAT(ids(c), ElementsAre("vllm-7"));
  EXPECT_FALSE(is_refused(broken));
}

/// A configuration that breaks a rule, and the change that mends it.
struct Example {
  std::string id;
  System system;
  std::function<void(Configuration&)> broken;
  std::function<void(Configuration&)> right;
};

std::vector<Example> vllm_examples() {
  const auto features = [](std::initializer_list<Feature> on) {
    return [list = std::vector<Feature>{on}](Configuration& c) {
      for (const Feature feature : list) c.features.set(static_cast<std::size_t>(feature));
    };
  };
  const auto cp2 = [](Configuration& c) { c.cp = 1; };
  const auto dcp1 = [](Configuration& c) { c.dcp = 1; };
  return {
      {"vllm-2", System::vllm, [](Configuration& c) { c.tp = 4, c.cp = 2, c.dcp = 4; },
       [](Configuration& c) { c.dcp = 8; }},
      {"vllm-3", System::vllm, [](Configuration& c) { c.cp = 2, c.dp = 2; }, cp2},
      {"vllm-4", System::vllm, [](Configuration& c) { c.combine = Combine::a2a; },
       [](Configuration& c) { c.dcp = 2; }},
      {"vllm-9-model", System::vllm, [](Configuration& c) { c.cp = 2; }, features({Feature::mla})},
      {"vllm-12", System::vllm, [](Configuration& c) { c.cp = 2, c.pp = 2; }, cp2},
      {"vllm-17", System::vllm, [](Configuration& c) { c.dcp = 3, c.workspace_tokens = 1024; },
       [](Configuration& c) { c.workspace_tokens = 1026; }},
      {"vllm-19", System::vllm_ascend, [](Configuration& c) { c.cp = 2, c.dcp = 2; }, dcp1},
      {"vllm-20", System::vllm_ascend,
       [](Configuration& c) { c.dcp = 2, turn_on(c, {Feature::kv_transfer}); },
       [](Configuration& c) { c.interleave_size = c.block_size; }},
  };
}

std::vector<Example> other_examples() {
  const auto dcp1 = [](Configuration& c) { c.dcp = 1; };
  return {
      {"sglang-1", System::sglang, [](Configuration& c) { c.tp = 2, c.cp = 2; },
       [](Configuration& c) { c.strategy = SplitKind::zigzag; }},
      {"sglang-4", System::sglang, [](Configuration& c) { c.tp = 8, c.cp = 4, c.dp = 4; },
       [](Configuration& c) { c.dp = 2; }},
      {"sglang-7", System::sglang, [](Configuration& c) { c.tp = 4, c.cp = 2, c.moe_dp = 4; },
       [](Configuration& c) { c.moe_dp = 2; }},
      {"sglang-9-size", System::sglang,
       [](Configuration& c) { c.tp = 8, c.cp = 2, turn_on(c, {Feature::sparse_attention}); },
       [](Configuration& c) { c.cp = 8; }},
      {"sglang-23", System::sglang, [](Configuration& c) { c.combine = Combine::fi_a2a; },
       [](Configuration& c) { c.dcp = 2; }},
      {"sglang-26-tp", System::sglang, [](Configuration& c) { c.tp = 8, c.dcp = 3; },
       [](Configuration& c) { c.dcp = 4; }},
      {"sglang-27", System::sglang, [](Configuration& c) { c.tp = 8, c.dp = 4, c.dcp = 4; },
       [](Configuration& c) { c.dp = 2; }},
      {"sglang-33", System::sglang,
       [](Configuration& c) {
         c.dcp = 2, c.backend = AttentionBackend::triton, turn_on(c, {Feature::sinks});
       },
       dcp1},
      {"cpverify-flag-order", System::vllm,
       [](Configuration& c) {
         c.dcp = 2, c.interleave_size = 16, c.backend = AttentionBackend::flashinfer;
       },
       [](Configuration& c) { c.deprecated_interleave = 16; }},
      {"cpverify-dcp-sinks", System::vllm,
       [](Configuration& c) { c.dcp = 2, turn_on(c, {Feature::sinks}); }, dcp1},
      {"cpverify-mixed", System::sglang,
       [](Configuration& c) {
         c.cp = 2, c.strategy = SplitKind::interleave, turn_on(c, {Feature::mixed_batches});
       },
       [](Configuration& c) { c.strategy = SplitKind::zigzag; }},
      {"cpverify-chunk", System::sglang,
       [](Configuration& c) {
         c.cp = 4, c.strategy = SplitKind::zigzag, c.chunk_tokens = 31, c.requests = 4;
       },
       [](Configuration& c) { c.chunk_tokens = 32; }},
      {"cpverify-sizes", System::cpverify,
       [](Configuration& c) { c.tp = 2, c.cp = 2, c.dcp = 2, c.strategy = SplitKind::zigzag; },
       [](Configuration& c) { c.strategy = SplitKind::pcp_head_tail; }},
      {"cpverify-tp-kv", System::cpverify,
       [](Configuration& c) { c.tp = 4, c.heads_q = 12, c.heads_kv = 6; },
       [](Configuration& c) { c.heads_kv = 4; }},
      {"cpverify-ulysses", System::cpverify,
       [](Configuration& c) {
         c.cp = 8, c.strategy = SplitKind::ulysses, c.heads_q = 12, c.heads_kv = 4;
       },
       [](Configuration& c) { c.cp = 4; }},
      {"cpverify-kernel-block", System::vllm,
       [](Configuration& c) {
         c.dcp = 2, c.block_size = 32, c.interleave_size = 32, c.kernel_block_size = 16;
       },
       [](Configuration& c) { c.interleave_size = 16; }},
      {"cpverify-strategy", System::vllm, [](Configuration& c) { c.strategy = SplitKind::zigzag; },
       [](Configuration& c) { c.strategy = SplitKind::dcp; }},
      {"cpverify-empty-list", System::sglang,
       [](Configuration& c) { c.dcp = 4, c.block_size = 1, c.backend = AttentionBackend::triton; },
       [](Configuration& c) { c.block_size = 4; }},
  };
}

TEST(ConfigRules, AreBrokenByTheirExamplesAndMendedByOneChange) {
  std::vector<Example> examples = vllm_examples();
  for (Example& example : other_examples()) examples.push_back(std::move(example));
  for (const Example& example : examples) {
    Configuration c = of(example.system);
    example.broken(c);
    EXPECT_THAT(ids(c), Contains(example.id));
    example.right(c);
    EXPECT_THAT(ids(c), Not(Contains(example.id)));
  }
}

/// Every rule can be broken, so that none is a check that never fails: each is tried with sizes and
/// features at random until it is.
TEST(ConfigRules, CanAllBeBroken) {
  std::set<std::string_view> unbroken;
  for (const auto rules : {vllm_rules(), sglang_rules(), own_rules()}) {
    for (const ConfigRule& rule : rules) unbroken.insert(rule.id);
  }
  unbroken.erase("sglang-22");  // The command line takes no size below 1.
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t count) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8U) % count;
  };
  constexpr std::array<std::int64_t, 6> kSizes{1, 2, 3, 4, 8, 16};
  for (int i = 0; i < 20'000 && !unbroken.empty(); ++i) {
    Configuration c = of(all_systems()[draw(4)]);
    for (std::int64_t* size : {&c.tp,
                               &c.cp,
                               &c.dcp,
                               &c.dp,
                               &c.pp,
                               &c.moe_dp,
                               &c.ep,
                               &c.ulysses,
                               &c.heads_q,
                               &c.heads_kv,
                               &c.block_size,
                               &c.kernel_block_size,
                               &c.interleave_size,
                               &c.deprecated_interleave,
                               &c.workspace_tokens,
                               &c.chunk_tokens,
                               &c.requests,
                               &c.speculative_tokens,
                               &c.eagle_topk,
                               &c.head_dim}) {
      *size = kSizes[draw(6)];
    }
    c.strategy = all_split_kinds()[draw(12)];
    c.combine = all_combines()[draw(5)];
    c.backend = all_backends()[draw(12)];
    for (const Feature feature : all_features()) {
      if (draw(2) == 0) turn_on(c, {feature});
    }
    for (const BrokenRule& broken : broken_rules(c)) unbroken.erase(broken.rule->id);
  }
  EXPECT_THAT(unbroken, IsEmpty());
}

std::vector<std::vector<std::int64_t>> groups(const Configuration& c, std::string_view kind) {
  for (const GroupKind& entry : world_groups(c)) {
    if (entry.name == kind) return entry.groups;
  }
  return {};
}

// SGLang's example: tp 8, dp 2, cp 2: CP groups 0,2 | 1,3 | 4,6 | 5,7.
TEST(WorldGroups, OfSglangStrideByAttentionTp) {
  Configuration c = of(System::sglang);
  c.tp = 8;
  c.dp = 2;
  c.cp = 2;
  using Group = std::vector<std::int64_t>;
  EXPECT_THAT(groups(c, "cp"), ElementsAre(Group{0, 2}, Group{1, 3}, Group{4, 6}, Group{5, 7}));
  EXPECT_EQ(c.world_size(), 8);
}

// vLLM's example: TP 4, P 2: D 2 -> {0,4} {1,5} {2,6} {3,7}; D 8 -> 0,4,1,5,2,6,3,7.
TEST(WorldGroups, OfVllmTakePcpAsTheFastAxis) {
  Configuration c = of(System::vllm);
  c.strategy = SplitKind::pcp_virtual_batch;
  c.tp = 4;
  c.cp = 2;
  c.dcp = 2;
  using Group = std::vector<std::int64_t>;
  EXPECT_THAT(groups(c, "dcp"), ElementsAre(Group{0, 4}, Group{1, 5}, Group{2, 6}, Group{3, 7}));
  c.dcp = 8;
  EXPECT_THAT(groups(c, "dcp"), ElementsAre(Group{0, 4, 1, 5, 2, 6, 3, 7}));
  EXPECT_EQ(cache_shards(c), 8);
  // In the older model the cache is split over P * D, and a DCP group is inside a TP group.
  c.dcp = 2;
  c.strategy = SplitKind::pcp_head_tail;
  EXPECT_THAT(groups(c, "dcp"), ElementsAre(Group{0, 1}, Group{2, 3}, Group{4, 5}, Group{6, 7}));
  EXPECT_EQ(cache_shards(c), 4);
}

}  // namespace
}  // namespace cpverify::layout
