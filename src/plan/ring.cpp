#include "plan/ring.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/ring.hpp"
#include "layout/topology.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/merge_launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;

/// Where one rank stands in the ring.
struct Share {
  layout::RingBatch batch;
  CpRank rank;
  std::int64_t max_rows = 0;
  std::int64_t num_pieces = 0;
  std::int64_t longest_piece = 0;
  std::uint32_t step = 0;
  std::uint32_t group = 0;
};

struct RingBuffers {
  CommonBuffers common;
  BufferId shard_index;
  BufferId reorder_index;
  BufferId cu_seqlens_q;
  BufferId merge_index;
  BufferId q_local;
  std::array<BufferId, 2> kv_block;  ///< Held and arriving block, in turns.
  BufferId out_partial;
  BufferId lse_partial;
  BufferId out_running;
  BufferId lse_running;
  BufferId out_local;
  BufferId lse_local;
  BufferId out_gathered;
  std::optional<BufferRef> sinks;
};

/// Keys of one attention call over a rank's pieces: a page table and lengths.
struct PieceKeys {
  std::string label;
  BufferRef k;
  BufferRef v;
  BufferId block_table;
  BufferId kv_lens;
  std::int64_t max_pages = 0;
  std::int64_t block_size = 0;
  bool is_causal = false;
  bool counts_sinks = false;
};

bool has_prefix(const layout::RingBatch& batch) {
  return std::any_of(batch.rows.begin(), batch.rows.end(),
                     [](const layout::RingRow& row) { return row.computed > 0; });
}

Share make_share(const Problem& problem, const Step& step, const RankPlan& rank,
                 layout::RingPlacement placement) {
  Share share;
  share.batch = layout::make_ring_batch(step, placement, problem.scenario.topology.cp);
  share.rank = CpRank{rank.cp_rank};
  share.max_rows = layout::max_ring_rows(share.batch);
  for (const layout::RingPiece& piece : layout::ring_pieces(share.batch, share.rank)) {
    share.longest_piece = std::max(share.longest_piece, piece.size);
    ++share.num_pieces;
  }
  share.step = step.index;
  share.group = rank.tp_rank;
  return share;
}

std::vector<std::int64_t> positions_of(const Share& share) {
  std::vector<std::int64_t> positions;
  for (const layout::RingPiece& piece : layout::ring_pieces(share.batch, share.rank)) {
    const std::int64_t first = share.batch.rows[piece.row].computed + piece.start;
    for (std::int64_t i = 0; i < piece.size; ++i) positions.push_back(first + i);
  }
  return padded(std::move(positions), share.max_rows, 0);
}

std::vector<std::int64_t> all_logical_rows(const layout::RingBatch& batch) {
  std::vector<std::int64_t> rows;
  rows.reserve(batch.cp_size);
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    rows.push_back(layout::ring_rows(batch, CpRank{rank}));
  }
  return rows;
}

/// Local rows 0 .. n-1, then pads.
std::vector<std::int64_t> own_rows(const Share& share) {
  std::vector<std::int64_t> rows(
      static_cast<std::size_t>(layout::ring_rows(share.batch, share.rank)));
  std::iota(rows.begin(), rows.end(), 0);
  return padded(std::move(rows), share.max_rows, kPadRow);
}

void add_metadata(RankBuilder& builder, const Share& share, RingBuffers& buffers) {
  std::vector<std::int64_t> piece_sizes;
  for (const layout::RingPiece& piece : layout::ring_pieces(share.batch, share.rank)) {
    piece_sizes.push_back(piece.size);
  }
  buffers.shard_index = builder.metadata_i32(
      "shard_index", padded(layout::ring_tokens(share.batch, share.rank), share.max_rows, kPadRow));
  builder.metadata("positions", DType::i64, {share.max_rows}, positions_of(share));
  builder.metadata_i32("logical_rows", all_logical_rows(share.batch));
  builder.metadata_i32("max_rows", {share.max_rows});
  buffers.reorder_index = builder.metadata_i32(
      "reorder_index",
      padded(layout::ring_reorder_index(share.batch), builder.shape().padded_rows, kPadRow));
  buffers.cu_seqlens_q = builder.metadata_i32("cu_seqlens_q", prefix_sums(piece_sizes));
  buffers.merge_index = builder.metadata_i32("merge_index", own_rows(share));
}

