#include "plan/pcp_head_tail.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/pcp_head_tail.hpp"
#include "layout/topology.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/pcp_head_tail_parts.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;
using Values = std::vector<std::int64_t>;

struct HeadTailBuffers {
  HeadTailRows rows;
  BufferId local_index;
  BufferId restore_index;
  BufferId unpad_index;
  BufferId head_tail_index;
  BufferId full_index;
  BufferId q_local;
  BufferId kv_local;
};

HeadTailShare make_share(const Problem& problem, const Step& step, const RankPlan& rank) {
  HeadTailShare share;
  share.batch = layout::make_head_tail_batch(step, problem.scenario.topology.cp);
  share.rank = CpRank{rank.cp_rank};
  share.shard = rank.kv_shard;
  share.group = rank.tp_rank;
  return share;
}

Values local_positions(const HeadTailShare& share) {
  Values positions;
  for (const layout::PaddedToken& token : layout::padded_tokens(share.batch, share.rank)) {
    const std::int64_t computed = share.batch.requests[token.request].computed;
    positions.push_back(token.is_pad ? 0 : computed + token.offset);
  }
  return positions;
}

HeadTailBuffers add_buffers(RankBuilder& builder, const HeadTailShare& share, const Step& step) {
  const RankShape& shape = builder.shape();
  const std::int64_t rows = share.batch.local_rows();
  HeadTailBuffers buffers;
  buffers.rows.common = builder.common(step);
  buffers.local_index =
      builder.metadata_i32("local_index", layout::padded_local_tokens(share.batch, share.rank));
  builder.metadata("positions", DType::i64, {rows}, local_positions(share));
  builder.metadata_i32("decode_rows", {share.batch.decode_rows()});
  builder.metadata_i32("unpad_mask", layout::unpad_mask(share.batch));
  buffers.restore_index = builder.metadata_i32("restore_index", layout::restore_index(share.batch));
  buffers.unpad_index = builder.metadata_i32(
      "unpad_index", padded(layout::unpad_index(share.batch), shape.padded_rows, kPadRow));
  buffers.head_tail_index =
      builder.metadata_i32("q_head_tail_index", layout::head_tail_index(share.batch));
  buffers.full_index = builder.metadata_i32("q_full_index", layout::full_index(share.batch));
  buffers.q_local = builder.workspace("q_local", {rows, shape.num_heads_q, shape.head_dim});
  buffers.kv_local = builder.workspace("kv_local", {rows, 2, shape.num_heads_kv, shape.head_dim});
  buffers.rows.q = builder.workspace("q_head_tail", {rows, shape.num_heads_q, shape.head_dim});
  buffers.rows.out = builder.attention_output("out_local", half_order_tokens(share));
  buffers.rows.lse = builder.lse_output("lse_local", half_order_tokens(share));
  return buffers;
}

/// Pads become zeros. K and V of a token become one row.
void take_rows(RankBuilder& builder, const HeadTailBuffers& buffers, std::int64_t rows) {
  const RankShape& shape = builder.shape();
  take_local_rows(builder, buffers.rows.common,
                  {buffers.local_index,
                   buffers.q_local,
                   {buffers.kv_local, 0},
                   {buffers.kv_local, shape.kv_row_elems()},
                   rows,
                   rows,
                   2 * shape.kv_row_elems()});
  builder.launch(
      "put decodes, heads and tails together",
      gather_rows_launch(dense_rows(buffers.q_local, buffers.head_tail_index, buffers.rows.q, rows,
                                    shape.bytes(shape.q_row_elems()))));
}

/// K and V rows that are written, and where.
struct CacheWrite {
  std::string name;  ///< Of the slots.
  Values slots;
  BufferRef k;
  BufferRef v;
  std::int64_t row_stride_elems = 0;
};

void write_cache(RankBuilder& builder, const CommonBuffers& common, CacheWrite write,
                 const std::string& label) {
  RankShape rows = builder.shape();
  rows.padded_rows = static_cast<std::int64_t>(write.slots.size());
  CommonBuffers targets = common;
  targets.slot_mapping =
      builder.metadata(write.name, DType::i64, {rows.padded_rows}, std::move(write.slots));
  builder.launch(
      label, kv_write_launch(rows, targets, write.k, write.v, rows.bytes(write.row_stride_elems)));
}

/// A decode is written by the rank whose shard has it, which computed it itself.
void write_decodes(RankBuilder& builder, const HeadTailShare& share, const HeadTailBuffers& buffers,
                   const Values& slots) {
  const Values tokens = layout::padded_local_tokens(share.batch, share.rank);
  const std::int64_t row_elems = builder.shape().kv_row_elems();
  CacheWrite write;
  write.name = "decode_slots";
  for (std::int64_t row = 0; row < share.batch.decode_rows(); ++row) {
    const std::int64_t token = tokens[static_cast<std::size_t>(row)];
    write.slots.push_back(slots.at(static_cast<std::size_t>(token)));
  }
  write.k = {buffers.kv_local, 0};
  write.v = {buffers.kv_local, row_elems};
  write.row_stride_elems = 2 * row_elems;
  write_cache(builder, buffers.rows.common, std::move(write), "write k and v of decodes");
}

