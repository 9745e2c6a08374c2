#include "plan/pcp_dcp.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/pcp_virtual_batch.hpp"
#include "layout/topology.hpp"
#include "plan/combine.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/merge_launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;
using Values = std::vector<std::int64_t>;

/// What the operations of a rank have in common.
struct ProductRank {
  const Step* step = nullptr;
  layout::VirtualBatch batch;
  CpRank rank;
  std::int64_t max_rows = 0;
  KvShard shard;
  HeadGroup heads;
  PrefillGroup prefill;

  [[nodiscard]] std::int64_t gathered_rows() const { return prefill.size * max_rows; }
};

struct ProductBuffers {
  CommonBuffers common;
  BufferId local_index;
  BufferId hidden_restore;
  BufferId q_local;
  BufferId kv_local;
  BufferId kv_gathered;
  BufferId k_full;
  BufferId v_full;
  BufferId out_local;
  BufferId lse_local;
};

ProductBuffers add_buffers(RankBuilder& builder, const ProductRank& rank) {
  const RankShape& shape = builder.shape();
  ProductBuffers buffers;
  buffers.common = builder.common(*rank.step);
  const Values tokens = padded(layout::local_tokens(rank.batch, rank.rank), rank.max_rows, kPadRow);
  Values counts;
  for (std::uint32_t i = 0; i < rank.prefill.size; ++i) {
    counts.push_back(layout::local_rows(rank.batch, CpRank{i}));
  }
  buffers.local_index = builder.metadata_i32("local_index", tokens);
  builder.metadata("positions", DType::i64, {rank.max_rows},
                   padded(layout::local_positions(rank.batch, rank.rank), rank.max_rows, 0));
  builder.metadata_i32("rank_rows", std::move(counts));
  builder.metadata_i32("max_rows", {rank.max_rows});
  buffers.hidden_restore = builder.metadata_i32(
      "hidden_restore", padded(layout::hidden_restore(rank.batch), shape.padded_rows, kPadRow));
  const std::int64_t heads_kv = shape.num_heads_kv;
  buffers.q_local =
      builder.workspace("q_local", {rank.max_rows, shape.num_heads_q, shape.head_dim});
  buffers.kv_local = builder.workspace("kv_local", {rank.max_rows, 2, heads_kv, shape.head_dim});
  buffers.kv_gathered =
      builder.workspace("kv_gathered", {rank.gathered_rows(), 2, heads_kv, shape.head_dim});
  buffers.k_full = builder.workspace("k_full", {shape.padded_rows, heads_kv, shape.head_dim});
  buffers.v_full = builder.workspace("v_full", {shape.padded_rows, heads_kv, shape.head_dim});
  buffers.out_local = builder.attention_output("out_local", tokens);
  buffers.lse_local = builder.lse_output("lse_local", tokens);
  return buffers;
}

/// An exchange of whole rows over the prefill group.
Collective prefill_gather(const RankShape& shape, const ProductRank& rank, BufferId send,
                          BufferId recv, std::string_view what) {
  const bool is_query = what == "query rows";
  const std::int64_t elems = is_query ? shape.q_row_elems() : 2 * shape.kv_row_elems();
  return group_collective(
      {CollectiveKind::all_gather, rank.prefill.group, send, recv, rank.max_rows * elems},
      shape.dtype, fmt::format("{} of step {}", what, rank.step->index));
}

void take_rows(RankBuilder& builder, const ProductBuffers& buffers, const ProductRank& rank) {
  const std::int64_t row_elems = builder.shape().kv_row_elems();
  take_local_rows(builder, buffers.common,
                  {buffers.local_index,
                   buffers.q_local,
                   {buffers.kv_local, 0},
                   {buffers.kv_local, row_elems},
                   rank.max_rows,
                   rank.max_rows,
                   2 * row_elems});
}

/// K and V of the whole step on every rank for this layer, of which it stores its own tokens.
void exchange_new_keys(RankBuilder& builder, const ProductBuffers& buffers,
                       const ProductRank& rank) {
  const RankShape& shape = builder.shape();
  builder.collective(
      "all-gather k and v rows",
      prefill_gather(shape, rank, buffers.kv_local, buffers.kv_gathered, "k and v rows"));
  split_kv_rows(builder,
                {buffers.kv_gathered, buffers.hidden_restore, buffers.k_full, buffers.v_full,
                 shape.padded_rows},
                "the step's order");
  builder.launch("write the own tokens' k and v to the pools",
                 kv_write_launch(shape, buffers.common, {buffers.k_full, 0}, {buffers.v_full, 0},
                                 shape.bytes(shape.kv_row_elems())));
}