RingBuffers add_buffers(RankBuilder& builder, const Share& share, const Step& step) {
  const RankShape& shape = builder.shape();
  const std::int64_t rows = share.max_rows;
  const std::int64_t heads = shape.num_heads_q;
  RingBuffers buffers;
  buffers.common = builder.common(step);
  buffers.sinks = builder.sinks();
  add_metadata(builder, share, buffers);
  buffers.q_local = builder.workspace("q_local", {rows, heads, shape.head_dim});
  const std::vector<std::int64_t> block_shape{2, rows, shape.num_heads_kv, shape.head_dim};
  buffers.kv_block[0] = builder.workspace("kv_block_even", block_shape);
  buffers.kv_block[1] = builder.workspace("kv_block_odd", block_shape);
  buffers.out_partial = builder.workspace("out_partial", {rows, heads, shape.head_dim});
  buffers.lse_partial = builder.workspace("lse_partial", DType::f32, {rows, heads});
  buffers.out_running = builder.workspace("out_running", DType::f32, {rows, heads, shape.head_dim});
  buffers.lse_running = builder.workspace("lse_running", DType::f32, {rows, heads});
  const std::vector<std::int64_t> tokens =
      padded(layout::ring_tokens(share.batch, share.rank), rows, kPadRow);
  buffers.out_local = builder.attention_output("out_local", tokens);
  buffers.lse_local = builder.lse_output("lse_local", tokens);
  buffers.out_gathered =
      builder.workspace("out_gathered", {share.batch.cp_size * rows, heads, shape.head_dim});
  return buffers;
}

/// The rank's K and V rows are the block that it holds first.
void shard_inputs(RankBuilder& builder, const RingBuffers& buffers, const Share& share) {
  const std::int64_t row_elems = builder.shape().kv_row_elems();
  const BufferId block = buffers.kv_block[0];
  take_local_rows(builder, buffers.common,
                  {buffers.shard_index,
                   buffers.q_local,
                   {block, 0},
                   {block, share.max_rows * row_elems},
                   share.max_rows,
                   share.max_rows,
                   row_elems});
}

/// The tokens that were in the cache before the step, in the rank's own pool.
PieceKeys prefix_keys(RankBuilder& builder, const RingBuffers& buffers, const Share& share,
                      const Step& step) {
  const RankShape& shape = builder.shape();
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> table;
  for (const layout::RingPiece& piece : layout::ring_pieces(share.batch, share.rank)) {
    const StepRow& row = step.rows[piece.row];
    lengths.push_back(row.computed);
    const std::vector<std::int64_t> pages = block_table_line(row, shape.max_pages);
    table.insert(table.end(), pages.begin(), pages.end());
  }
  PieceKeys keys;
  keys.label = "the cached prefix";
  keys.k = {buffers.common.k_pool, 0};
  keys.v = {buffers.common.v_pool, 0};
  keys.kv_lens = builder.metadata_i32("kv_lens_prefix", std::move(lengths));
  keys.block_table = builder.metadata("block_table_prefix", DType::i32,
                                      {share.num_pieces, shape.max_pages}, std::move(table));
  keys.max_pages = shape.max_pages;
  keys.block_size = shape.block_size;
  return keys;
}

/// The keys of the block held after `hop` messages, as pages of one token; nothing when no query
/// of the rank sees any.
std::optional<PieceKeys> block_keys(RankBuilder& builder, const RingBuffers& buffers,
                                    const Share& share, std::uint32_t hop) {
  const CpRank source = layout::block_source(share.batch.cp_size, share.rank, hop);
  const layout::HopKeys visible = layout::hop_keys(share.batch, share.rank, source);
  const std::int64_t width = visible.longest();
  if (width == 0) return std::nullopt;
  std::vector<std::int64_t> table;
  for (const std::vector<std::int64_t>& rows : visible.rows) {
    const std::vector<std::int64_t> line = padded(rows, width, 0);
    table.insert(table.end(), line.begin(), line.end());
  }
  const BufferId block = buffers.kv_block.at(hop % 2);
  PieceKeys keys;
  keys.label = fmt::format("the block of hop {}", hop);
  keys.k = {block, 0};
  keys.v = {block, share.max_rows * builder.shape().kv_row_elems()};
  keys.kv_lens = builder.metadata_i32(fmt::format("kv_lens_hop{}", hop), visible.lengths);
  keys.block_table = builder.metadata(fmt::format("block_table_hop{}", hop), DType::i32,
                                      {share.num_pieces, width}, std::move(table));
  keys.max_pages = width;
  keys.block_size = 1;
  // Only the rank's own block has keys that some queries of a piece see and others do not.
  keys.is_causal = hop == 0;
  // Every row has keys in that block, and in it once.
  keys.counts_sinks = hop == 0;
  return keys;
}

