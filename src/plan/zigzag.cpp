#include "plan/zigzag.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"
#include "layout/zigzag.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;
using layout::Half;

/// Where one rank stands in the split.
struct Share {
  layout::ZigzagBatch batch;
  CpRank rank;
  std::int64_t max_rows = 0;
  std::int64_t physical_rows = 0;
};

/// Metadata of one of the two attention calls.
struct HalfMetadata {
  BufferId cu_seqlens_q;
  BufferId kv_lens;
  std::int64_t max_seqlen_q = 0;
};

struct ZigzagBuffers {
  CommonBuffers common;
  BufferId shard_index;
  BufferId reorder_index;
  HalfMetadata prev;
  HalfMetadata next;
  BufferId q_local;
  BufferId kv_send;
  BufferId kv_gathered;
  BufferId kv_full;
  BufferId out_local;
  BufferId lse_local;
  BufferId out_gathered;
};

std::vector<std::int64_t> all_logical_rows(const layout::ZigzagBatch& batch) {
  std::vector<std::int64_t> rows;
  rows.reserve(batch.cp_size);
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    rows.push_back(layout::logical_rows(batch, CpRank{rank}));
  }
  return rows;
}

HalfMetadata add_half(RankBuilder& builder, const Share& share, Half half) {
  const std::string suffix = half == Half::prev ? "prev" : "next";
  const layout::HalfLengths lengths = layout::half_lengths(share.batch, share.rank, half);
  HalfMetadata metadata;
  metadata.cu_seqlens_q =
      builder.metadata_i32("cu_seqlens_q_" + suffix, prefix_sums(lengths.seqlens_q));
  builder.metadata_i32("cu_seqlens_k_" + suffix, prefix_sums(lengths.seqlens_k));
  metadata.kv_lens = builder.metadata_i32("kv_lens_" + suffix, lengths.seqlens_k);
  for (const std::int64_t seqlen_q : lengths.seqlens_q) {
    metadata.max_seqlen_q = std::max(metadata.max_seqlen_q, seqlen_q);
  }
  return metadata;
}

ZigzagBuffers add_buffers(RankBuilder& builder, const Share& share, const Step& step) {
  const RankShape& shape = builder.shape();
  const std::int64_t gathered = share.batch.cp_size * share.max_rows;
  const std::int64_t heads_kv = shape.num_heads_kv;
  const std::vector<std::int64_t> shard_tokens =
      padded(layout::shard_tokens(share.batch, share.rank), share.physical_rows, kPadRow);

  ZigzagBuffers buffers;
  buffers.common = builder.common(step);
  buffers.shard_index = builder.metadata_i32("shard_index", shard_tokens);
  builder.metadata(
      "positions", DType::i64, {share.physical_rows},
      padded(layout::shard_positions(share.batch, share.rank), share.physical_rows, 0));
  builder.metadata_i32("logical_rows", all_logical_rows(share.batch));
  builder.metadata_i32("max_rows", {share.max_rows});
  builder.metadata_i32("physical_rows", {share.physical_rows});
  builder.metadata_i32("piece_lens", layout::piece_lens(share.batch));
  builder.metadata_i32("piece_order", layout::piece_order(share.batch));
  buffers.reorder_index = builder.metadata_i32(
      "reorder_index", padded(layout::reorder_index(share.batch), shape.padded_rows, kPadRow));
  buffers.prev = add_half(builder, share, Half::prev);
  buffers.next = add_half(builder, share, Half::next);

  buffers.q_local =
      builder.workspace("q_local", {share.physical_rows, shape.num_heads_q, shape.head_dim});
  buffers.kv_send = builder.workspace("kv_send", {share.max_rows, 2, heads_kv, shape.head_dim});
  buffers.kv_gathered = builder.workspace("kv_gathered", {gathered, 2, heads_kv, shape.head_dim});
  buffers.kv_full = builder.workspace("kv_full", {shape.padded_rows, 2, heads_kv, shape.head_dim});
  buffers.out_local = builder.attention_output("out_local", shard_tokens);
  buffers.lse_local = builder.lse_output("lse_local", shard_tokens);
  buffers.out_gathered =
      builder.workspace("out_gathered", {gathered, shape.num_heads_q, shape.head_dim});
  return buffers;
}

/// A gather between buffers whose rows are dense on both sides.
RowGather dense_gather(BufferId source, BufferId index, BufferId target, std::int64_t num_rows,
                       std::int64_t row_bytes) {
  RowGather gather;
  gather.source = {source, 0};
  gather.index = {index, 0};
  gather.target = {target, 0};
  gather.num_rows = num_rows;
  gather.row_bytes = row_bytes;
  gather.source_stride_bytes = row_bytes;
  gather.target_stride_bytes = row_bytes;
  return gather;
}