/// The rank's rows on the step's own keys: a row sees its request's new tokens up to its end.
void attend_new(RankBuilder& builder, const ProductBuffers& buffers, const ProductRank& rank) {
  Values lengths;
  Values kv_lens;
  for (const layout::VirtualRow& row : rank.batch.rows.at(rank.rank.value())) {
    lengths.push_back(row.length);
    kv_lens.push_back(row.offset + row.length);
  }
  const std::int64_t width =
      kv_lens.empty() ? 1 : *std::max_element(kv_lens.begin(), kv_lens.end());
  Values table;
  for (const layout::VirtualRow& row : rank.batch.rows.at(rank.rank.value())) {
    const std::int64_t first = rank.batch.requests[row.request].first_token;
    Values line;
    for (std::int64_t i = 0; i < row.offset + row.length; ++i) line.push_back(first + i);
    line = padded(std::move(line), width, 0);
    table.insert(table.end(), line.begin(), line.end());
  }
  const auto num_seqs = static_cast<std::int64_t>(lengths.size());
  AttentionCall call;
  call.q = {buffers.q_local, 0};
  call.cu_seqlens_q = {builder.metadata_i32("row_cu_seqlens_q", prefix_sums(lengths)), 0};
  call.kv_lens = {builder.metadata_i32("kv_lens_new", std::move(kv_lens)), 0};
  call.block_table = BufferRef{
      builder.metadata("block_table_new", DType::i32, {num_seqs, width}, std::move(table)), 0};
  call.k_pool = BufferRef{buffers.k_full, 0};
  call.v_pool = BufferRef{buffers.v_full, 0};
  call.out = {buffers.out_local, 0};
  call.lse = {buffers.lse_local, 0};
  call.num_seqs = num_seqs;
  call.max_pages = width;
  call.block_size = 1;
  call.max_seqlen_q = lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
  builder.launch("attention of the new tokens",
                 attention_launch(builder.shape(), buffers.common, call));
}

/// Queries of the whole step with the heads of the rank's group.
BufferId gather_queries(RankBuilder& builder, const ProductBuffers& buffers,
                        const ProductRank& rank) {
  const RankShape& shape = builder.shape();
  const BufferId gathered = builder.workspace(
      "q_rows_gathered", {rank.gathered_rows(), shape.num_heads_q, shape.head_dim});
  const BufferId rows =
      builder.workspace("q_rows", {shape.padded_rows, shape.num_heads_q, shape.head_dim});
  builder.collective("all-gather query rows over tokens",
                     prefill_gather(shape, rank, buffers.q_local, gathered, "query rows"));
  builder.launch(
      "put query rows in the step's order",
      gather_rows_launch(dense_rows(gathered, buffers.hidden_restore, rows, shape.padded_rows,
                                    shape.bytes(shape.q_row_elems()))));
  return rank.heads.size == 1 ? rows : gather_query_heads(builder, rows, rank.heads);
}

/// All queries of the step on the rank's part of what was in the cache.
GroupPartial attend_context(RankBuilder& builder, const ProductBuffers& buffers,
                            const ProductRank& rank, BufferId queries) {
  const RankShape& shape = builder.shape();
  Values lengths;
  Values context;
  for (const StepRow& row : rank.step->rows) {
    lengths.push_back(row.scheduled);
    context.push_back(layout::local_length(rank.shard, row.computed));
  }
  const GroupPartial partial = add_partial(builder, rank.heads);
  AttentionCall call;
  call.q = {queries, 0};
  call.cu_seqlens_q = {builder.metadata_i32("cu_seqlens_q", prefix_sums(lengths)), 0};
  call.kv_lens = {builder.metadata_i32("kv_lens_context", std::move(context)), 0};
  call.out = {partial.out, 0};
  call.lse = {partial.lse, 0};
  call.max_seqlen_q = *std::max_element(lengths.begin(), lengths.end());
  call.is_causal = false;
  call.num_heads_q = shape.num_heads_q * rank.heads.size;
  builder.launch("attention of the cached shard", attention_launch(shape, buffers.common, call));
  return partial;
}

