#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/rule_terms.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

using Config = const Configuration&;
using enum RuleEffect;

/// The context-parallel size that the system itself chooses.
std::string overwritten_cp(Config c) {
  const std::int64_t chosen = c.tp / c.dp;
  return when(is_cp(c) && c.cp != chosen, fmt::format("cp {} becomes tp / dp = {}", c.cp, chosen));
}

constexpr std::array kRules{
    ConfigRule{"sglang-1", System::sglang, kSglang, refused, "Prefill CP needs a strategy.",
               "Name one: zigzag or interleave.",
               [](Config c) {
                 return when(is_cp(c) && c.strategy == SplitKind::single,
                             fmt::format("cp {}", c.cp));
               }},
    ConfigRule{"sglang-4", System::sglang, kSglang, refused,
               "tp is a multiple of cp and of dp * cp.",
               "Choose cp and dp so that their product divides tp.",
               [](Config c) {
                 return when(is_cp(c) && (c.tp % c.cp != 0 || c.tp % (c.dp * c.cp) != 0),
                             fmt::format("tp {}, cp {}, dp * cp = {}", c.tp, c.cp, c.dp * c.cp));
               }},
    ConfigRule{"sglang-5", System::sglang, kSglang, refused,
               "AITER's fused all-reduce excludes cp > 1 and moe_dp > 1.", "Turn it off.",
               [](Config c) {
                 return clauses(c.has(Feature::aiter_all_reduce),
                                {{is_cp(c), "cp > 1"}, {c.moe_dp > 1, "moe_dp > 1"}});
               }},
    ConfigRule{
        "sglang-6", System::sglang, kSglang, refused,
        "moe_dp > 1 divides tp, keeps ep * moe_dp within tp (equal when ep > 1), and needs pp = 1.",
        "Set moe_dp to 1, or the sizes so.",
        [](Config c) {
          return clauses(c.moe_dp > 1, {{c.tp % c.moe_dp != 0, "moe_dp does not divide tp"},
                                        {c.ep * c.moe_dp > c.tp, "ep * moe_dp > tp"},
                                        {c.ep > 1 && c.ep * c.moe_dp < c.tp, "ep * moe_dp < tp"},
                                        {c.pp > 1, "pp > 1"}});
        }},
    ConfigRule{"sglang-7", System::sglang, kSglang, refused, "With moe_dp > 1, cp is moe_dp.",
               "Set moe_dp to 1 or to cp.",
               [](Config c) {
                 return when(c.moe_dp > 1 && c.cp != c.moe_dp,
                             fmt::format("cp {}, moe_dp {}", c.cp, c.moe_dp));
               }},
    ConfigRule{"sglang-8", System::sglang, kSglang, refused,
               "MiMo-V2 takes zigzag only, and serves text only.", "Use zigzag without images.",
               [](Config c) {
                 return clauses(is_cp(c) && c.has(Feature::mimo_v2),
                                {{!is_zigzag(c), "another strategy than zigzag"},
                                 {c.has(Feature::multimodal), "multimodal serving"}});
               }},
    ConfigRule{"sglang-9-size", System::sglang, kSglang, changed,
               "CP of sparse attention sets cp to tp / dp without a word.", "Set cp to tp / dp.",
               [](Config c) {
                 return c.has(Feature::sparse_attention) ? overwritten_cp(c) : std::string{};
               }},
    ConfigRule{"sglang-9-tp", System::sglang, kSglang, refused,
               "CP of sparse attention has at most 8 ranks: over machines it was imprecise.",
               "Use tp up to 8.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::sparse_attention) && c.tp > 8,
                             fmt::format("tp {}", c.tp));
               }},
    ConfigRule{"sglang-10", System::sglang, kSglang, refused,
               "Interleave with sparse attention needs dp = 1.", "Set dp to 1.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::sparse_attention) &&
                                 c.strategy == SplitKind::interleave && c.dp != 1,
                             fmt::format("dp {}", c.dp));
               }},
    ConfigRule{"sglang-11", System::sglang, kSglang, changed,
               "Zigzag with sparse attention forces DeepEP, ep = tp and a batch of one.",
               "Use interleave.",
               [](Config c) {
                 return clauses(
                     is_cp(c) && c.has(Feature::sparse_attention) && is_zigzag(c),
                     {{c.ep != c.tp, "ep becomes tp"}, {c.requests > 1, "the batch becomes one"}});
               }},
    ConfigRule{"sglang-12", System::sglang, kSglang, changed,
               "CP of MLA models sets cp to tp / dp, and ep to tp.", "Set them so.",
               [](Config c) {
                 const bool is_dense_mla = c.has(Feature::mla) && !c.has(Feature::sparse_attention);
                 return is_dense_mla ? overwritten_cp(c) : std::string{};
               }},
    ConfigRule{"sglang-13", System::sglang, kSglang, refused,
               "CP of DeepSeek-V4 is interleave with dp = 1 and tp up to 8.", "Set them so.",
               [](Config c) {
                 return clauses(
                     is_cp(c) && c.has(Feature::deepseek_v4),
                     {{c.strategy != SplitKind::interleave, "another strategy than interleave"},
                      {c.dp != 1, "dp > 1"},
                      {c.tp > 8, "tp > 8"}});
               }},
    ConfigRule{"sglang-14-breakable", System::sglang, kSglang, refused,
               "Breakable graphs under CP need zigzag, TRT-LLM MHA, cp = tp and pp = 1.",
               "Turn breakable graphs off.",
               [](Config c) {
                 return clauses(is_cp(c) && c.has(Feature::breakable_graphs),
                                {{!is_zigzag(c), "another strategy than zigzag"},
                                 {c.backend != AttentionBackend::trtllm_mha, "another backend"},
                                 {c.cp != c.tp, "cp is not tp"},
                                 {c.pp > 1, "pp > 1"}});
               }},
    ConfigRule{"sglang-14-piecewise", System::sglang, kSglang, changed,
               "CP turns piecewise graphs off.", "Expect prefill without graphs.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::piecewise_graphs),
                             "piecewise graphs go off");
               }},
    ConfigRule{"sglang-15", System::sglang, kSglang, refused,
               "A decode worker of a split deployment takes no prefill CP.", "Remove cp there.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::pd_decode), fmt::format("cp {}", c.cp));
               }},
    ConfigRule{
        "sglang-16", System::sglang, kSglang, refused,
        "LayerSplit is for sparse attention on a prefill worker with interleave CP and pp = 1.",
        "Turn LayerSplit off.",
        [](Config c) {
          return clauses(c.has(Feature::layer_split),
                         {{!c.has(Feature::sparse_attention), "no sparse attention"},
                          {!c.has(Feature::pd_prefill), "no prefill worker"},
                          {!is_cp(c) || c.strategy != SplitKind::interleave, "no interleave CP"},
                          {c.pp > 1, "pp > 1"}});
        }},
    ConfigRule{"sglang-17", System::sglang, kSglang, refused,
               "Prefill without a KV cache excludes CP, which writes through the pool.",
               "Set cp to 1.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::prefill_only), fmt::format("cp {}", c.cp));
               }},
    ConfigRule{"sglang-18", System::sglang, kSglang, refused, "Elastic EP needs cp = 1.",
               "Set cp to 1.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::elastic_ep), fmt::format("cp {}", c.cp));
               }},
    ConfigRule{"sglang-19", System::sglang, kSglang, refused,
               "DSpark with DP attention needs cp = 1.", "Set cp to 1.",
               [](Config c) {
                 return when(is_cp(c) && c.dp > 1 && c.has(Feature::dspark),
                             fmt::format("cp {}", c.cp));
               }},
    ConfigRule{"sglang-20", System::sglang, kSglang, refused, "EAGLE top-k is 1 for DeepSeek-V4.",
               "Set it to 1.",
               [](Config c) {
                 return when(c.has(Feature::deepseek_v4) && c.eagle_topk > 1,
                             fmt::format("top-k {}", c.eagle_topk));
               }},
    ConfigRule{"sglang-22", System::sglang, kSglang, refused, "dcp is at least 1.", "Set dcp to 1.",
               [](Config c) { return when(c.dcp < 1, fmt::format("dcp {}", c.dcp)); }},
    ConfigRule{"sglang-23", System::sglang, kSglang, refused,
               "The all-to-all combines need dcp > 1: without it they have no effect.",
               "Leave the combine at its default.",
               [](Config c) {
                 return when(!is_dcp(c) && is_all_to_all(c), fmt::format("dcp {}", c.dcp));
               }},
    ConfigRule{"sglang-24", System::sglang, kSglang, refused,
               "fi_a2a needs CUDA, SM90 and an MNNVL fabric.", "Use a2a.",
               [](Config c) {
                 return when(c.combine == Combine::fi_a2a && c.has(Feature::rocm), "ROCm");
               }},
    ConfigRule{"sglang-25", System::sglang, kSglang, refused,
               "A replicated Q projection needs dcp > 1 and an all-to-all combine.",
               "Turn it off, or use a2a.",
               [](Config c) {
                 return clauses(
                     c.has(Feature::replicate_q),
                     {{!is_dcp(c), "dcp is 1"}, {!is_all_to_all(c), "no all-to-all combine"}});
               }},
    ConfigRule{"sglang-26-tp", System::sglang, kSglang, refused, "dcp divides tp.",
               "Choose a dcp that divides tp.",
               [](Config c) {
                 return when(c.tp % c.dcp != 0, fmt::format("tp {}, dcp {}", c.tp, c.dcp));
               }},
    ConfigRule{"sglang-26-heads", System::sglang, kSglang, refused,
               "The all-to-all combine deals the query heads to dcp ranks.",
               "Choose a dcp that divides the query heads.",
               [](Config c) {
                 return when(is_dcp(c) && is_all_to_all(c) && c.heads_q % c.dcp != 0,
                             fmt::format("{} query heads, dcp {}", c.heads_q, c.dcp));
               }},
    ConfigRule{"sglang-28", System::sglang, kSglang, changed,
               "DCP turns the graphs of prefill off.", "Expect prefill without graphs.",
               [](Config c) {
                 return clauses(is_dcp(c),
                                {{c.has(Feature::piecewise_graphs), "piecewise graphs go off"},
                                 {c.has(Feature::breakable_graphs), "breakable graphs go off"}});
               }},
    ConfigRule{
        "sglang-29", System::sglang, kSglang, refused,
        "A decode worker with DCP takes no radix cache and no hierarchical cache, and its prefill "
        "workers no CP.",
        "Turn what is named off.",
        [](Config c) {
          return clauses(is_dcp(c) && c.has(Feature::pd_decode),
                         {{c.has(Feature::radix_cache), "radix cache"},
                          {c.has(Feature::hierarchical_cache), "hierarchical cache"},
                          {is_cp(c), "cp > 1"}});
        }},
    ConfigRule{"sglang-30", System::sglang, kSglang, refused,
               "A hierarchical cache with DCP is for MLA without speculation, and its page is a "
               "multiple of "
               "dcp.",
               "Turn the hierarchical cache off.",
               [](Config c) {
                 return clauses(is_dcp(c) && c.has(Feature::hierarchical_cache),
                                {{!c.has(Feature::mla), "no MLA model"},
                                 {c.speculative_tokens > 0, "speculative decoding"},
                                 {c.block_size % c.dcp != 0, "dcp does not divide the page"}});
               }},
    ConfigRule{
        "sglang-31", System::sglang, kSglang, refused,
        "The unified memory pool has no masked write and needs dcp = 1.", "Turn the pool off.",
        [](Config c) { return when(is_dcp(c) && c.has(Feature::unified_pool), "unified pool"); }},
    ConfigRule{"sglang-32-trtllm", System::sglang, kSglang, refused,
               "TRT-LLM MLA with DCP takes no speculation.", "Use another backend.",
               [](Config c) {
                 return when(is_dcp(c) && c.backend == AttentionBackend::trtllm_mla &&
                                 c.speculative_tokens > 0,
                             fmt::format("{} speculative tokens", c.speculative_tokens));
               }},
    ConfigRule{"sglang-32-flashmla", System::sglang, kSglang, refused,
               "FlashMLA with DCP takes no FP8 cache.", "Use a 16-bit cache.",
               [](Config c) {
                 return when(
                     is_dcp(c) && c.backend == AttentionBackend::flashmla && c.has(Feature::fp8_kv),
                     "FP8 cache");
               }},
    ConfigRule{"sglang-33", System::sglang, kSglang, refused,
               "Triton's extend under DCP takes no sinks, masks, windows or changed scores.",
               "Use another backend.",
               [](Config c) {
                 return clauses(
                     is_dcp(c) && c.backend == AttentionBackend::triton,
                     {{c.has(Feature::sinks), "sinks"},
                      {c.has(Feature::custom_mask), "custom mask"},
                      {c.has(Feature::sliding_window), "sliding window"},
                      {c.has(Feature::soft_cap) || c.has(Feature::alibi), "changed scores"}});
               }},
    ConfigRule{"sglang-34", System::sglang, kSglang, refused,
               "FP4 and MXFP8 caches have no DCP mask.", "Use an FP8 or 16-bit cache.",
               [](Config c) {
                 return clauses(is_dcp(c), {{c.has(Feature::fp4_kv), "FP4 cache"},
                                            {c.has(Feature::mxfp8_kv), "MXFP8 cache"}});
               }},
    ConfigRule{"sglang-35-backend", System::sglang, kSglang, refused,
               "DCP of Kimi-K3 decodes with CuTe-DSL MLA or TokenSpeed MLA.", "Use one of the two.",
               [](Config c) {
                 return when(is_dcp(c) && c.has(Feature::kimi_k3) &&
                                 c.backend != AttentionBackend::cutedsl_mla &&
                                 c.backend != AttentionBackend::tokenspeed_mla,
                             fmt::format("backend {}", name(c.backend)));
               }},
    ConfigRule{"sglang-35-memory", System::sglang, kSglang, changed,
               "DCP of Kimi-K3 turns symmetric memory off, for graphs to be right.",
               "Expect NCCL collectives.",
               [](Config c) {
                 return when(
                     is_dcp(c) && c.has(Feature::kimi_k3) && c.has(Feature::symmetric_memory),
                     "symmetric memory goes off");
               }},
};

}  // namespace

std::span<const ConfigRule> sglang_rules() noexcept {
  return kRules;
}

}  // namespace cpverify::layout
