#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "plan/rank_builder.hpp"

/// Launches of the kernels in kernels/, with parameters in the order of docs/plan.md.
namespace cpverify::plan {

/// Rows of one buffer copied to rows of another: target[i] = source[index[i]].
struct RowGather {
  BufferRef source;
  BufferRef index;  ///< i32 [num_rows].
  BufferRef target;
  std::int64_t num_rows = 0;
  std::int64_t row_bytes = 0;
  std::int64_t source_stride_bytes = 0;
  std::int64_t target_stride_bytes = 0;
};

[[nodiscard]] Launch gather_rows_launch(const RowGather& gather);

/// K and V rows of the step written to the pools at `slot_mapping`, one row per padded token.
[[nodiscard]] Launch kv_write_launch(const RankShape& shape, const CommonBuffers& buffers,
                                     BufferRef k, BufferRef v, std::int64_t source_stride_bytes);

/// One call of the paged attention kernel. Query rows, out and lse start at their offsets.
struct AttentionCall {
  BufferRef q;
  BufferRef cu_seqlens_q;
  BufferRef kv_lens;
  BufferRef out;
  BufferRef lse;
  std::int64_t max_seqlen_q = 0;  ///< Largest of the call's own query lengths.
  bool is_causal = true;          ///< False: every query sees all keys of its sequence.
  /// f32 [num_heads_q]; of one call of those that a row is merged from, or it counts twice.
  std::optional<BufferRef> sinks;

  // What is not set is the rank's own: the pools and block table of its cache, and its shape. Dense
  // K and V are pages too, e.g. of one token each, with a table that counts them.
  std::optional<BufferRef> k_pool;
  std::optional<BufferRef> v_pool;
  std::optional<BufferRef> block_table;  ///< i32 [num_seqs, max_pages].
  std::optional<std::int64_t> num_seqs;
  std::optional<std::int64_t> max_pages;
  std::optional<std::int64_t> block_size;   ///< Tokens of a page.
  std::optional<std::int64_t> num_heads_q;  ///< A multiple of num_heads_kv.
  std::optional<std::int64_t> num_heads_kv;
};

/// Where what the features of a model need stands among the arguments.
struct AttentionArguments {
  static constexpr std::size_t kSoftmaxScaleLog2 = 13;
  static constexpr std::size_t kSoftCapScale = 15;
  static constexpr std::size_t kSinks = 16;
  static constexpr std::size_t kWindow = 17;
};

/// A call without a causal mask sees all keys, and a model with a window has none of those.
[[nodiscard]] Launch attention_launch(const RankShape& shape, const CommonBuffers& buffers,
                                      const AttentionCall& call);

[[nodiscard]] AttentionNumerics attention_numerics(const RankShape& shape);

}  // namespace cpverify::plan
