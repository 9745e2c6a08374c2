#include <array>
#include <cstdint>
#include <span>
#include <string>

#include <fmt/format.h>

#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/rule_terms.hpp"

namespace cpverify::layout {
namespace {

using Config = const Configuration&;
using enum RuleEffect;

/// Where a DCP group would hold two KV heads: the first such group, as world ranks and heads.
std::string mixed_group(Config c) {
  if (!is_gqa(c) || !is_dcp(c) || c.tp <= c.heads_kv || c.heads_kv < 1) return {};
  const std::int64_t per_head = c.tp / c.heads_kv;
  if (per_head % c.dcp == 0) return {};
  for (std::int64_t first = 0; first + c.dcp <= c.tp; first += c.dcp) {
    const std::int64_t last = first + c.dcp - 1;
    const std::int64_t head = first * c.heads_kv / c.tp;
    const std::int64_t other = last * c.heads_kv / c.tp;
    if (head != other) {
      return fmt::format(
          "{} ranks per KV head are no multiple of dcp {}: the group of ranks {} to "
          "{} holds KV heads {} and {}",
          per_head, c.dcp, first, last, head, other);
    }
  }
  return fmt::format("{} ranks per KV head are no multiple of dcp {}", per_head, c.dcp);
}

constexpr std::array kRules{
    ConfigRule{"vllm-1", System::vllm, kBothVllm, refused, "Without PCP, dcp divides tp.",
               "Choose a dcp that divides tp.",
               [](Config c) {
                 return when(c.cp == 1 && c.tp % c.dcp != 0,
                             fmt::format("tp {} is no multiple of dcp {}", c.tp, c.dcp));
               }},
    ConfigRule{"vllm-2", System::vllm, kVllm, refused, "With PCP, dcp is 1, pcp, or tp*pcp.",
               "Use one of the three sizes.",
               [](Config c) {
                 return when(is_cp(c) && c.dcp != 1 && c.dcp != c.cp && c.dcp != c.tp * c.cp,
                             fmt::format("dcp {} is not 1, {} or {}", c.dcp, c.cp, c.tp * c.cp));
               }},
    ConfigRule{"vllm-3", System::vllm, kVllm, refused,
               "PCP and data parallelism exclude each other.",
               "Run one engine per data-parallel replica.",
               [](Config c) {
                 return when(is_cp(c) && c.dp > 1, fmt::format("pcp {} with dp {}", c.cp, c.dp));
               }},
    ConfigRule{"vllm-4", System::vllm, kBothVllm, refused, "The a2a combine needs dcp > 1.",
               "Leave the combine backend at its default.",
               [](Config c) {
                 return when(c.combine == Combine::a2a && c.dcp <= 1,
                             fmt::format("dcp is {}", c.dcp));
               }},
    ConfigRule{
        "vllm-5-tp", System::vllm, kBothVllm, refused,
        "DCP of GQA needs more TP ranks than KV heads: only copies of a head can be sharded.",
        "Raise tp above the number of KV heads, or turn DCP off.",
        [](Config c) {
          return when(is_gqa(c) && is_dcp(c) && c.tp <= c.heads_kv,
                      fmt::format("tp {} for {} KV heads", c.tp, c.heads_kv));
        }},
    ConfigRule{"vllm-5-size", System::vllm, kBothVllm, refused,
               "DCP of GQA has at most as many ranks as a KV head has copies: tp // kv_heads.",
               "Lower dcp, or raise tp.",
               [](Config c) {
                 return when(is_gqa(c) && is_dcp(c) && c.dcp > c.tp / c.heads_kv,
                             fmt::format("dcp {} > {} // {} = {}", c.dcp, c.tp, c.heads_kv,
                                         c.tp / c.heads_kv));
               }},
    ConfigRule{"vllm-5-ratio", System::vllm, kBothVllm, refused,
               "DCP of GQA divides the query heads of a KV head.",
               "Choose a dcp that divides heads_q / heads_kv.",
               [](Config c) {
                 return when(is_gqa(c) && is_dcp(c) && c.heads_q / c.heads_kv % c.dcp != 0,
                             fmt::format("{} / {} = {} query heads per KV head, dcp {}", c.heads_q,
                                         c.heads_kv, c.heads_q / c.heads_kv, c.dcp));
               }},
    ConfigRule{"vllm-5b", System::vllm_ascend, kBothVllm, unsafe,
               "A DCP group shares one KV head: dcp divides tp // kv_heads. vllm-ascend documents "
               "it; vLLM "
               "does not check it, and a group that mixes KV heads computes wrong outputs.",
               "Choose dcp so that it divides tp // heads_kv, or tp so that it is a multiple of "
               "heads_kv * dcp.",
               mixed_group},
    ConfigRule{
        "vllm-6", System::vllm, kBothVllm, refused,
        "With DCP, the interleave size divides the block size.",
        "Use an interleave size that divides the block size: 1 and the block size always do.",
        [](Config c) {
          return when(is_dcp(c) && c.block_size % c.interleave_size != 0,
                      fmt::format("block size {} is no multiple of interleave {}", c.block_size,
                                  c.interleave_size));
        }},
    ConfigRule{"vllm-7", System::vllm, kBothVllm, changed,
               "The deprecated DCP interleave flag, when above 1, takes the place of the new one.",
               "Set only the new flag, or both to the same value.",
               [](Config c) {
                 return when(
                     c.deprecated_interleave > 1 && c.deprecated_interleave != c.interleave_size,
                     fmt::format("interleave {} becomes {}", c.interleave_size,
                                 c.deprecated_interleave));
               }},
    ConfigRule{"vllm-9-runner", System::vllm, kVllm, refused, "PCP needs model runner V2.",
               "Do not turn model runner V2 off.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::model_runner_v1),
                             "model runner V1 is chosen");
               }},
    ConfigRule{"vllm-9-model", System::vllm, kVllm, refused, "PCP is for MLA models.",
               "Use DCP for a GQA model.",
               [](Config c) {
                 return when(is_cp(c) && is_gqa(c), fmt::format("pcp {} for a GQA model", c.cp));
               }},
    ConfigRule{
        "vllm-10", System::vllm, kBothVllm, refused,
        "Speculative decoding with an interleave above 1 needs an attention backend that declares "
        "it; FlashAttention 3 does not.",
        "Set the interleave to 1 or speculation off.",
        [](Config c) {
          return when(is_dcp(c) && c.interleave_size > 1 && c.speculative_tokens > 0 &&
                          c.backend == AttentionBackend::fa3,
                      fmt::format("interleave {}, {} speculative tokens", c.interleave_size,
                                  c.speculative_tokens));
        }},
    ConfigRule{
        "vllm-11", System::vllm, kVllm, changed,
        "Under DCP, a backend without variable-length decode treats one token per row as decode.",
        "Expect longer rows to run as prefill.",
        [](Config c) {
          return when(
              is_dcp(c) && c.speculative_tokens > 0 && c.backend == AttentionBackend::flashinfer,
              "the decode threshold becomes 1");
        }},
    ConfigRule{
        "vllm-12", System::vllm, kVllm, refused,
        "PCP takes no pipeline parallelism, encoder-decoder or multimodal model, LoRA, speculative "
        "decoding or full graphs.",
        "Turn what is named off.",
        [](Config c) {
          return clauses(is_cp(c), {{c.pp > 1, "pp > 1"},
                                    {c.has(Feature::encoder_decoder), "encoder-decoder model"},
                                    {c.has(Feature::multimodal), "multimodal model"},
                                    {c.has(Feature::lora), "LoRA"},
                                    {c.speculative_tokens > 0, "speculative decoding"},
                                    {c.has(Feature::full_graphs), "full graphs"}});
        }},
    ConfigRule{"vllm-13", System::vllm, kVllm, refused,
               "PCP with DCP cannot quantise the attention output in the kernel.",
               "Turn the fused output quantisation off.",
               [](Config c) {
                 return when(is_cp(c) && is_dcp(c) && c.has(Feature::fused_output_quant),
                             "fused output quantisation");
               }},
    ConfigRule{
        "vllm-14-window", System::vllm, kBothVllm, refused,
        "Under DCP, KV groups are of full attention or Mamba; sliding windows assert dcp = 1.",
        "Turn DCP off for models with window layers.",
        [](Config c) {
          return when(is_dcp(c) && c.has(Feature::hybrid_groups) && c.has(Feature::sliding_window),
                      "a sliding-window group");
        }},
    ConfigRule{"vllm-14-pcp", System::vllm, kBothVllm, refused, "Several KV groups need pcp = 1.",
               "Turn PCP off for hybrid models.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::hybrid_groups),
                             fmt::format("pcp {}", c.cp));
               }},
    ConfigRule{"vllm-15-experts", System::vllm, kBothVllm, refused,
               "Returning routed experts excludes DCP and PCP.", "Do not ask for routed experts.",
               [](Config c) {
                 return when(is_any_cp(c) && c.has(Feature::routed_experts),
                             "routed experts are returned");
               }},
    ConfigRule{"vllm-15-dspark", System::vllm, kBothVllm, refused,
               "An MLA DSpark draft needs dcp = 1.", "Use another draft.",
               [](Config c) {
                 return when(is_dcp(c) && c.has(Feature::mla) && c.has(Feature::dspark),
                             "DSpark draft");
               }},
    ConfigRule{"vllm-15-non-causal", System::vllm, kVllm, refused,
               "FlashInfer has no prefill without a mask under DCP.", "Use FlashAttention.",
               [](Config c) {
                 return when(is_dcp(c) && c.backend == AttentionBackend::flashinfer &&
                                 c.has(Feature::non_causal_prefill),
                             "non-causal prefill");
               }},
    ConfigRule{
        "vllm-15-fp4", System::vllm, kVllm, refused, "DCP has no FP4 attention output.",
        "Turn the FP4 output off.",
        [](Config c) { return when(is_dcp(c) && c.has(Feature::fp4_output), "FP4 output"); }},
    ConfigRule{"vllm-15-indexer", System::vllm, kVllm, refused,
               "The sparse indexer under DCP needs interleave 1.", "Set the interleave to 1.",
               [](Config c) {
                 return when(is_dcp(c) && c.has(Feature::sparse_attention) && c.interleave_size > 1,
                             fmt::format("interleave {}", c.interleave_size));
               }},
    ConfigRule{"vllm-16", System::vllm, kVllm, changed,
               "On ROCm, DCP and PCP turn full graphs into piecewise ones.",
               "Expect piecewise graphs.",
               [](Config c) {
                 return when(is_any_cp(c) && c.has(Feature::rocm) && c.has(Feature::full_graphs),
                             "graphs become piecewise");
               }},
    ConfigRule{"vllm-17", System::vllm, kBothVllm, refused,
               "The workspace of chunked context is a multiple of dcp.",
               "Round the workspace up to a multiple of lcm(block size, dcp * interleave).",
               [](Config c) {
                 return when(c.workspace_tokens % c.dcp != 0,
                             fmt::format("{} tokens, dcp {}", c.workspace_tokens, c.dcp));
               }},
    ConfigRule{"vllm-18", System::vllm_ascend, kAscend, refused, "PCP needs model runner V2.",
               "Do not choose model runner V1.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::model_runner_v1),
                             "model runner V1 is chosen");
               }},
    ConfigRule{
        "vllm-19", System::vllm_ascend, kAscend, refused,
        "PCP takes no DCP, pipeline parallelism, encoder-decoder or multimodal model, or LoRA.",
        "Turn what is named off.",
        [](Config c) {
          return clauses(is_cp(c) && !c.has(Feature::model_runner_v1),
                         {{is_dcp(c), "dcp > 1"},
                          {c.pp > 1, "pp > 1"},
                          {c.has(Feature::encoder_decoder), "encoder-decoder model"},
                          {c.has(Feature::multimodal), "multimodal model"},
                          {c.has(Feature::lora), "LoRA"}});
        }},
    ConfigRule{"vllm-20", System::vllm_ascend, kAscend, refused,
               "With KV transfer and a sharded cache, the interleave is the block size.",
               "Set the interleave to the block size.",
               [](Config c) {
                 return when(
                     is_any_cp(c) && c.has(Feature::kv_transfer) &&
                         c.interleave_size != c.block_size,
                     fmt::format("interleave {}, block size {}", c.interleave_size, c.block_size));
               }},
    ConfigRule{"vllm-21-tp", System::vllm_ascend, kAscend, refused,
               "DCP of sparse attention spans the TP group, and is not for A5.",
               "Set dcp to tp, on another machine than A5.",
               [](Config c) {
                 return clauses(
                     is_dcp(c) && c.has(Feature::sparse_attention),
                     {{c.dcp != c.tp, "dcp is not tp"}, {c.has(Feature::ascend_a5), "A5"}});
               }},
    ConfigRule{"vllm-21-interleave", System::vllm_ascend, kAscend, changed,
               "Sparse attention with a sharded cache and no replicated indexer sets the "
               "interleave to the "
               "block size.",
               "Set it so, or replicate the indexer.",
               [](Config c) {
                 return when(
                     is_any_cp(c) && c.has(Feature::sparse_attention) &&
                         !c.has(Feature::replicated_indexer) && c.interleave_size != c.block_size,
                     fmt::format("interleave {} becomes {}", c.interleave_size, c.block_size));
               }},
    ConfigRule{"vllm-22", System::vllm_ascend, kAscend, refused,
               "Speculation that changes its length excludes DCP.", "Use a fixed number of tokens.",
               [](Config c) {
                 return when(is_dcp(c) && c.has(Feature::dynamic_speculation),
                             "dynamic speculation");
               }},
    ConfigRule{
        "vllm-23", System::vllm_ascend, kAscend, changed,
        "PCP with sequence parallelism rounds the token budget up to a multiple of tp * pcp.",
        "Choose such a multiple.",
        [](Config c) {
          return when(
              is_cp(c) && c.has(Feature::sequence_parallel) && c.chunk_tokens % (c.tp * c.cp) != 0,
              fmt::format("{} tokens, tp * pcp = {}", c.chunk_tokens, c.tp * c.cp));
        }},
    ConfigRule{"vllm-24", System::vllm_ascend, kAscend, refused,
               "Offloading sparse KV excludes CP, pipeline parallelism and model runner V2.",
               "Turn the offload off.",
               [](Config c) {
                 return clauses(c.has(Feature::sparse_offload),
                                {{is_any_cp(c), "context parallelism"},
                                 {c.pp > 1, "pp > 1"},
                                 {!c.has(Feature::model_runner_v1), "model runner V2"}});
               }},
    ConfigRule{"vllm-25-consumer", System::vllm_ascend, kAscend, refused,
               "PCP is for the producer of a split deployment only.",
               "Set pcp to 1 on the decode workers.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::pd_decode), fmt::format("pcp {}", c.cp));
               }},
    ConfigRule{"vllm-25-graphs", System::vllm_ascend, kAscend, refused,
               "In a split deployment with PCP, full graphs are for decode only.",
               "Choose full graphs for decode only.",
               [](Config c) {
                 return when(is_cp(c) && c.has(Feature::pd_prefill) && c.has(Feature::full_graphs),
                             "full graphs on a prefill worker");
               }},
};

}  // namespace

std::span<const ConfigRule> vllm_rules() noexcept {
  return kRules;
}

}  // namespace cpverify::layout
