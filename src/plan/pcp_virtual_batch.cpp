#include "plan/pcp_virtual_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/pcp_virtual_batch.hpp"
#include "layout/topology.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;
using Values = std::vector<std::int64_t>;

/// Where one rank stands in the split.
struct VirtualShare {
  layout::VirtualBatch batch;
  CpRank rank;
  std::int64_t max_rows = 0;
  std::int64_t decode_rows = 0;

  [[nodiscard]] auto size() const { return static_cast<std::int64_t>(batch.rows.size()); }
  /// Rows that each rank sends of its K and V.
  [[nodiscard]] std::int64_t prefill_rows() const { return max_rows - decode_rows; }
  /// Rows of K and V that a rank writes to its pools.
  [[nodiscard]] std::int64_t written_rows() const { return decode_rows + size() * prefill_rows(); }
};

/// The rank's rows as the attention kernel takes them.
struct RowMetadata {
  BufferId cu_seqlens_q;
  BufferId kv_lens;
  BufferId block_table;
  std::int64_t num_seqs = 0;
  std::int64_t max_seqlen_q = 0;
};

struct VirtualBuffers {
  CommonBuffers common;
  BufferId local_index;
  BufferId hidden_restore;
  BufferId kv_slots;
  RowMetadata rows;
  BufferId q_local;
  BufferId kv_local;
  BufferId kv_written;
  BufferId out_local;
  BufferId lse_local;
  BufferId out_gathered;
};

/// Slot of every gathered row, kPadRow where nothing is written.
Values gathered_slots(const layout::VirtualBatch& batch, const Values& step_slots) {
  const Values index = layout::gather_index(batch);
  const Values mask = layout::kv_write_mask(batch);
  Values slots;
  for (std::size_t row = 0; row < index.size(); ++row) {
    slots.push_back(mask[row] == 1 ? step_slots.at(static_cast<std::size_t>(index[row])) : kPadRow);
  }
  return slots;
}

/// Of the rows in the order of the write: rank 0's decodes, then the prefills of all ranks.
Values written_slots(const VirtualShare& share, const Values& gathered) {
  Values slots{gathered.begin(), gathered.begin() + share.decode_rows};
  for (std::int64_t rank = 0; rank < share.size(); ++rank) {
    const auto first = gathered.begin() + rank * share.max_rows;
    slots.insert(slots.end(), first + share.decode_rows, first + share.max_rows);
  }
  return slots;
}

RowMetadata add_rows(RankBuilder& builder, const VirtualShare& share, const Step& step) {
  const std::int64_t width = builder.shape().max_pages;
  Values lengths;
  Values starts;
  Values kv_lens;
  Values table;
  for (const layout::VirtualRow& row : share.batch.rows.at(share.rank.value())) {
    const Values pages = block_table_line(step.rows.at(row.request), width);
    lengths.push_back(row.length);
    starts.push_back(share.batch.start(row));
    kv_lens.push_back(starts.back() + row.length);
    table.insert(table.end(), pages.begin(), pages.end());
  }
  if (lengths.empty()) {
    // A rank with nothing to compute has one row of no tokens.
    for (Values* values : {&lengths, &starts, &kv_lens}) values->push_back(0);
    table = padded({}, width, 0);
  }
  RowMetadata rows;
  rows.num_seqs = static_cast<std::int64_t>(lengths.size());
  rows.max_seqlen_q = *std::max_element(lengths.begin(), lengths.end());
  rows.cu_seqlens_q = builder.metadata_i32("row_cu_seqlens_q", prefix_sums(lengths));
  builder.metadata_i32("row_starts", std::move(starts));
  rows.kv_lens = builder.metadata_i32("row_kv_lens", std::move(kv_lens));
  rows.block_table =
      builder.metadata("row_block_table", DType::i32, {rows.num_seqs, width}, std::move(table));
  return rows;
}

void add_metadata(RankBuilder& builder, VirtualBuffers& buffers, const VirtualShare& share,
                  const Step& step) {
  const Values tokens = layout::local_tokens(share.batch, share.rank);
  Values counts;
  for (std::uint32_t rank = 0; rank < share.batch.rows.size(); ++rank) {
    counts.push_back(layout::local_rows(share.batch, CpRank{rank}));
  }
  const Values slots = gathered_slots(share.batch, step_slots(step));
  const auto gathered = static_cast<std::int64_t>(slots.size());

  buffers.local_index =
      builder.metadata_i32("local_index", padded(tokens, share.max_rows, kPadRow));
  builder.metadata("positions", DType::i64, {share.max_rows},
                   padded(layout::local_positions(share.batch, share.rank), share.max_rows, 0));
  builder.metadata_i32("rank_rows", std::move(counts));
  builder.metadata_i32("max_rows", {share.max_rows});
  builder.metadata_i32("decode_rows", {share.decode_rows});
  buffers.hidden_restore = builder.metadata_i32(
      "hidden_restore",
      padded(layout::hidden_restore(share.batch), builder.shape().padded_rows, kPadRow));
  builder.metadata_i32("gather_index", layout::gather_index(share.batch));
  builder.metadata_i32("kv_write_mask", layout::kv_write_mask(share.batch));
  builder.metadata("gathered_slots", DType::i64, {gathered}, slots);
  buffers.kv_slots =
      builder.metadata("kv_slots", DType::i64, {share.written_rows()}, written_slots(share, slots));
  buffers.rows = add_rows(builder, share, step);
}

