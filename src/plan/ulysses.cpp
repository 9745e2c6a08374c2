#include "plan/ulysses.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
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
#include "layout/ulysses.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;

/// Where one rank stands in the exchange.
struct Share {
  layout::UlyssesSplit split;
  CpRank rank;
  HeadRange heads_q;   ///< Of the exchange.
  HeadRange heads_kv;  ///< Of the exchange; the pools hold them.
  std::uint32_t step = 0;
  std::uint32_t group = 0;
};

/// A tensor on its way to the ranks that attend with its heads.
struct HeadExchange {
  std::string tensor;
  BufferId source;
  BufferId index;
  std::uint32_t heads = 0;  ///< Of one rank, after the exchange.
};

struct UlyssesBuffers {
  CommonBuffers common;
  BufferId q_send_index;
  BufferId kv_send_index;
  BufferId head_order;
  BufferId reorder_index;
  BufferId cu_seqlens_q;
  BufferId kv_lens;
  std::int64_t max_seqlen_q = 0;
  BufferId out_heads;
  BufferId lse_heads;
  BufferId out_local;
};

Share make_share(const Problem& problem, const Step& step, const RankPlan& rank) {
  Share share;
  share.split = layout::make_ulysses_split(step, problem.scenario.topology.cp);
  share.rank = CpRank{rank.cp_rank};
  share.heads_q = layout::exchanged_query_heads(rank.heads_q, share.split.cp_size, share.rank);
  share.heads_kv = layout::exchanged_kv_heads(rank.heads_kv, share.split.cp_size, share.rank);
  share.step = step.index;
  share.group = rank.tp_rank;
  return share;
}

/// 0 .. T-1, then pads.
std::vector<std::int64_t> all_tokens(const Share& share, std::int64_t rows) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(share.split.num_tokens));
  std::iota(tokens.begin(), tokens.end(), 0);
  return padded(std::move(tokens), rows, kPadRow);
}

void add_lengths(RankBuilder& builder, const Share& share, const Step& step,
                 UlyssesBuffers& buffers) {
  std::vector<std::int64_t> scheduled;
  std::vector<std::int64_t> kv_lens;
  for (const StepRow& row : step.rows) {
    scheduled.push_back(row.scheduled);
    kv_lens.push_back(row.computed + row.scheduled);
    buffers.max_seqlen_q = std::max(buffers.max_seqlen_q, row.scheduled);
  }
  buffers.cu_seqlens_q = builder.metadata_i32("cu_seqlens_q", prefix_sums(scheduled));
  buffers.kv_lens = builder.metadata_i32("kv_lens", std::move(kv_lens));
  const std::int64_t rows = share.split.all_rows();
  buffers.common.slot_mapping = builder.metadata("slots_exchanged", DType::i64, {rows},
                                                 padded(step_slots(step), rows, kPadRow));
  const std::vector<std::int64_t> positions = step_positions(step);
  std::vector<std::int64_t> own_positions;
  for (const std::int64_t token : layout::ulysses_tokens(share.split, share.rank)) {
    own_positions.push_back(token < 0 ? 0 : positions.at(static_cast<std::size_t>(token)));
  }
  builder.metadata("positions", DType::i64, {share.split.max_rows}, std::move(own_positions));
}

UlyssesBuffers add_buffers(RankBuilder& builder, const Share& share, const Step& step) {
  const RankShape& shape = builder.shape();
  UlyssesBuffers buffers;
  buffers.common = builder.common(step);
  add_lengths(builder, share, step, buffers);
  const auto heads_q = static_cast<std::uint32_t>(shape.num_heads_q);
  const auto heads_kv = static_cast<std::uint32_t>(shape.num_heads_kv);
  buffers.q_send_index = builder.metadata_i32(
      "q_send_index", layout::ulysses_send_index(share.split, share.rank, heads_q));
  buffers.kv_send_index = builder.metadata_i32(
      "kv_send_index", layout::ulysses_send_index(share.split, share.rank, heads_kv));
  buffers.head_order = builder.metadata_i32("head_order", layout::ulysses_head_order(share.split));
  buffers.reorder_index =
      builder.metadata_i32("reorder_index", all_tokens(share, shape.padded_rows));
  const std::vector<std::int64_t> tokens = all_tokens(share, share.split.all_rows());
  buffers.out_heads = builder.attention_output("out_heads", tokens, share.heads_q);
  buffers.lse_heads = builder.lse_output("lse_heads", tokens, share.heads_q);
  buffers.out_local =
      builder.attention_output("out_local", layout::ulysses_tokens(share.split, share.rank));
  return buffers;
}