void attend(RankBuilder& builder, const RingBuffers& buffers, const Share& share,
            const PieceKeys& keys) {
  AttentionCall call;
  call.q = {buffers.q_local, 0};
  call.cu_seqlens_q = {buffers.cu_seqlens_q, 0};
  call.kv_lens = {keys.kv_lens, 0};
  call.out = {buffers.out_partial, 0};
  call.lse = {buffers.lse_partial, 0};
  call.max_seqlen_q = share.longest_piece;
  call.is_causal = keys.is_causal;
  if (keys.counts_sinks) call.sinks = buffers.sinks;
  call.k_pool = keys.k;
  call.v_pool = keys.v;
  call.block_table = BufferRef{keys.block_table, 0};
  call.num_seqs = share.num_pieces;
  call.max_pages = keys.max_pages;
  call.block_size = keys.block_size;
  builder.launch("attention of " + keys.label,
                 attention_launch(builder.shape(), buffers.common, call));
}

/// The running result is f32; the last merge makes it the rank's result.
void merge(RankBuilder& builder, const RingBuffers& buffers, const Share& share,
           const std::string& label, bool is_last) {
  const RankShape& shape = builder.shape();
  const MergeShape rows{is_last ? shape.dtype : DType::f32, share.max_rows, shape.num_heads_q,
                        shape.head_dim};
  StatesMerge states;
  states.prefix = {buffers.out_partial, 0};
  states.prefix_lse = {buffers.lse_partial, 0};
  states.suffix = {buffers.out_running, 0};
  states.suffix_lse = {buffers.lse_running, 0};
  states.out = {is_last ? buffers.out_local : buffers.out_running, 0};
  states.lse = {is_last ? buffers.lse_local : buffers.lse_running, 0};
  states.index = {buffers.merge_index, 0};
  states.prefix_dtype = shape.dtype;
  states.suffix_dtype = DType::f32;
  builder.launch("merge " + label, merge_states_launch(rows, states));
}

/// Sends the block of `hop` on while the one before it arrives, in one group call.
void pass_block_on(RankBuilder& builder, const RingBuffers& buffers, const Share& share,
                   std::uint32_t hop) {
  const RankShape& shape = builder.shape();
  const std::uint32_t cp_size = share.batch.cp_size;
  Collective collective = group_collective(
      {CollectiveKind::send_recv, share.group, buffers.kv_block.at(hop % 2),
       buffers.kv_block.at((hop + 1) % 2), 2 * share.max_rows * shape.kv_row_elems()},
      shape.dtype, fmt::format("k and v block of hop {} of step {}", hop, share.step));
  collective.send_peer = (share.rank.value() + 1) % cp_size;
  collective.recv_peer = (share.rank.value() + cp_size - 1) % cp_size;
  builder.collective(fmt::format("pass the block of hop {} on", hop), std::move(collective));
}

