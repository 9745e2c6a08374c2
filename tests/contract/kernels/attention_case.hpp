#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "contract/kernels/kernel_bench.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/fault.hpp"

namespace cpverify::tests {

/// Queries [kv_len - query_len, kv_len) of a sequence, over its keys [0, kv_len).
struct SequenceLens {
  std::int32_t query_len = 0;
  std::int32_t kv_len = 0;
};

struct AttentionShape {
  DType dtype = DType::f32;
  std::int32_t head_dim = 32;
  std::int32_t num_heads_q = 1;
  std::int32_t num_heads_kv = 1;
  std::int32_t block_size = 16;
  /// Number of the null block. Above 0 the pools that the kernel is given begin so far below the
  /// memory that there is: only its 64-bit offsets lead back.
  std::int32_t first_block = 0;
  bool is_causal = true;
  float soft_cap = 0.0F;      ///< 0: none.
  bool has_sinks = false;     ///< See sink_of.
  std::int32_t window = 0;    ///< 0: none.
  float query_factor = 1.0F;  ///< On the drawn queries, for scores of another size.
};

/// The sink of a query head: -2, 1.5, 5, -2, ..
[[nodiscard]] float sink_of(std::int32_t head);

/// A sequence with its data: values of the dtype, as f32.
struct SequenceData {
  SequenceLens lens;
  std::vector<float> q;  ///< [query_len, num_heads_q, head_dim]
  std::vector<float> k;  ///< [kv_len, num_heads_kv, head_dim]
  std::vector<float> v;
};

struct AttentionCase {
  AttentionShape shape;
  std::vector<SequenceData> sequences;
};

/// Drawn from a fixed seed; equal lengths of a sequence give equal data.
[[nodiscard]] AttentionCase make_case(const AttentionShape& shape,
                                      const std::vector<SequenceLens>& sequences);

/// The case that computes queries [first, first + count) of a one-sequence case alone, over the
/// keys that the last of them sees.
[[nodiscard]] AttentionCase only_queries(const AttentionCase& whole, std::int32_t first,
                                         std::int32_t count);

struct AttentionResult {
  std::vector<float> out;  ///< [rows, num_heads_q, head_dim]
  std::vector<float> lse;  ///< [rows, num_heads_q]
  std::vector<Fault> faults;
};

/// Lays the case out in pages and runs the entry of `module`, e.g. "kernels/attention_fma". Pages
/// are handed out from block 1 on, in reverse; their tails and the null block stay unwritten.
[[nodiscard]] AttentionResult run_attention(const std::string& module, const AttentionCase& data,
                                            bool is_race_checked = false);

/// Expects every LSE and output element within the judge's bound of a naive fp64 attention.
void expect_correct(const std::string& module, const AttentionCase& data,
                    const AttentionResult& result);

}  // namespace cpverify::tests