/// Gathers K and V of all ranks and puts them in request order, pads included.
RestoredKv restore_kv(RankBuilder& builder, const HeadTailShare& share,
                      const HeadTailBuffers& buffers, const Step& step) {
  const RankShape& shape = builder.shape();
  const std::int64_t local = share.batch.local_rows();
  const std::int64_t rows = share.batch.pcp_size * local;
  const std::int64_t row_elems = shape.kv_row_elems();
  const BufferId gathered =
      builder.workspace("kv_gathered", {rows, 2, shape.num_heads_kv, shape.head_dim});
  const std::vector<std::int64_t> extents{rows, shape.num_heads_kv, shape.head_dim};
  const BufferId k = builder.workspace("k_restored", extents);
  const BufferId v = builder.workspace("v_restored", extents);
  builder.collective(
      "all-gather k and v rows",
      group_collective({CollectiveKind::all_gather, share.group, buffers.kv_local, gathered,
                        local * 2 * row_elems},
                       shape.dtype, fmt::format("k and v rows of step {}", step.index)));
  split_kv_rows(builder, {gathered, buffers.restore_index, k, v, rows}, "request order");
  // The replicas of decodes come first and are not looked at.
  const std::int64_t first = share.batch.padded_decode_rows() * row_elems;
  return {{k, first}, {v, first}};
}

/// Of the prefills' tokens, a rank writes those that its shard has.
void write_prefills(RankBuilder& builder, const HeadTailShare& share,
                    const HeadTailBuffers& buffers, const RestoredKv& kv, const Values& slots) {
  const Values places = layout::unpad_index(share.batch);
  CacheWrite write;
  write.name = "kv_slots";
  write.slots.assign(static_cast<std::size_t>(share.batch.padded_prefill_rows()), kPadRow);
  for (std::size_t token = 0; token < places.size(); ++token) {
    const std::int64_t row = places[token] - share.batch.padded_decode_rows();
    if (row >= 0) write.slots.at(static_cast<std::size_t>(row)) = slots.at(token);
  }
  write.k = kv.k;
  write.v = kv.v;
  write.row_stride_elems = builder.shape().kv_row_elems();
  write_cache(builder, buffers.rows.common, std::move(write), "write k and v of prefills");
}

/// Undoes the order of halves, gathers the rows of all ranks, undoes the split, drops the pads.
void restore_outputs(RankBuilder& builder, const HeadTailShare& share,
                     const HeadTailBuffers& buffers, const Step& step) {
  const RankShape& shape = builder.shape();
  const std::int64_t local = share.batch.local_rows();
  const std::int64_t rows = share.batch.pcp_size * local;
  const std::int64_t row_bytes = shape.bytes(shape.q_row_elems());
  const auto rows_buffer = [&](std::string name, std::int64_t count) {
    return builder.workspace(std::move(name), {count, shape.num_heads_q, shape.head_dim});
  };
  const BufferId ordered = rows_buffer("out_rows", local);
  const BufferId gathered = rows_buffer("out_gathered", rows);
  const BufferId restored = rows_buffer("out_restored", rows);
  builder.launch("put heads and tails of a request together",
                 gather_rows_launch(
                     dense_rows(buffers.rows.out, buffers.full_index, ordered, local, row_bytes)));
  builder.collective(
      "all-gather attention rows",
      group_collective(
          {CollectiveKind::all_gather, share.group, ordered, gathered, local * shape.q_row_elems()},
          shape.dtype, fmt::format("attention rows of step {}", step.index)));
  builder.launch(
      "put attention rows in request order",
      gather_rows_launch(dense_rows(gathered, buffers.restore_index, restored, rows, row_bytes)));
  builder.launch(
      "drop pads and replicas",
      gather_rows_launch(dense_rows(restored, buffers.unpad_index, buffers.rows.common.out,
                                    shape.padded_rows, row_bytes)));
}

void build_rank(const Problem& problem, const Step& step, RankPlan& plan) {
  plan.kv_shard = layout::kv_shard_of(problem.scenario.topology, plan);
  const RankShape shape = make_rank_shape(problem, step, plan);
  RankBuilder builder{plan, shape};
  const HeadTailShare share = make_share(problem, step, plan);
  const HeadTailBuffers buffers = add_buffers(builder, share, step);
  const Values slots = plan.buffers.at(buffers.rows.common.slot_mapping.value()).values;

  take_rows(builder, buffers, share.batch.local_rows());
  builder.fill("zero out_local", buffers.rows.out, 0);
  builder.fill("set lse_local to -inf", buffers.rows.lse, kNegativeInfinityBits);
  if (!share.batch.decodes.empty()) {
    write_decodes(builder, share, buffers, slots);
    attend_decodes(builder, share, buffers.rows, step);
  }
  if (!share.batch.prefills.empty()) {
    const RestoredKv kv = restore_kv(builder, share, buffers, step);
    write_prefills(builder, share, buffers, kv, slots);
    attend_prefills(builder, share, buffers.rows, kv);
  }
  if (has_prefill_context(step)) {
    merge_cached_context(builder, share, buffers.rows, buffers.q_local, step);
  }
  restore_outputs(builder, share, buffers, step);
}

/// A prefill row is its earlier chunks, its own and, in the cache, one partial of each shard.
MergeNumerics merge_numerics(const Problem& problem, const Step& step) {
  const std::int64_t shards = problem.scenario.topology.cp;
  const auto batch = layout::make_head_tail_batch(step, problem.scenario.topology.cp);
  MergeNumerics numerics;
  numerics.partial_dtype = problem.scenario.model.dtype;
  numerics.depth = has_prefill_context(step) ? 2 : 1;
  if (!batch.prefills.empty()) numerics.partials = 2;
  if (has_prefill_context(step)) numerics.partials += shards;
  if (!batch.decodes.empty()) numerics.partials = std::max(numerics.partials, shards);
  return numerics;
}

}  // namespace

void build_pcp_head_tail(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.is_cp_on = topology.cp > 1;
  plan.is_bitwise = !plan.is_cp_on;
  plan.groups = cp_groups(topology);
  build_ranks(problem, step, plan, [&](RankPlan& rank) { build_rank(problem, step, rank); });
  if (plan.is_cp_on) plan.numerics.merge = merge_numerics(problem, step);
}

}  // namespace cpverify::plan