/// Every rank's pools hold every token, so each block that comes by is written to them.
void write_block(RankBuilder& builder, const RingBuffers& buffers, const Share& share,
                 const std::vector<std::int64_t>& all_slots, std::uint32_t hop) {
  const CpRank source = layout::block_source(share.batch.cp_size, share.rank, hop);
  std::vector<std::int64_t> slots;
  for (const std::int64_t token : layout::ring_tokens(share.batch, source)) {
    slots.push_back(all_slots.at(static_cast<std::size_t>(token)));
  }
  RankShape block_shape = builder.shape();
  block_shape.padded_rows = share.max_rows;
  CommonBuffers block_buffers = buffers.common;
  block_buffers.slot_mapping =
      builder.metadata(fmt::format("slots_hop{}", hop), DType::i64, {share.max_rows},
                       padded(std::move(slots), share.max_rows, kPadRow));
  const BufferId block = buffers.kv_block.at(hop % 2);
  const std::int64_t row_elems = block_shape.kv_row_elems();
  builder.launch(
      fmt::format("write the block of hop {} to the pools", hop),
      kv_write_launch(block_shape, block_buffers, {block, 0}, {block, share.max_rows * row_elems},
                      block_shape.bytes(row_elems)));
}

/// Hops after which the rank holds a block that its queries see something of.
std::uint32_t last_visible_hop(const Share& share) {
  std::uint32_t last = 0;
  for (std::uint32_t hop = 0; hop < share.batch.cp_size; ++hop) {
    const CpRank source = layout::block_source(share.batch.cp_size, share.rank, hop);
    if (layout::hop_keys(share.batch, share.rank, source).longest() > 0) last = hop;
  }
  return last;
}

void go_around(RankBuilder& builder, const RingBuffers& buffers, const Share& share,
               const Step& step) {
  const std::uint32_t last = last_visible_hop(share);
  const std::vector<std::int64_t> all_slots = step_slots(step);
  for (std::uint32_t hop = 0; hop < share.batch.cp_size; ++hop) {
    if (hop + 1 < share.batch.cp_size) pass_block_on(builder, buffers, share, hop);
    const std::optional<PieceKeys> keys = block_keys(builder, buffers, share, hop);
    if (keys) {
      attend(builder, buffers, share, *keys);
      merge(builder, buffers, share, keys->label, hop == last);
    }
    write_block(builder, buffers, share, all_slots, hop);
  }
}

void build_split_step(const Problem& problem, const Step& step, RankPlan& rank,
                      layout::RingPlacement placement) {
  const RankShape shape = make_rank_shape(problem, step, rank);
  RankBuilder builder{rank, shape};
  const Share share = make_share(problem, step, rank, placement);
  const RingBuffers buffers = add_buffers(builder, share, step);
  shard_inputs(builder, buffers, share);
  builder.fill("zero out_running", buffers.out_running, 0);
  builder.fill("set lse_running to -inf", buffers.lse_running, kNegativeInfinityBits);
  builder.fill("zero out_local", buffers.out_local, 0);
  builder.fill("set lse_local to -inf", buffers.lse_local, kNegativeInfinityBits);
  if (has_prefix(share.batch)) {
    const PieceKeys prefix = prefix_keys(builder, buffers, share, step);
    attend(builder, buffers, share, prefix);
    merge(builder, buffers, share, prefix.label, false);
  }
  go_around(builder, buffers, share, step);
  gather_attention_rows(builder, {share.group, share.step, share.max_rows, buffers.out_local,
                                  buffers.out_gathered, buffers.reorder_index, buffers.common.out});
}

/// The first partial of a row is merged with nothing, which changes no bit of it.
MergeNumerics merge_numerics(const layout::RingBatch& batch, DType dtype) {
  MergeNumerics numerics;
  numerics.partials = batch.cp_size + (has_prefix(batch) ? 1 : 0);
  numerics.depth = numerics.partials - 1;
  numerics.partial_dtype = dtype;
  return numerics;
}

}  // namespace

void build_ring(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  const layout::RingPlacement placement = plan.strategy == StrategyKind::ring
                                              ? layout::RingPlacement::zigzag
                                              : layout::RingPlacement::contiguous;
  plan.is_cp_on = layout::is_ring_applicable(step, topology.cp);
  plan.is_bitwise = !plan.is_cp_on;
  plan.groups = cp_groups(topology);
  build_ranks(problem, step, plan,
              [&](RankPlan& rank) { build_split_step(problem, step, rank, placement); });
  if (!plan.is_cp_on) return;
  plan.numerics.merge = merge_numerics(layout::make_ring_batch(step, placement, topology.cp),
                                       problem.scenario.model.dtype);
}

}  // namespace cpverify::plan