/// Takes this rank's rows of the step. K and V rows of a token become one row of kv_send.
void shard_inputs(RankBuilder& builder, const ZigzagBuffers& buffers, const Share& share) {
  const RankShape& shape = builder.shape();
  const std::int64_t kv_row_bytes = shape.bytes(shape.kv_row_elems());
  builder.launch(
      "gather the rank's query rows",
      gather_rows_launch(dense_gather(buffers.common.q, buffers.shard_index, buffers.q_local,
                                      share.physical_rows, shape.bytes(shape.q_row_elems()))));
  RowGather gather = dense_gather(buffers.common.k, buffers.shard_index, buffers.kv_send,
                                  share.max_rows, kv_row_bytes);
  gather.target_stride_bytes = 2 * kv_row_bytes;
  builder.launch("gather the rank's k rows", gather_rows_launch(gather));
  gather.source = {buffers.common.v, 0};
  gather.target = {buffers.kv_send, shape.kv_row_elems()};
  builder.launch("gather the rank's v rows", gather_rows_launch(gather));
}

/// Brings the K and V rows of all ranks into the step's order and writes them to the pools.
void materialise_kv(RankBuilder& builder, const ZigzagBuffers& buffers, const Share& share,
                    Collective collective) {
  const RankShape& shape = builder.shape();
  const std::int64_t row_elems = 2 * shape.kv_row_elems();
  collective.send = {buffers.kv_send, 0};
  collective.recv = {buffers.kv_gathered, 0};
  collective.count = share.max_rows * row_elems;
  builder.collective("all-gather k and v rows", std::move(collective));
  builder.launch(
      "reorder k and v rows",
      gather_rows_launch(dense_gather(buffers.kv_gathered, buffers.reorder_index, buffers.kv_full,
                                      shape.padded_rows, shape.bytes(row_elems))));
  builder.launch("write k and v to the pools",
                 kv_write_launch(shape, buffers.common, {buffers.kv_full, 0},
                                 {buffers.kv_full, shape.kv_row_elems()}, shape.bytes(row_elems)));
}

void attend(RankBuilder& builder, const ZigzagBuffers& buffers, const Share& share, Half half) {
  const RankShape& shape = builder.shape();
  const HalfMetadata& metadata = half == Half::prev ? buffers.prev : buffers.next;
  const std::int64_t first_row =
      half == Half::prev ? 0 : layout::prev_rows(share.batch, share.rank);
  AttentionCall call;
  call.q = {buffers.q_local, first_row * shape.q_row_elems()};
  call.cu_seqlens_q = {metadata.cu_seqlens_q, 0};
  call.kv_lens = {metadata.kv_lens, 0};
  call.out = {buffers.out_local, first_row * shape.q_row_elems()};
  call.lse = {buffers.lse_local, first_row * shape.num_heads_q};
  call.max_seqlen_q = metadata.max_seqlen_q;
  builder.launch(
      half == Half::prev ? "attention of the early blocks" : "attention of the late blocks",
      attention_launch(shape, buffers.common, call));
}

void gather_outputs(RankBuilder& builder, const ZigzagBuffers& buffers, const Share& share,
                    Collective collective) {
  const RankShape& shape = builder.shape();
  collective.send = {buffers.out_local, 0};
  collective.recv = {buffers.out_gathered, 0};
  collective.count = share.max_rows * shape.q_row_elems();
  builder.collective("all-gather attention rows", std::move(collective));
  builder.launch("reorder attention rows",
                 gather_rows_launch(dense_gather(buffers.out_gathered, buffers.reorder_index,
                                                 buffers.common.out, shape.padded_rows,
                                                 shape.bytes(shape.q_row_elems()))));
}

Collective all_gather(const RankShape& shape, std::uint32_t group, std::string meaning) {
  Collective collective;
  collective.kind = CollectiveKind::all_gather;
  collective.group = group;
  collective.dtype = shape.dtype;
  collective.meaning = std::move(meaning);
  return collective;
}

/// Adds to a rank its part of a step that is split. Its CP group has the number of its tp rank.
void build_split_step(const Problem& problem, const Step& step, RankPlan& rank) {
  const std::uint32_t group = rank.tp_rank;
  const RankShape shape = make_rank_shape(problem, step, rank);
  RankBuilder builder{rank, shape};
  Share share;
  share.batch = layout::make_zigzag_batch(step, problem.scenario.topology.cp);
  share.rank = CpRank{rank.cp_rank};
  share.max_rows = layout::max_rows(share.batch);
  share.physical_rows = layout::physical_rows(share.batch);

  const ZigzagBuffers buffers = add_buffers(builder, share, step);
  shard_inputs(builder, buffers, share);
  materialise_kv(builder, buffers, share,
                 all_gather(shape, group, fmt::format("k and v rows of step {}", step.index)));
  builder.fill("zero out_local", buffers.out_local, 0);
  builder.fill("set lse_local to -inf", buffers.lse_local, kNegativeInfinityBits);
  attend(builder, buffers, share, Half::prev);
  attend(builder, buffers, share, Half::next);
  gather_outputs(builder, buffers, share,
                 all_gather(shape, group, fmt::format("attention rows of step {}", step.index)));
}

}  // namespace

void build_zigzag(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.is_cp_on = layout::is_zigzag_applicable(step, topology.cp);
  // Both calls walk keys in tiles from key 0, so a row's bits do not depend on the split.
  plan.is_bitwise = true;
  plan.groups = cp_groups(topology);
  for (RankPlan& rank : plan.ranks) {
    if (plan.is_cp_on) {
      build_split_step(problem, step, rank);
    } else {
      build_whole_step(problem, step, rank);
    }
  }
}

}  // namespace cpverify::plan
