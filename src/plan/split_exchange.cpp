#include "plan/split_exchange.hpp"

#include <cstdint>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

/// K and V rows of a token become one row of kv_send.
void shard_inputs(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers) {
  const std::int64_t row_elems = builder.shape().kv_row_elems();
  take_local_rows(builder, buffers.common,
                  {buffers.shard_index,
                   buffers.q_local,
                   {buffers.kv_send, 0},
                   {buffers.kv_send, row_elems},
                   rows.physical_rows,
                   rows.gather_rows,
                   2 * row_elems});
}

/// Brings the K and V rows of all ranks into the step's order and writes them to the pools.
void materialise_kv(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers) {
  const RankShape& shape = builder.shape();
  const std::int64_t row_elems = 2 * shape.kv_row_elems();
  builder.collective(
      "all-gather k and v rows",
      group_collective({CollectiveKind::all_gather, rows.group, buffers.kv_send,
                        buffers.kv_gathered, rows.gather_rows * row_elems},
                       shape.dtype, fmt::format("k and v rows of step {}", rows.step)));
  builder.launch(
      "reorder k and v rows",
      gather_rows_launch(dense_rows(buffers.kv_gathered, buffers.reorder_index, buffers.kv_full,
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
  gather_attention_rows(builder, {rows.group, rows.step, rows.gather_rows, buffers.out_local,
                                  buffers.out_gathered, buffers.reorder_index, buffers.common.out});
}

}  // namespace cpverify::plan
