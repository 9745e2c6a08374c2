#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include "cpverify/system.hpp"
#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/rule_terms.hpp"
#include "layout/splits.hpp"
#include "layout/strategy_table.hpp"

namespace cpverify::layout {
namespace {

using Config = const Configuration&;
using enum RuleEffect;

/// Ranks that exchange heads for tokens.
std::int64_t head_exchange(Config c) noexcept {
  if (c.strategy == SplitKind::ulysses) return c.cp;
  return c.strategy == SplitKind::ulysses_ring ? c.ulysses : 1;
}

/// Strategies that give the keys of a query to several calls.
bool cuts_up_keys(Config c) noexcept {
  SplitSpec spec;
  spec.kind = c.strategy;
  spec.dcp = c.dcp > 1 ? 2 : 1;
  return (is_cp(c) || is_dcp(c)) && !computes_whole_rows(spec);
}

constexpr std::array kRules{
    ConfigRule{"cpverify-strategy", System::cpverify, kBothVllm | kSglang, unsafe,
               "The system has the strategy.",
               "Choose one that the table of strategies has for it, or --system cpverify.",
               [](Config c) {
                 const bool is_known = c.strategy == SplitKind::single ||
                                       !strategy_facts(c.strategy).name_in(c.system).empty();
                 return when(!is_known,
                             fmt::format("{} has no {}", name(c.system), name(c.strategy)));
               }},
    ConfigRule{"cpverify-sizes", System::cpverify, kBothVllm | kOwn, refused,
               "The strategy has a use for the sizes that are given.",
               "Choose a strategy that splits what they are for, or set them to 1.",
               [](Config c) {
                 return clauses(true, {{is_cp(c) && !uses_cp(c.strategy), "cp has no effect"},
                                       {is_dcp(c) && !uses_dcp(c.strategy), "dcp has no effect"}});
               }},
    ConfigRule{"cpverify-heads", System::cpverify, kAll, unsafe,
               "heads_q is a multiple of heads_kv.", "Check the model's numbers of heads.",
               [](Config c) {
                 return when(c.heads_q % c.heads_kv != 0,
                             fmt::format("{} query heads, {} KV heads", c.heads_q, c.heads_kv));
               }},
    ConfigRule{"cpverify-tp-heads", System::cpverify, kAll, unsafe,
               "Attention TP divides the query heads.", "Choose a tp that divides them.",
               [](Config c) {
                 const std::int64_t tp = c.attention_tp();
                 return when(tp > 0 && c.heads_q % tp != 0,
                             fmt::format("{} query heads over {} ranks", c.heads_q, tp));
               }},
    ConfigRule{"cpverify-tp-kv", System::cpverify, kAll, unsafe,
               "Of attention TP and the KV heads one divides the other; else a rank would need "
               "parts of two heads.",
               "Choose tp so.",
               [](Config c) {
                 const std::int64_t tp = c.attention_tp();
                 return when(tp > 0 && c.heads_kv % tp != 0 && tp % c.heads_kv != 0,
                             fmt::format("{} KV heads over {} ranks", c.heads_kv, tp));
               }},
    ConfigRule{"cpverify-dcp-tp", System::cpverify, kOwn, refused,
               "dcp divides tp: a DCP group is inside a TP group.", "Choose a dcp that divides tp.",
               [](Config c) {
                 const bool is_own_axis = c.strategy == SplitKind::pcp_virtual_batch && is_cp(c);
                 return when(!is_own_axis && c.tp % c.dcp != 0,
                             fmt::format("tp {}, dcp {}", c.tp, c.dcp));
               }},
    ConfigRule{"cpverify-dcp-heads", System::cpverify, kOwn, refused,
               "The ranks of a DCP group hold copies of one KV head.",
               "Choose dcp so that it divides tp / heads_kv.",
               [](Config c) {
                 const bool is_own_axis = c.strategy == SplitKind::pcp_virtual_batch && is_cp(c);
                 return when(is_dcp(c) && !is_own_axis && c.tp % c.dcp == 0 &&
                                 std::max<std::int64_t>(c.tp / c.heads_kv, 1) % c.dcp != 0,
                             fmt::format("tp {}, {} KV heads, dcp {}", c.tp, c.heads_kv, c.dcp));
               }},
    ConfigRule{"cpverify-interleave", System::cpverify, kSglang | kOwn, refused,
               "The interleave size divides the block size: else offsets leave their block.",
               "Use an interleave that divides the block size.",
               [](Config c) {
                 return when(
                     is_any_cp(c) && c.block_size % c.interleave_size != 0,
                     fmt::format("block size {}, interleave {}", c.block_size, c.interleave_size));
               }},
    ConfigRule{"cpverify-ulysses", System::cpverify, kAll, refused,
               "Ulysses deals the query heads of a rank, and its KV heads or copies of them, to "
               "whole ranks.",
               "Choose a smaller Ulysses degree, or combine it with a ring.",
               [](Config c) {
                 const std::int64_t degree = head_exchange(c);
                 const std::int64_t tp = std::max<std::int64_t>(c.attention_tp(), 1);
                 const std::int64_t kv = std::max<std::int64_t>(c.heads_kv / tp, 1);
                 return clauses(degree > 1,
                                {{c.heads_q / tp % degree != 0, "query heads do not divide"},
                                 {kv % degree != 0 && degree % kv != 0, "KV heads do not divide"},
                                 {c.cp % degree != 0, "the degree does not divide cp"}});
               }},
    ConfigRule{"cpverify-kernel-block", System::cpverify, kBothVllm, unsafe,
               "With blocks cut for the kernel, the interleave divides the kernel's block: model "
               "runner V2 computed owners with the smaller block, and overwrote live tokens.",
               "Use an interleave that divides the kernel's block.",
               [](Config c) {
                 return when(is_dcp(c) && c.kernel_block_size > 0 &&
                                 c.kernel_block_size % c.interleave_size != 0,
                             fmt::format("kernel block {}, interleave {}", c.kernel_block_size,
                                         c.interleave_size));
               }},
    ConfigRule{"cpverify-flag-order", System::cpverify, kVllm, unsafe,
               "FlashInfer's metadata reads the deprecated interleave flag, the slots the new one: "
               "a rank drops its own keys and reads others.",
               "Give both flags the same value.",
               [](Config c) {
                 const std::int64_t builder = std::max<std::int64_t>(c.deprecated_interleave, 1);
                 return when(is_dcp(c) && c.backend == AttentionBackend::flashinfer &&
                                 builder != c.interleave_size,
                             fmt::format("slots use {}, metadata {}", c.interleave_size, builder));
               }},
    ConfigRule{"cpverify-dcp-sinks", System::cpverify, kVllm, unsafe,
               "Attention sinks under DCP are dropped by FlashAttention and counted once per shard "
               "by FlashInfer.",
               "Turn DCP off for models with sinks.",
               [](Config c) { return when(is_dcp(c) && c.has(Feature::sinks), "sinks"); }},
    ConfigRule{"cpverify-parts-window", System::cpverify, kOwn, refused,
               "Kernels count a window back from the last key of a call: a strategy that gives the "
               "keys of a query to several calls would count it in each.",
               "Choose a strategy that computes whole rows, such as zigzag or ulysses.",
               [](Config c) {
                 return when(cuts_up_keys(c) && c.has(Feature::sliding_window), "sliding window");
               }},
    ConfigRule{"cpverify-dcp-window", System::cpverify, kVllm, unsafe,
               "A window or ALiBi in a full-attention group acts on a shard's own numbering: a "
               "window of 4 over two shards is one of 8.",
               "Turn DCP off for such models.",
               [](Config c) {
                 return clauses(is_dcp(c) && !c.has(Feature::hybrid_groups),
                                {{c.has(Feature::sliding_window), "sliding window"},
                                 {c.has(Feature::alibi), "ALiBi"}});
               }},
    ConfigRule{"cpverify-pcp-dcp", System::cpverify, kVllm, unsafe,
               "Chunk plans of PCP prefill are local to a rank, but the gather of context is a DCP "
               "collective: ranks exchange other rows, or wait for ever.",
               "Use PCP or DCP, or a version whose plans are the same on all PCP ranks.",
               [](Config c) {
                 return when(is_cp(c) && is_dcp(c), fmt::format("pcp {}, dcp {}", c.cp, c.dcp));
               }},
    ConfigRule{"cpverify-mtp-mask", System::cpverify, kAscend, unsafe,
               "Queries for which a shard has no visible key are not masked: in the first "
               "dcp * interleave tokens they see later drafts.",
               "Turn speculation off, or check that the shard contributes nothing.",
               [](Config c) {
                 return when(
                     c.dcp * (c.is_cache_over_cp ? c.cp : 1) > 1 && c.speculative_tokens > 0,
                     fmt::format("{} speculative tokens", c.speculative_tokens));
               }},
    ConfigRule{"cpverify-power-of-two", System::cpverify, kBothVllm | kSglang, unsafe,
               "The kernel of the ag_rs combine needs powers of two for dcp and the head size.",
               "Use such sizes, or the a2a combine.",
               [](Config c) {
                 const bool is_ag_rs =
                     c.combine == Combine::ag_rs || c.combine == Combine::automatic;
                 return clauses(is_dcp(c) && is_ag_rs,
                                {{!is_power_of_two(c.dcp), "dcp is no power of two"},
                                 {!is_power_of_two(c.head_dim), "head size is no power of two"}});
               }},
    ConfigRule{"cpverify-a2a-head-dim", System::cpverify, kBothVllm | kSglang, unsafe,
               "The kernel of the a2a combine needs a power of two for the head size.",
               "Use such a size.",
               [](Config c) {
                 return when(is_dcp(c) && is_all_to_all(c) && !is_power_of_two(c.head_dim),
                             fmt::format("head size {}", c.head_dim));
               }},
    ConfigRule{"cpverify-direct", System::cpverify, kBothVllm, unsafe,
               "The direct combine needs a head size that is a multiple of 8, and heads that "
               "divide.",
               "Use a2a.",
               [](Config c) {
                 return clauses(is_dcp(c) && c.combine == Combine::direct,
                                {{c.head_dim % 8 != 0, "head size is no multiple of 8"},
                                 {c.heads_q % c.dcp != 0, "query heads do not divide"}});
               }},
    ConfigRule{"sglang-27", System::cpverify, kSglang, unsafe,
               "Under DP attention, dcp divides attention TP; SGLang divides the whole tp.",
               "Choose a dcp that divides tp / (dp * cp).",
               [](Config c) {
                 const std::int64_t tp = c.attention_tp();
                 return when(is_dcp(c) && tp > 0 && tp % c.dcp != 0,
                             fmt::format("attention TP {}, dcp {}", tp, c.dcp));
               }},
    ConfigRule{"cpverify-mixed", System::cpverify, kSglang, unsafe,
               "Interleave accepts batches that mix prefill and decode; nothing tests them.",
               "Turn mixed batches off.",
               [](Config c) {
                 return when(is_cp(c) && c.strategy == SplitKind::interleave &&
                                 c.has(Feature::mixed_batches),
                             "mixed batches");
               }},
    ConfigRule{"cpverify-mrope", System::cpverify, kSglang, unsafe,
               "Interleave cuts positions along their first dimension, which for m-rope is not "
               "that of tokens.",
               "Use zigzag.",
               [](Config c) {
                 return when(
                     is_cp(c) && c.strategy == SplitKind::interleave && c.has(Feature::mrope),
                     "m-rope");
               }},
    ConfigRule{"cpverify-chunk", System::cpverify, kSglang, unsafe,
               "A chunk holds 2 * cp tokens of each request; one that is shorter turns CP off for "
               "the whole batch.",
               "Raise the chunk size, or lower cp.",
               [](Config c) {
                 return when(is_cp(c) && is_zigzag(c) && c.chunk_tokens > 0 &&
                                 c.chunk_tokens < 2 * c.cp * c.requests,
                             fmt::format("{} tokens for {} requests, cp {}", c.chunk_tokens,
                                         c.requests, c.cp));
               }},
    ConfigRule{"cpverify-fp8", System::cpverify, kSglang, unsafe,
               "Whether a backend takes an FP8 cache under CP is checked nowhere.",
               "Use a 16-bit cache, or compare with cp = 1.",
               [](Config c) { return when(is_cp(c) && c.has(Feature::fp8_kv), "FP8 cache"); }},
    ConfigRule{
        "cpverify-backend", System::cpverify, kSglang, unsafe,
        "Zigzag has backends fa3, fa4 and trtllm_mha; others fail at the first forward pass.",
        "Use one of the three.",
        [](Config c) {
          const bool is_right =
              c.backend == AttentionBackend::unknown || c.backend == AttentionBackend::fa3 ||
              c.backend == AttentionBackend::fa4 || c.backend == AttentionBackend::trtllm_mha;
          return when(is_cp(c) && is_zigzag(c) && !is_right,
                      fmt::format("backend {}", name(c.backend)));
        }},
    ConfigRule{
        "cpverify-empty-list", System::cpverify, kSglang, unsafe,
        "Triton's extend under DCP returns before the group's collectives when a rank has no "
        "prefix; a page shorter than dcp allows such prefixes.",
        "Use pages of at least dcp tokens.",
        [](Config c) {
          return when(is_dcp(c) && c.backend == AttentionBackend::triton && c.block_size < c.dcp,
                      fmt::format("page {}, dcp {}", c.block_size, c.dcp));
        }},
    ConfigRule{"cpverify-flashmla", System::cpverify, kSglang, unsafe,
               "FlashMLA's decode under DCP seems to use global lengths and undivided slots.",
               "Use another backend.",
               [](Config c) {
                 return when(is_dcp(c) && c.backend == AttentionBackend::flashmla,
                             fmt::format("dcp {}", c.dcp));
               }},
};

constexpr std::array kUndecided{
    UndecidedRule{"vllm-8", System::vllm,
                  "With dcp > 1 every attention implementation returns the "
                  "LSE of decode.",
                  "each implementation declares it in its own code"},
    UndecidedRule{"vllm-9", System::vllm, "With pcp > 1 the backend declares PCP support.",
                  "each backend declares it in its own code"},
    UndecidedRule{"vllm-15", System::vllm, "The sparse indexer under DCP needs compress ratio 1.",
                  "the ratio is in the model's files"},
    UndecidedRule{"vllm-17", System::vllm,
                  "The context workspace holds an alignment unit and the "
                  "rows of every chunk.",
                  "the rows depend on the requests"},
    UndecidedRule{"vllm-22", System::vllm_ascend,
                  "The head rules of DCP hold for the draft model "
                  "on its own TP.",
                  "the draft model's heads and TP are not part of it"},
    UndecidedRule{"vllm-25", System::vllm_ascend,
                  "In a split deployment, drafts are sampled "
                  "greedily.",
                  "sampling is chosen per request"},
    UndecidedRule{"sglang-2", System::sglang, "The two older CP flags exclude each other.",
                  "they are spellings of the command line, not of what is run"},
    UndecidedRule{"sglang-3", System::sglang,
                  "in-seq-split means zigzag, round-robin-split "
                  "interleave.",
                  "it translates names and refuses nothing"},
    UndecidedRule{"sglang-21", System::sglang,
                  "Decode attention TP under CP is for listed "
                  "architectures.",
                  "the list is in SGLang's code"},
    UndecidedRule{"sglang-24", System::sglang, "fi_a2a finds an MNNVL fabric.",
                  "it is probed on the machine"},
    UndecidedRule{"sglang-36", System::sglang,
                  "The KV pool is not sized again after graph capture "
                  "when dcp is not 1.",
                  "it always holds and refuses nothing"},
    UndecidedRule{"sglang-37", System::sglang, "The offset of a pipeline stage includes cp.",
                  "it is a property of the code, not of a configuration"},
};

}  // namespace

std::span<const ConfigRule> own_rules() noexcept {
  return kRules;
}

std::span<const UndecidedRule> undecided_rules() noexcept {
  return kUndecided;
}

}  // namespace cpverify::layout