/// Local row of every token of the step that has context and is computed here.
Values merge_index(const ProductRank& rank, std::int64_t rows) {
  Values index(static_cast<std::size_t>(rows), kPadRow);
  const Values tokens = layout::local_tokens(rank.batch, rank.rank);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    index.at(static_cast<std::size_t>(tokens[row])) = static_cast<std::int64_t>(row);
  }
  std::size_t token = 0;
  for (const StepRow& row : rank.step->rows) {
    for (std::int64_t i = 0; i < row.scheduled; ++i, ++token) {
      if (row.computed == 0) index[token] = kPadRow;
    }
  }
  return index;
}

void add_context(RankBuilder& builder, const ProductBuffers& buffers, const ProductRank& rank) {
  const RankShape& shape = builder.shape();
  const GroupPartial partial =
      attend_context(builder, buffers, rank, gather_queries(builder, buffers, rank));
  const OwnHeads context{
      builder.workspace("out_context", {shape.padded_rows, shape.num_heads_q, shape.head_dim}),
      builder.workspace("lse_context", DType::f32, {shape.padded_rows, shape.num_heads_q})};
  combine_over_prefill(builder, partial, context, rank.heads, rank.prefill);
  StatesMerge merge;
  merge.prefix = {context.out, 0};
  merge.prefix_lse = {context.lse, 0};
  merge.suffix = {buffers.out_local, 0};
  merge.suffix_lse = {buffers.lse_local, 0};
  merge.out = merge.suffix;
  merge.lse = merge.suffix_lse;
  merge.index = {builder.metadata_i32("merge_index", merge_index(rank, shape.padded_rows)), 0};
  merge.prefix_dtype = shape.dtype;
  merge.suffix_dtype = shape.dtype;
  const MergeShape rows{shape.dtype, shape.padded_rows, shape.num_heads_q, shape.head_dim};
  builder.launch("merge the context into the new tokens' part", merge_states_launch(rows, merge));
}

void build_rank(const Problem& problem, const Step& step, RankPlan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.kv_shard = layout::kv_shard_of(topology, plan);
  const RankShape shape = make_rank_shape(problem, step, plan);
  RankBuilder builder{plan, shape};
  const std::uint32_t slices = layout::head_group_size(topology);
  ProductRank rank;
  rank.step = &step;
  rank.batch = layout::make_virtual_batch(step, topology.cp);
  rank.rank = CpRank{plan.cp_rank};
  rank.max_rows = layout::max_rows(rank.batch);
  rank.shard = plan.kv_shard;
  rank.prefill = {plan.tp_rank, topology.cp};
  rank.heads = {topology.tp + plan.rank.value() / slices, slices, plan.tp_rank % slices,
                step.index};

  const ProductBuffers buffers = add_buffers(builder, rank);
  take_rows(builder, buffers, rank);
  exchange_new_keys(builder, buffers, rank);
  builder.fill("zero out_local", buffers.out_local, 0);
  builder.fill("set lse_local to -inf", buffers.lse_local, kNegativeInfinityBits);
  attend_new(builder, buffers, rank);
  // By the lengths of whole requests, which all ranks know alike: it has collectives.
  if (has_context(step)) add_context(builder, buffers, rank);
  const BufferId gathered =
      builder.workspace("out_gathered", {rank.gathered_rows(), shape.num_heads_q, shape.head_dim});
  gather_attention_rows(builder, {rank.prefill.group, step.index, rank.max_rows, buffers.out_local,
                                  gathered, buffers.hidden_restore, buffers.common.out});
}

}  // namespace

void build_pcp_dcp(const Problem& problem, const Step& step, Plan& plan) {
  TopologySpec heads = problem.scenario.topology;
  plan.is_cp_on = true;
  plan.is_bitwise = false;
  plan.groups = cp_groups(heads);
  heads.dcp = layout::head_group_size(heads);
  for (const std::vector<RankId>& members : layout::dcp_groups(heads)) {
    plan.groups.push_back({fmt::format("dcp[{}]", plan.groups.size() - heads.tp), members});
  }
  for (RankPlan& rank : plan.ranks) build_rank(problem, step, rank);
  if (!has_context(step)) return;
  plan.numerics.merge = combine_numerics(DcpCombine::a2a, problem.scenario.model.dtype,
                                         problem.scenario.topology.kv_shards() + 1);
  plan.numerics.merge.depth = 2;
}

}  // namespace cpverify::plan