VirtualBuffers add_buffers(RankBuilder& builder, const VirtualShare& share, const Step& step) {
  const RankShape& shape = builder.shape();
  VirtualBuffers buffers;
  buffers.common = builder.common(step);
  add_metadata(builder, buffers, share, step);
  const Values claims =
      padded(layout::local_tokens(share.batch, share.rank), share.max_rows, kPadRow);
  const std::int64_t heads_kv = shape.num_heads_kv;
  buffers.q_local =
      builder.workspace("q_local", {share.max_rows, shape.num_heads_q, shape.head_dim});
  buffers.kv_local = builder.workspace("kv_local", {share.max_rows, 2, heads_kv, shape.head_dim});
  buffers.kv_written =
      builder.workspace("kv_written", {share.written_rows(), 2, heads_kv, shape.head_dim});
  buffers.out_local = builder.attention_output("out_local", claims);
  buffers.lse_local = builder.lse_output("lse_local", claims);
  buffers.out_gathered = builder.workspace(
      "out_gathered", {share.size() * share.max_rows, shape.num_heads_q, shape.head_dim});
  return buffers;
}

/// K and V rows of a token become one row of kv_local.
void take_rows(RankBuilder& builder, const VirtualBuffers& buffers, const VirtualShare& share) {
  const std::int64_t row_elems = builder.shape().kv_row_elems();
  take_local_rows(builder, buffers.common,
                  {buffers.local_index,
                   buffers.q_local,
                   {buffers.kv_local, 0},
                   {buffers.kv_local, row_elems},
                   share.max_rows,
                   share.max_rows,
                   2 * row_elems});
}

/// Writes the rank's own decodes and the gathered prefills of all ranks, pads included.
void write_cache(RankBuilder& builder, const VirtualBuffers& buffers, const VirtualShare& share,
                 Collective collective) {
  RankShape rows = builder.shape();
  const std::int64_t row_elems = 2 * rows.kv_row_elems();
  const std::int64_t decode_elems = share.decode_rows * row_elems;
  builder.copy("copy the rank's decode k and v rows",
               {{buffers.kv_local, 0}, {buffers.kv_written, 0}, rows.bytes(decode_elems)});
  collective.send = {buffers.kv_local, decode_elems};
  collective.recv = {buffers.kv_written, decode_elems};
  collective.count = share.prefill_rows() * row_elems;
  builder.collective("all-gather prefill k and v rows", std::move(collective));
  rows.padded_rows = share.written_rows();
  CommonBuffers targets = buffers.common;
  targets.slot_mapping = buffers.kv_slots;
  builder.launch("write k and v to the pools",
                 kv_write_launch(rows, targets, {buffers.kv_written, 0},
                                 {buffers.kv_written, rows.kv_row_elems()}, rows.bytes(row_elems)));
}

void attend(RankBuilder& builder, const VirtualBuffers& buffers) {
  AttentionCall call;
  call.q = {buffers.q_local, 0};
  call.cu_seqlens_q = {buffers.rows.cu_seqlens_q, 0};
  call.kv_lens = {buffers.rows.kv_lens, 0};
  call.block_table = BufferRef{buffers.rows.block_table, 0};
  call.out = {buffers.out_local, 0};
  call.lse = {buffers.lse_local, 0};
  call.max_seqlen_q = buffers.rows.max_seqlen_q;
  call.num_seqs = buffers.rows.num_seqs;
  call.sinks = builder.sinks();
  builder.launch("attention of the rank's rows",
                 attention_launch(builder.shape(), buffers.common, call));
}

void restore_outputs(RankBuilder& builder, const VirtualBuffers& buffers, const VirtualShare& share,
                     Collective collective) {
  const RankShape& shape = builder.shape();
  collective.send = {buffers.out_local, 0};
  collective.recv = {buffers.out_gathered, 0};
  collective.count = share.max_rows * shape.q_row_elems();
  builder.collective("all-gather attention rows", std::move(collective));
  builder.launch("restore the order of attention rows",
                 gather_rows_launch(dense_rows(buffers.out_gathered, buffers.hidden_restore,
                                               buffers.common.out, shape.padded_rows,
                                               shape.bytes(shape.q_row_elems()))));
}

/// Adds to a rank its part of a step that is split. Its CP group has the number of its tp rank.
void build_rank(const Problem& problem, const Step& step, RankPlan& rank) {
  const RankShape shape = make_rank_shape(problem, step, rank);
  RankBuilder builder{rank, shape};
  VirtualShare share;
  share.batch = layout::make_virtual_batch(step, problem.scenario.topology.cp);
  share.rank = CpRank{rank.cp_rank};
  share.max_rows = layout::max_rows(share.batch);
  share.decode_rows = layout::decode_rows(share.batch);
  Collective gather;
  gather.kind = CollectiveKind::all_gather;
  gather.group = rank.tp_rank;
  gather.dtype = shape.dtype;

  const VirtualBuffers buffers = add_buffers(builder, share, step);
  take_rows(builder, buffers, share);
  gather.meaning = fmt::format("prefill k and v rows of step {}", step.index);
  write_cache(builder, buffers, share, gather);
  builder.fill("zero out_local", buffers.out_local, 0);
  builder.fill("set lse_local to -inf", buffers.lse_local, kNegativeInfinityBits);
  attend(builder, buffers);
  gather.meaning = fmt::format("attention rows of step {}", step.index);
  restore_outputs(builder, buffers, share, gather);
}

}  // namespace

void build_pcp_virtual_batch(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.is_cp_on = layout::is_pcp_applicable(step, topology.cp);
  // Every row walks its keys in tiles from key 0, so its bits do not depend on the split.
  plan.is_bitwise = true;
  plan.groups = cp_groups(topology);
  build_ranks(problem, step, plan, [&](RankPlan& rank) { build_rank(problem, step, rank); });
}

}  // namespace cpverify::plan
