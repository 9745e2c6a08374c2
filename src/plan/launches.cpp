#include "plan/launches.hpp"

#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "plan/rank_builder.hpp"
#include "support/check.hpp"

namespace cpverify::plan {
namespace {

constexpr std::uint32_t kThreads = 128;
/// One warp copies one row.
constexpr std::int64_t kRowsPerCta = 4;

/// What a launch and a bound have to know of an attention kernel. Source: kernels/contracts.
struct KernelFacts {
  std::string_view module;
  std::int64_t queries_per_cta = 0;
  std::uint32_t threads = 0;
  std::int64_t shared_bytes_per_dim = 0;  ///< Dynamic shared memory per dimension of a head.
  std::int64_t kv_tile = 0;               ///< Keys per online-softmax update.
  bool is_tensor_core = false;            ///< And P is rounded to the model's type.
};

KernelFacts facts_of(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::automatic:
      break;
    case AttentionKernel::fma:
      // One query per warp.
      return {"attention_fma", 4, kThreads, 0, 32, false};
    case AttentionKernel::mma:
      // 16 queries per warp (m16n8k16). The 64-row Q tile and two stages of K and V tiles of 32
      // keys: (64 + 2 * 2 * 32) * 2 bytes.
      return {"attention_mma", 64, kThreads, 384, 32, true};
    case AttentionKernel::hopper:
      // Two warpgroups of 64 queries, one that copies. Two Q tiles and two stages of K and V tiles
      // of 64 keys: (2 * 64 + 2 * 2 * 64) * 2 bytes.
      return {"attention_hopper", 128, 384, 768, 64, true};
  }
  CPVERIFY_CHECK(false);
  return {};
}

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
  const KernelFacts kernel = facts_of(shape.kernel);
  launch.module = kernel.module;
  launch.entry = fmt::format("{}_{}_d{}", launch.module, name(shape.dtype), shape.head_dim);
  const std::int64_t num_seqs = call.num_seqs.value_or(shape.num_seqs);
  const std::int64_t num_heads_q = call.num_heads_q.value_or(shape.num_heads_q);
  const std::int64_t num_heads_kv = call.num_heads_kv.value_or(shape.num_heads_kv);
  CPVERIFY_CHECK(num_heads_q % num_heads_kv == 0);
  // The last keys of a call without a mask are not the last ones before each query.
  CPVERIFY_CHECK(shape.window == 0 || call.is_causal);
  launch.grid = {cta_count(call.max_seqlen_q, kernel.queries_per_cta), cta_count(num_heads_q, 1),
                 cta_count(num_seqs, 1)};
  launch.block = {kernel.threads, 1, 1};
  launch.shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes_per_dim * shape.head_dim);
  launch.arguments = {call.q,
                      call.k_pool.value_or(BufferRef{buffers.k_pool, 0}),
                      call.v_pool.value_or(BufferRef{buffers.v_pool, 0}),
                      call.cu_seqlens_q,
                      call.kv_lens,
                      call.block_table.value_or(BufferRef{buffers.block_table, 0}),
                      call.out,
                      call.lse,
                      to_s32(num_seqs),
                      to_s32(call.max_pages.value_or(shape.max_pages)),
                      to_s32(call.block_size.value_or(shape.block_size)),
                      to_s32(num_heads_q),
                      to_s32(num_heads_kv),
                      shape.softmax_scale_log2,
                      std::int32_t{call.is_causal ? 1 : 0},
                      shape.soft_cap_scale,
                      std::int64_t{0},  // No sinks.
                      to_s32(shape.window)};
  if (call.sinks) launch.arguments.at(AttentionArguments::kSinks) = *call.sinks;
  return launch;
}

AttentionNumerics attention_numerics(const RankShape& shape) {
  const KernelFacts kernel = facts_of(shape.kernel);
  AttentionNumerics numerics;
  numerics.p_dtype = kernel.is_tensor_core ? shape.dtype : DType::f32;
  numerics.is_tensor_core = kernel.is_tensor_core;
  numerics.kv_tile = kernel.kv_tile;
  return numerics;
}

}  // namespace cpverify::plan
