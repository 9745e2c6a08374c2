#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "cpverify/system.hpp"

namespace cpverify {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 4> kSystemNames{"vllm", "vllm-ascend", "sglang", "cpverify"};
constexpr std::array<std::string_view, 12> kBackendNames{
    "unknown", "fa2",        "fa3",        "fa4",         "flashinfer",     "flashmla",
    "triton",  "trtllm_mha", "trtllm_mla", "cutedsl_mla", "tokenspeed_mla", "other"};
constexpr std::array<std::string_view, kNumFeatures> kFeatureNames{"mla",
                                                                   "sparse_attention",
                                                                   "sinks",
                                                                   "sliding_window",
                                                                   "alibi",
                                                                   "soft_cap",
                                                                   "custom_mask",
                                                                   "mrope",
                                                                   "hybrid_groups",
                                                                   "encoder_decoder",
                                                                   "multimodal",
                                                                   "lora",
                                                                   "draft_model",
                                                                   "dspark",
                                                                   "dynamic_speculation",
                                                                   "deepseek_v4",
                                                                   "mimo_v2",
                                                                   "kimi_k3",
                                                                   "full_graphs",
                                                                   "piecewise_graphs",
                                                                   "breakable_graphs",
                                                                   "rocm",
                                                                   "ascend_a5",
                                                                   "model_runner_v1",
                                                                   "mixed_batches",
                                                                   "non_causal_prefill",
                                                                   "sequence_parallel",
                                                                   "kv_transfer",
                                                                   "pd_prefill",
                                                                   "pd_decode",
                                                                   "prefill_only",
                                                                   "hierarchical_cache",
                                                                   "radix_cache",
                                                                   "unified_pool",
                                                                   "layer_split",
                                                                   "sparse_offload",
                                                                   "replicated_indexer",
                                                                   "routed_experts",
                                                                   "elastic_ep",
                                                                   "aiter_all_reduce",
                                                                   "replicate_q",
                                                                   "symmetric_memory",
                                                                   "fp8_kv",
                                                                   "fp4_kv",
                                                                   "mxfp8_kv",
                                                                   "fused_output_quant",
                                                                   "fp4_output"};

/// The first `count` enumerators.
template <class Enum>
std::vector<Enum> enumerators(std::size_t count) {
  std::vector<Enum> all;
  all.reserve(count);
  for (std::size_t i = 0; i < count; ++i) all.push_back(static_cast<Enum>(i));
  return all;
}

}  // namespace

std::string_view name(System system) noexcept {
  return kSystemNames[static_cast<std::size_t>(system)];
}
std::string_view name(AttentionBackend backend) noexcept {
  return kBackendNames[static_cast<std::size_t>(backend)];
}
std::string_view name(Feature feature) noexcept {
  return kFeatureNames[static_cast<std::size_t>(feature)];
}

const std::vector<System>& all_systems() {
  static const auto all = enumerators<System>(kSystemNames.size());
  return all;
}
const std::vector<AttentionBackend>& all_backends() {
  static const auto all = enumerators<AttentionBackend>(kBackendNames.size());
  return all;
}
const std::vector<Feature>& all_features() {
  static const auto all = enumerators<Feature>(kFeatureNames.size());
  return all;
}

}  // namespace cpverify
