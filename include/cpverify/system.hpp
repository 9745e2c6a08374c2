#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

/// The inference systems whose configuration rules are known, and the words that those rules use.
namespace cpverify {

/// Whose configuration it is; cpverify: of this program's own strategies.
enum class System : std::uint8_t { vllm, vllm_ascend, sglang, cpverify };

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

/// What a scenario says about the system that it stands for, beyond model, topology and cache.
struct SystemSpec {
  System system = System::cpverify;
  AttentionBackend backend = AttentionBackend::unknown;
  std::vector<Feature> features;
};

[[nodiscard]] std::string_view name(System system) noexcept;
[[nodiscard]] std::string_view name(AttentionBackend backend) noexcept;
[[nodiscard]] std::string_view name(Feature feature) noexcept;

/// All enumerators, in their order.
[[nodiscard]] const std::vector<System>& all_systems();
[[nodiscard]] const std::vector<AttentionBackend>& all_backends();
[[nodiscard]] const std::vector<Feature>& all_features();

}  // namespace cpverify
