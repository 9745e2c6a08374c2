#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "layout/splits.hpp"

namespace cpverify::layout {

/// Whose configuration it is; cpverify: of this program's own strategies.
enum class System : std::uint8_t { vllm, vllm_ascend, sglang, cpverify };

/// How partial results of a sharded cache are combined. automatic is ag_rs where a rule must know.
enum class Combine : std::uint8_t { automatic, ag_rs, a2a, fi_a2a, direct };

/// The attention kernels that rules name; unknown: the user has not said.
enum class AttentionBackend : std::uint8_t {
  unknown,
  fa2,
  fa3,
  fa4,
  flashinfer,
  flashmla,
  triton,
  trtllm_mha,
  trtllm_mla,
  cutedsl_mla,
  tokenspeed_mla,
  other,
};

/// What of a model, a machine or a set of flags the rules ask for.
enum class Feature : std::uint8_t {
  mla,
  sparse_attention,
  sinks,
  sliding_window,
  alibi,
  soft_cap,
  custom_mask,
  mrope,
  hybrid_groups,
  encoder_decoder,
  multimodal,
  lora,
  draft_model,
  dspark,
  dynamic_speculation,
  deepseek_v4,
  mimo_v2,
  kimi_k3,
  full_graphs,
  piecewise_graphs,
  breakable_graphs,
  rocm,
  ascend_a5,
  model_runner_v1,
  mixed_batches,
  non_causal_prefill,
  sequence_parallel,
  kv_transfer,
  pd_prefill,
  pd_decode,
  prefill_only,
  hierarchical_cache,
  radix_cache,
  unified_pool,
  layer_split,
  sparse_offload,
  replicated_indexer,
  routed_experts,
  elastic_ep,
  aiter_all_reduce,
  replicate_q,
  symmetric_memory,
  fp8_kv,
  fp4_kv,
  mxfp8_kv,
  fused_output_quant,
  fp4_output,
};

inline constexpr std::size_t kNumFeatures = static_cast<std::size_t>(Feature::fp4_output) + 1;

/// What can be decided before a model is loaded. Sizes are at least 1 unless said otherwise.
struct Configuration {
  System system = System::cpverify;
  SplitKind strategy = SplitKind::single;
  /// vLLM: attention TP. SGLang: the attention world, which contains dp and cp.
  std::int64_t tp = 1;
  std::int64_t cp = 1;  ///< Prefill context parallelism: P of vLLM, C of SGLang.
  std::int64_t dcp = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;
  std::int64_t moe_dp = 1;
  std::int64_t ep = 1;
  std::int64_t ulysses = 1;
  std::int64_t heads_q = 32;
  std::int64_t heads_kv = 8;
  std::int64_t head_dim = 128;
  std::int64_t block_size = 16;
  std::int64_t kernel_block_size = 0;  ///< 0: the block size.
  std::int64_t interleave_size = 1;
  std::int64_t deprecated_interleave = 0;  ///< vLLM's older flag; 0: not given.
  std::int64_t workspace_tokens = 0;       ///< Of chunked context; 0: not given.
  std::int64_t chunk_tokens = 0;           ///< Of chunked prefill; 0: not given.
  std::int64_t requests = 1;               ///< In a batch.
  std::int64_t speculative_tokens = 0;
  std::int64_t eagle_topk = 1;
  Combine combine = Combine::automatic;
  AttentionBackend backend = AttentionBackend::unknown;
  bool is_cache_over_cp = false;  ///< Ownership K1: cp x dcp shards; else (K2) dcp shards.
  std::bitset<kNumFeatures> features;

  [[nodiscard]] bool has(Feature feature) const {
    return features.test(static_cast<std::size_t>(feature));
  }
  /// Ranks that share out the heads of one attention layer; 0 when sizes do not divide.
  [[nodiscard]] std::int64_t attention_tp() const noexcept;
  /// Ranks of the whole program.
  [[nodiscard]] std::int64_t world_size() const noexcept;
};

[[nodiscard]] std::string_view name(System system) noexcept;
[[nodiscard]] std::string_view name(Combine combine) noexcept;
[[nodiscard]] std::string_view name(AttentionBackend backend) noexcept;
[[nodiscard]] std::string_view name(Feature feature) noexcept;
[[nodiscard]] const std::vector<Feature>& all_features();
[[nodiscard]] const std::vector<System>& all_systems();
[[nodiscard]] const std::vector<Combine>& all_combines();
[[nodiscard]] const std::vector<AttentionBackend>& all_backends();

}  // namespace cpverify::layout
