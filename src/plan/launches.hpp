#pragma once

#include <cstdint>

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
};

[[nodiscard]] Launch attention_launch(const RankShape& shape, const CommonBuffers& buffers,
                                      const AttentionCall& call);

[[nodiscard]] AttentionNumerics attention_numerics(const RankShape& shape);

}  // namespace cpverify::plan
