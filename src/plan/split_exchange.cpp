#include "plan/split_exchange.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

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

Collective all_gather(const RankShape& shape, const SplitRows& rows, std::string_view what) {
  Collective collective;
  collective.kind = CollectiveKind::all_gather;
  collective.group = rows.group;
  collective.dtype = shape.dtype;
  collective.meaning = fmt::format("{} of step {}", what, rows.step);
  return collective;
}

/// Takes this rank's rows of the step. K and V rows of a token become one row of kv_send.
void shard_inputs(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers) {
  const RankShape& shape = builder.shape();
  const std::int64_t kv_row_bytes = shape.bytes(shape.kv_row_elems());
  builder.launch(
      "gather the rank's query rows",
      gather_rows_launch(dense_gather(buffers.common.q, buffers.shard_index, buffers.q_local,
                                      rows.physical_rows, shape.bytes(shape.q_row_elems()))));
  RowGather gather = dense_gather(buffers.common.k, buffers.shard_index, buffers.kv_send,
                                  rows.gather_rows, kv_row_bytes);
  gather.target_stride_bytes = 2 * kv_row_bytes;
  builder.launch("gather the rank's k rows", gather_rows_launch(gather));
  gather.source = {buffers.common.v, 0};
  gather.target = {buffers.kv_send, shape.kv_row_elems()};
  builder.launch("gather the rank's v rows", gather_rows_launch(gather));
}

/// Brings the K and V rows of all ranks into the step's order and writes them to the pools.
void materialise_kv(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers) {
  const RankShape& shape = builder.shape();
  const std::int64_t row_elems = 2 * shape.kv_row_elems();
  Collective collective = all_gather(shape, rows, "k and v rows");
  collective.send = {buffers.kv_send, 0};
  collective.recv = {buffers.kv_gathered, 0};
  collective.count = rows.gather_rows * row_elems;
  builder.collective("all-gather k and v rows", std::move(collective));
  builder.launch(
      "reorder k and v rows",
      gather_rows_launch(dense_gather(buffers.kv_gathered, buffers.reorder_index, buffers.kv_full,
                                      shape.padded_rows, shape.bytes(row_elems))));
  builder.launch("write k and v to the pools",
                 kv_write_launch(shape, buffers.common, {buffers.kv_full, 0},
                                 {buffers.kv_full, shape.kv_row_elems()}, shape.bytes(row_elems)));
}

}  // namespace

void add_split_metadata(RankBuilder& builder, const SplitRows& rows, SplitBuffers& buffers) {
  const std::int64_t physical = rows.physical_rows;
  buffers.shard_index = builder.metadata_i32("shard_index", padded(rows.tokens, physical, kPadRow));
  builder.metadata("positions", DType::i64, {physical}, padded(rows.positions, physical, 0));
  buffers.reorder_index = builder.metadata_i32(
      "reorder_index", padded(rows.reorder_index, builder.shape().padded_rows, kPadRow));
}

void add_split_workspaces(RankBuilder& builder, const SplitRows& rows, SplitBuffers& buffers) {
  const RankShape& shape = builder.shape();
  const std::int64_t gathered = rows.cp_size * rows.gather_rows;
  const std::int64_t heads_kv = shape.num_heads_kv;
  const std::vector<std::int64_t> tokens = padded(rows.tokens, rows.physical_rows, kPadRow);
  buffers.q_local =
      builder.workspace("q_local", {rows.physical_rows, shape.num_heads_q, shape.head_dim});
  buffers.kv_send = builder.workspace("kv_send", {rows.gather_rows, 2, heads_kv, shape.head_dim});
  buffers.kv_gathered = builder.workspace("kv_gathered", {gathered, 2, heads_kv, shape.head_dim});
  buffers.kv_full = builder.workspace("kv_full", {shape.padded_rows, 2, heads_kv, shape.head_dim});
  buffers.out_local = builder.attention_output("out_local", tokens);
  buffers.lse_local = builder.lse_output("lse_local", tokens);
  buffers.out_gathered =
      builder.workspace("out_gathered", {gathered, shape.num_heads_q, shape.head_dim});
}

void prepare_split(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers) {
  shard_inputs(builder, rows, buffers);
  materialise_kv(builder, rows, buffers);
  builder.fill("zero out_local", buffers.out_local, 0);
  builder.fill("set lse_local to -inf", buffers.lse_local, kNegativeInfinityBits);
}

void finish_split(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers) {
  const RankShape& shape = builder.shape();
  Collective collective = all_gather(shape, rows, "attention rows");
  collective.send = {buffers.out_local, 0};
  collective.recv = {buffers.out_gathered, 0};
  collective.count = rows.gather_rows * shape.q_row_elems();
  builder.collective("all-gather attention rows", std::move(collective));
  builder.launch("reorder attention rows",
                 gather_rows_launch(dense_gather(buffers.out_gathered, buffers.reorder_index,
                                                 buffers.common.out, shape.padded_rows,
                                                 shape.bytes(shape.q_row_elems()))));
}

}  // namespace cpverify::plan
