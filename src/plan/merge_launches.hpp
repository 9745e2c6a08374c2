#pragma once

#include <cstdint>

#include "cpverify/dtype.hpp"
#include "cpverify/launch.hpp"

/// Launches of the kernels of kernels/merge.cu. Source of all parameters:
/// kernels/contracts/merge.md.
namespace cpverify::plan {

/// What every merge is of: `num_rows` rows of `num_heads` heads of `head_dim` elements.
struct MergeShape {
  DType dtype = DType::bf16;
  std::int64_t num_rows = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_dim = 0;  ///< A multiple of 8.

  /// Elements of a dense output, and LSEs.
  [[nodiscard]] std::int64_t out_elems() const noexcept { return num_lses() * head_dim; }
  [[nodiscard]] std::int64_t num_lses() const noexcept { return num_rows * num_heads; }
};

enum class LseBase : std::uint8_t { natural, two };

/// N partials of the same rows merged into one.
struct PartialMerge {
  BufferRef partials;  ///< [num_partials][rows, heads, head_dim]
  BufferRef lses;      ///< f32 [num_partials][rows, heads]
  BufferRef out;       ///< [rows, heads, head_dim]
  BufferRef lse;       ///< f32 [rows, heads]
  std::int64_t num_partials = 0;
  std::int64_t partial_stride = 0;  ///< Elements from one partial to the next.
  std::int64_t lse_stride = 0;      ///< LSEs from one partial to the next.
  LseBase base = LseBase::natural;
};

/// Partials one right after the other.
[[nodiscard]] PartialMerge dense_merge(const MergeShape& shape, std::int64_t num_partials);

[[nodiscard]] Launch merge_partials_launch(const MergeShape& shape, const PartialMerge& merge);

/// Row i of the prefix merged with row index[i] of the suffix into row index[i] of `out` and `lse`,
/// which may be the suffix itself. Natural logarithms.
struct StatesMerge {
  BufferRef prefix;      ///< [rows, heads, head_dim]
  BufferRef prefix_lse;  ///< f32 [rows, heads]
  BufferRef suffix;      ///< [suffix rows, heads, head_dim]
  BufferRef suffix_lse;
  BufferRef out;
  BufferRef lse;
  BufferRef index;  ///< i32 [rows]; a negative entry leaves its row out.
  DType prefix_dtype = DType::bf16;
  DType suffix_dtype = DType::bf16;
};

/// `shape.dtype` is the type of `out`. Types: all three the same, or one 16-bit type T as
/// (T, f32, f32), (T, f32, T) or (f32, f32, T) for prefix, suffix and out.
[[nodiscard]] Launch merge_states_launch(const MergeShape& shape, const StatesMerge& merge);

/// One rank's partial scaled by its share in the merged result, for a reduce-scatter over heads.
struct LseScale {
  BufferRef partial;     ///< [rows, heads, head_dim]
  BufferRef lses;        ///< f32 [num_partials][rows, heads], of all ranks.
  BufferRef scaled;      ///< [num_partials][rows, heads / num_partials, head_dim]
  BufferRef lse;         ///< f32 [num_partials][rows, heads / num_partials], merged.
  std::int64_t own = 0;  ///< Which of the LSEs is the partial's.
  std::int64_t num_partials = 0;
  DType scaled_dtype = DType::bf16;  ///< That of the shape, or f32.
};

[[nodiscard]] Launch scale_by_lse_launch(const MergeShape& shape, const LseScale& scale);

/// Elements of one row and head of a packed partial: head_dim of them, then the 32 bits of its LSE.
[[nodiscard]] std::int64_t packed_row_elems(const MergeShape& shape);

/// A partial laid out for an all-to-all over heads.
struct PartialPack {
  BufferRef partial;  ///< [rows, heads, head_dim]
  BufferRef lse;      ///< f32 [rows, heads]
  BufferRef packed;   ///< [num_ranks][rows, heads / num_ranks, packed_row_elems]
  std::int64_t num_ranks = 0;
};

[[nodiscard]] Launch pack_partial_launch(const MergeShape& shape, const PartialPack& pack);

/// What came out of that all-to-all, merged. The shape's heads are those of one rank.
struct PackedMerge {
  BufferRef packed;  ///< [num_partials][rows, heads, packed_row_elems]
  BufferRef out;     ///< [rows, heads, head_dim]
  BufferRef lse;     ///< f32 [rows, heads]
  std::int64_t num_partials = 0;
};

[[nodiscard]] Launch merge_packed_launch(const MergeShape& shape, const PackedMerge& merge);

}  // namespace cpverify::plan
