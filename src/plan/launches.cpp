#include "plan/launches.hpp"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "plan/rank_builder.hpp"
#include "support/check.hpp"

namespace cpverify::plan {
namespace {

constexpr std::uint32_t kThreads = 128;
/// One warp copies one row.
constexpr std::int64_t kRowsPerCta = 4;
/// Query rows of a CTA: one per warp, or 16 per warp on tensor cores (m16n8k16).
constexpr std::int64_t kQueriesPerCtaFma = 4;
constexpr std::int64_t kQueriesPerCtaMma = 64;
/// The 64-row Q tile and two stages of K and V tiles of 32 keys: (64 + 2 * 2 * 32) * 2 bytes per
/// dimension of a head.
constexpr std::int64_t kSharedBytesPerDim = 384;
/// Keys per online-softmax update of both kernels.
constexpr std::int64_t kKvTile = 32;

std::int32_t to_s32(std::int64_t value) {
  CPVERIFY_CHECK(std::in_range<std::int32_t>(value));
  return static_cast<std::int32_t>(value);
}

std::uint32_t cta_count(std::int64_t rows, std::int64_t rows_per_cta) {
  const std::int64_t count = (rows + rows_per_cta - 1) / rows_per_cta;
  CPVERIFY_CHECK(std::in_range<std::uint32_t>(count));
  return static_cast<std::uint32_t>(count);
}

}  // namespace

Launch gather_rows_launch(const RowGather& gather) {
  Launch launch;
  launch.module = "rows";
  launch.entry = "gather_rows";
  launch.grid = {cta_count(gather.num_rows, kRowsPerCta), 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.arguments = {gather.source,
                      gather.index,
                      gather.target,
                      to_s32(gather.num_rows),
                      to_s32(gather.row_bytes),
                      gather.source_stride_bytes,
                      gather.target_stride_bytes};
  return launch;
}

Launch kv_write_launch(const RankShape& shape, const CommonBuffers& buffers, BufferRef k,
                       BufferRef v, std::int64_t source_stride_bytes) {
  Launch launch;
  launch.module = "kv_write";
  launch.entry = "kv_write";
  launch.grid = {cta_count(shape.padded_rows, kRowsPerCta), 1, 1};
  launch.block = {kThreads, 1, 1};
  launch.arguments = {k,
                      v,
                      BufferRef{buffers.slot_mapping, 0},
                      BufferRef{buffers.k_pool, 0},
                      BufferRef{buffers.v_pool, 0},
                      to_s32(shape.padded_rows),
                      to_s32(shape.bytes(shape.kv_row_elems())),
                      source_stride_bytes};
  return launch;
}

Launch attention_launch(const RankShape& shape, const CommonBuffers& buffers,
                        const AttentionCall& call) {
  Launch launch;
  launch.module = shape.uses_mma ? "attention_mma" : "attention_fma";
  launch.entry = fmt::format("{}_{}_d{}", launch.module, name(shape.dtype), shape.head_dim);
  const std::int64_t queries_per_cta = shape.uses_mma ? kQueriesPerCtaMma : kQueriesPerCtaFma;
  launch.grid = {cta_count(call.max_seqlen_q, queries_per_cta), cta_count(shape.num_heads_q, 1),
                 cta_count(shape.num_seqs, 1)};
  launch.block = {kThreads, 1, 1};
  launch.shared_bytes =
      shape.uses_mma ? static_cast<std::uint32_t>(kSharedBytesPerDim * shape.head_dim) : 0;
  launch.arguments = {call.q,
                      BufferRef{buffers.k_pool, 0},
                      BufferRef{buffers.v_pool, 0},
                      call.cu_seqlens_q,
                      call.kv_lens,
                      BufferRef{buffers.block_table, 0},
                      call.out,
                      call.lse,
                      to_s32(shape.num_seqs),
                      to_s32(shape.max_pages),
                      to_s32(shape.block_size),
                      to_s32(shape.num_heads_q),
                      to_s32(shape.num_heads_kv),
                      shape.softmax_scale_log2};
  return launch;
}

AttentionNumerics attention_numerics(const RankShape& shape) noexcept {
  AttentionNumerics numerics;
  numerics.p_dtype = shape.uses_mma ? shape.dtype : DType::f32;
  numerics.is_tensor_core = shape.uses_mma;
  numerics.kv_tile = kKvTile;
  return numerics;
}

}  // namespace cpverify::plan
