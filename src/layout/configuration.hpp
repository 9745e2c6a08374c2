#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cpverify/system.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {

/// How partial results of a sharded cache are combined. automatic is ag_rs where a rule must know.
enum class Combine : std::uint8_t { automatic, ag_rs, a2a, fi_a2a, direct };

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

[[nodiscard]] std::string_view name(Combine combine) noexcept;
[[nodiscard]] const std::vector<Combine>& all_combines();

}  // namespace cpverify::layout