/// Sends every rank its heads of this rank's rows; what arrives are its own heads of all rows, in
/// the step's order because ranks hold consecutive tokens.
BufferId exchange_heads(RankBuilder& builder, const Share& share, const HeadExchange& exchange) {
  const RankShape& shape = builder.shape();
  const std::int64_t run_elems = exchange.heads * shape.head_dim;
  const std::int64_t rows = share.split.max_rows;
  const BufferId send = builder.workspace(
      exchange.tensor + "_send", {share.split.cp_size, rows, exchange.heads, shape.head_dim});
  const BufferId recv = builder.workspace(exchange.tensor + "_heads",
                                          {share.split.all_rows(), exchange.heads, shape.head_dim});
  builder.launch(fmt::format("gather the rank's {} rows by head", exchange.tensor),
                 gather_rows_launch(dense_rows(exchange.source, exchange.index, send,
                                               share.split.all_rows(), shape.bytes(run_elems))));
  builder.collective(
      fmt::format("exchange {} rows for heads", exchange.tensor),
      group_collective({CollectiveKind::all_to_all, share.group, send, recv, rows * run_elems},
                       shape.dtype,
                       fmt::format("{} heads of step {}", exchange.tensor, share.step)));
  return recv;
}

void attend(RankBuilder& builder, const UlyssesBuffers& buffers, const Share& share,
            BufferId queries) {
  AttentionCall call;
  call.q = {queries, 0};
  call.cu_seqlens_q = {buffers.cu_seqlens_q, 0};
  call.kv_lens = {buffers.kv_lens, 0};
  call.out = {buffers.out_heads, 0};
  call.lse = {buffers.lse_heads, 0};
  call.max_seqlen_q = buffers.max_seqlen_q;
  call.num_heads_q = share.heads_q.count;
  call.num_heads_kv = share.heads_kv.count;
  call.sinks = builder.sinks(share.heads_q);
  builder.fill("zero out_heads", buffers.out_heads, 0);
  builder.fill("set lse_heads to -inf", buffers.lse_heads, kNegativeInfinityBits);
  builder.launch("attention of the own heads",
                 attention_launch(builder.shape(), buffers.common, call));
}

/// Back to all heads of the own rows, and then to all rows on every rank.
void return_heads(RankBuilder& builder, const UlyssesBuffers& buffers, const Share& share) {
  const RankShape& shape = builder.shape();
  const std::int64_t run_elems = share.heads_q.count * shape.head_dim;
  const std::int64_t rows = share.split.max_rows;
  const BufferId returned = builder.workspace(
      "out_returned", {share.split.cp_size, rows, share.heads_q.count, shape.head_dim});
  const BufferId gathered = builder.workspace(
      "out_gathered", {share.split.all_rows(), shape.num_heads_q, shape.head_dim});
  builder.collective(
      "exchange attention heads for rows",
      group_collective(
          {CollectiveKind::all_to_all, share.group, buffers.out_heads, returned, rows * run_elems},
          shape.dtype, fmt::format("attention heads of step {}", share.step)));
  builder.launch("put the heads of a row side by side",
                 gather_rows_launch(dense_rows(returned, buffers.head_order, buffers.out_local,
                                               share.split.all_rows(), shape.bytes(run_elems))));
  builder.collective(
      "all-gather attention rows",
      group_collective({CollectiveKind::all_gather, share.group, buffers.out_local, gathered,
                        rows * shape.q_row_elems()},
                       shape.dtype, fmt::format("attention rows of step {}", share.step)));
  builder.launch("take the step's rows", gather_rows_launch(dense_rows(
                                             gathered, buffers.reorder_index, buffers.common.out,
                                             shape.padded_rows, shape.bytes(shape.q_row_elems()))));
}

void build_split_step(const Problem& problem, const Step& step, RankPlan& rank) {
  const Share share = make_share(problem, step, rank);
  rank.pool_heads = share.heads_kv;
  const RankShape shape = make_rank_shape(problem, step, rank);
  RankBuilder builder{rank, shape};
  const UlyssesBuffers buffers = add_buffers(builder, share, step);
  const CommonBuffers& common = buffers.common;
  const BufferId q =
      exchange_heads(builder, share, {"q", common.q, buffers.q_send_index, share.heads_q.count});
  const BufferId k =
      exchange_heads(builder, share, {"k", common.k, buffers.kv_send_index, share.heads_kv.count});
  const BufferId v =
      exchange_heads(builder, share, {"v", common.v, buffers.kv_send_index, share.heads_kv.count});
  RankShape exchanged = shape;
  exchanged.padded_rows = share.split.all_rows();
  exchanged.num_heads_kv = share.heads_kv.count;
  builder.launch("write the own heads' k and v to the pools",
                 kv_write_launch(exchanged, common, {k, 0}, {v, 0},
                                 exchanged.bytes(exchanged.kv_row_elems())));
  attend(builder, buffers, share, q);
  return_heads(builder, buffers, share);
}

}  // namespace

void build_ulysses(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  // The pools hold some heads of every token, so there is no step that a rank could do alone.
  plan.is_cp_on = topology.cp > 1;
  // Every row is computed where all its keys are, by the same kernel.
  plan.is_bitwise = true;
  plan.groups = cp_groups(topology);
  build_ranks(problem, step, plan, [&](RankPlan& rank) { build_split_step(problem, step, rank); });
}

}  // namespace cpverify::plan
