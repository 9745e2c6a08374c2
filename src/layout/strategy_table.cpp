#include "layout/strategy_table.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/scenario.hpp"
#include "layout/splits.hpp"
#include "scenario/schema.hpp"

namespace cpverify::layout {
namespace {

constexpr std::string_view kReplicated = "all of it";
constexpr std::string_view kGatherKv = "all-gather K, V";

// In the order of SplitKind.
constexpr std::array<StrategyFacts, 12> kFacts{{
    {SplitKind::single, "all", kReplicated, "nothing", "-", "as prefill", "any", {"", "", ""}},
    {SplitKind::zigzag,
     "blocks r and 2C-1-r of 2C",
     kReplicated,
     kGatherKv,
     "even",
     "turns CP off",
     "under 2C tokens turns CP off",
     {"", "", "zigzag (in-seq-split)"}},
    {SplitKind::zigzag_combined,
     "as zigzag, one call on 2bs sequences",
     kReplicated,
     kGatherKv,
     "even",
     "turns CP off",
     "under 2C tokens turns CP off",
     {"", "", "zigzag with trtllm_mha"}},
    {SplitKind::interleave,
     "flattened token mod C",
     kReplicated,
     kGatherKv,
     "nearly even",
     "mixed batches are split",
     "a batch under C tokens turns CP off",
     {"", "", "interleave (round-robin-split)"}},
    {SplitKind::contiguous,
     "one piece of C",
     kReplicated,
     kGatherKv,
     "last rank has most",
     "turns CP off",
     "pieces may be empty",
     {"", "linear split of hybrid models", ""}},
    {SplitKind::dcp,
     "all, partial over keys",
     "(x div I) mod N",
     "all-gather Q; combine partials",
     "even",
     "sharded",
     "shards may be empty",
     {"dcp", "dcp", ""}},
    {SplitKind::dcp_virtual,
     "all, partial over keys",
     "x mod N, virtual slots",
     "all-gather Q; combine partials",
     "even",
     "sharded",
     "shards may be empty",
     {"", "", "dcp"}},
    {SplitKind::pcp_head_tail,
     "padded chunks p and 2P-1-p of 2P",
     "P*D shards (K1)",
     "all-gather K, V over P; Q and partials for context",
     "even",
     "replicated queries, sharded",
     "padded to 2P",
     {"PCP before August 2026", "PCP of model runner V1", ""}},
    {SplitKind::pcp_virtual_batch,
     "chunks p and 2P-1-p of 2P as rows",
     "D shards (K2)",
     "all-gather K, V over P",
     "uneven when short",
     "replicated, or sharded over D",
     "ranks without rows",
     {"PCP of model runner V2", "PCP of model runner V2", ""}},
    {SplitKind::ring,
     "contiguous or zigzag pieces",
     "the rank's pieces",
     "send K, V around",
     "even (zigzag)",
     "as prefill",
     "pieces may be empty",
     {"", "", ""}},
    {SplitKind::ulysses,
     "all, for heads r of C",
     "the rank's heads",
     "all-to-all Q, K, V and out",
     "even",
     "as prefill",
     "pieces may be empty",
     {"", "", ""}},
    {SplitKind::ulysses_ring,
     "ring pieces, for heads u of U",
     "its pieces and heads",
     "all-to-all in U, send K, V around R",
     "even (zigzag)",
     "as prefill",
     "pieces may be empty",
     {"", "", ""}},
}};

/// Of the strategies that scenarios run, which take models with soft-cap, sinks and windows.
std::string features_part() {
  std::string part =
      "\n## Soft-cap, sinks, sliding windows\n\nOf the strategies that `cpverify run` executes, on "
      "several ranks; where nothing is split all of them are as `single`.\n\n| strategy | "
      "`soft_cap` | `sinks` | `sliding_window` |\n|---|---|---|---|\n";
  for (const StrategyKind strategy : scenario::kStrategies) {
    part += fmt::format("| `{}` |", cpverify::name(strategy));
    for (const ModelFeature feature :
         {ModelFeature::soft_cap, ModelFeature::sinks, ModelFeature::sliding_window}) {
      const std::string_view reason = why_not(strategy, feature);
      part += reason.empty() ? std::string{" yes |"} : fmt::format(" refused: it {} |", reason);
    }
    part += '\n';
  }
  return part;
}

std::string_view or_dash(std::string_view text) {
  return text.empty() ? "-" : text;
}

}  // namespace

const StrategyFacts& strategy_facts(SplitKind kind) noexcept {
  return kFacts[static_cast<std::size_t>(kind)];
}

std::string strategies_page() {
  std::string page =
      "# Strategies compared\n\n"
      "Generated from `src/layout/strategy_table.cpp` by `cpverify plan --table > "
      "docs/strategies.md`; "
      "a test compares the two.\nIt is what `cpverify plan` describes, checks and costs; which of "
      "them `cpverify run` executes is in `docs/scenario.md`.\n\n"
      "C, P: ranks of prefill context parallelism; N, D: shards of the cache; I: interleave size; "
      "U x R: Ulysses times ring.\n\n"
      "| strategy | new tokens of a rank | cache of a rank | exchanged per layer | causal balance "
      "| "
      "decode rows | short requests |\n|---|---|---|---|---|---|---|\n";
  for (const StrategyFacts& facts : kFacts) {
    page +=
        fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", name(facts.kind), facts.splits,
                    facts.cache, facts.exchange, facts.balance, facts.decode, facts.short_requests);
  }
  page +=
      "\n## Names in the systems\n\n| strategy | vLLM | vllm-ascend | SGLang |\n"
      "|---|---|---|---|\n";
  for (const StrategyFacts& facts : kFacts) {
    page += fmt::format("| `{}` | {} | {} | {} |\n", name(facts.kind), or_dash(facts.names[0]),
                        or_dash(facts.names[1]), or_dash(facts.names[2]));
  }
  return page + features_part();
}

}  // namespace cpverify::layout
