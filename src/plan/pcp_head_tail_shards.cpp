#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/pcp_head_tail.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/merge_launches.hpp"
#include "plan/pcp_head_tail_parts.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

using Values = std::vector<std::int64_t>;

/// Queries that see, without a mask, what the rank holds of the first tokens of their requests.
struct ShardCall {
  std::string_view name;  ///< Of its buffers: "decode" or "context".
  std::string_view what;  ///< Of its operations.
  std::uint32_t step = 0;
  BufferRef q;       ///< [rows, H, D]
  Values seqlens_q;  ///< Of each sequence.
  Values kv_lens;    ///< In the rank's shard.
  Values table;      ///< Block ids, line by line.

  [[nodiscard]] std::int64_t rows() const { return prefix_sums(seqlens_q).back(); }
};

/// Where rows and their LSEs are.
struct Partial {
  BufferId out;
  BufferId lse;
};

void append(Values& values, const Values& more) {
  values.insert(values.end(), more.begin(), more.end());
}

/// What the queries find on the rank.
Partial attend_shard(RankBuilder& builder, const CommonBuffers& common, const ShardCall& shard) {
  const RankShape& shape = builder.shape();
  const auto num_seqs = static_cast<std::int64_t>(shard.seqlens_q.size());
  const auto named = [&shard](std::string_view array) {
    return fmt::format("{}_{}", array, shard.name);
  };
  const std::int64_t rows = shard.rows();
  Partial partial;
  partial.out = builder.workspace(named("out_partial"), {rows, shape.num_heads_q, shape.head_dim});
  partial.lse = builder.workspace(named("lse_partial"), DType::f32, {rows, shape.num_heads_q});
  AttentionCall call;
  call.q = shard.q;
  call.cu_seqlens_q = {builder.metadata_i32(named("cu_seqlens_q"), prefix_sums(shard.seqlens_q)),
                       0};
  call.kv_lens = {builder.metadata_i32(named("kv_lens"), shard.kv_lens), 0};
  call.block_table = BufferRef{
      builder.metadata(named("block_table"), DType::i32, {num_seqs, shape.max_pages}, shard.table),
      0};
  call.out = {partial.out, 0};
  call.lse = {partial.lse, 0};
  call.max_seqlen_q = *std::max_element(shard.seqlens_q.begin(), shard.seqlens_q.end());
  call.is_causal = false;
  call.num_seqs = num_seqs;
  builder.launch(fmt::format("attention of {}", shard.what), attention_launch(shape, common, call));
  return partial;
}

/// Gathers the partials of all ranks, outputs and LSEs in one message, and merges them.
void merge_shards(RankBuilder& builder, const HeadTailShare& share, const ShardCall& shard,
                  const Partial& partial, const Partial& merged) {
  const RankShape& shape = builder.shape();
  const MergeShape rows{shape.dtype, shard.rows(), shape.num_heads_q, shape.head_dim};
  const std::int64_t ranks = share.batch.pcp_size;
  const std::int64_t row_elems = packed_row_elems(rows);
  const BufferId send = builder.workspace(fmt::format("packed_{}", shard.name),
                                          {rows.num_rows, rows.num_heads, row_elems});
  const BufferId recv = builder.workspace(fmt::format("packed_{}_gathered", shard.name),
                                          {ranks, rows.num_rows, rows.num_heads, row_elems});
  PartialPack pack;
  pack.partial = {partial.out, 0};
  pack.lse = {partial.lse, 0};
  pack.packed = {send, 0};
  pack.num_ranks = 1;  // Every rank wants all heads.
  builder.launch(fmt::format("pack the partial of {}", shard.what),
                 pack_partial_launch(rows, pack));
  builder.collective(
      fmt::format("all-gather partials of {}", shard.what),
      group_collective(
          {CollectiveKind::all_gather, share.group, send, recv, rows.num_lses() * row_elems},
          shape.dtype, fmt::format("partials of {} of step {}", shard.what, shard.step)));
  PackedMerge merge;
  merge.packed = {recv, 0};
  merge.out = {merged.out, 0};
  merge.lse = {merged.lse, 0};
  merge.num_partials = ranks;
  builder.launch(fmt::format("merge the partials of {}", shard.what),
                 merge_packed_launch(rows, merge));
}

/// The padded rows of all prefills, in request order and each request as a sequence.
ShardCall context_call(const RankBuilder& builder, const HeadTailShare& share, const Step& step) {
  const layout::HeadTailBatch& batch = share.batch;
  ShardCall call;
  call.name = "context";
  call.what = "the cached context";
  call.step = step.index;
  for (std::size_t prefill = 0; prefill < batch.prefills.size(); ++prefill) {
    const StepRow& row = step.rows[batch.prefills[prefill]];
    call.seqlens_q.push_back(2 * std::int64_t{batch.pcp_size} * batch.chunk(prefill));
    call.kv_lens.push_back(layout::local_length(share.shard, row.computed));
    append(call.table, block_table_line(row, builder.shape().max_pages));
  }
  return call;
}

/// The queries of all ranks' prefills in request order.
BufferId gather_queries(RankBuilder& builder, const HeadTailShare& share, BufferId q_local,
                        const Step& step) {
  const RankShape& shape = builder.shape();
  const std::int64_t rows = share.batch.padded_prefill_rows();
  const BufferId restore =
      builder.metadata_i32("q_restore_index", layout::prefill_restore_index(share.batch));
  const std::vector<std::int64_t> extents{rows, shape.num_heads_q, shape.head_dim};
  const BufferId gathered = builder.workspace("q_gathered", extents);
  const BufferId restored = builder.workspace("q_restored", extents);
  Collective gather =
      group_collective({CollectiveKind::all_gather, share.group, q_local, gathered,
                        2 * share.batch.half_rows() * shape.q_row_elems()},
                       shape.dtype, fmt::format("prefill query rows of step {}", step.index));
  gather.send.offset_elems = share.batch.decode_rows() * shape.q_row_elems();
  builder.collective("all-gather prefill query rows", std::move(gather));
  builder.launch("put query rows in request order",
                 gather_rows_launch(dense_rows(gathered, restore, restored, rows,
                                               shape.bytes(shape.q_row_elems()))));
  return restored;
}

/// Of each padded prefill row, in request order, the rank's own row that its context is merged
/// into: none for pads, for rows of other ranks, and where the request has nothing in the cache.
Values context_index(const HeadTailShare& share) {
  const layout::HeadTailBatch& batch = share.batch;
  Values index(static_cast<std::size_t>(batch.padded_prefill_rows()), kPadRow);
  const Values place = layout::full_index(batch);
  const std::vector<layout::PaddedToken> tokens = layout::padded_tokens(batch, share.rank);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    const layout::PcpRequest& request = batch.requests[tokens[row].request];
    if (request.is_decode || tokens[row].is_pad || request.computed == 0) continue;
    const std::int64_t padded_row = tokens[row].padded - batch.padded_decode_rows();
    index.at(static_cast<std::size_t>(padded_row)) = place[row];
  }
  return index;
}

}  // namespace

bool has_prefill_context(const Step& step) {
  return std::any_of(step.rows.begin(), step.rows.end(), [](const StepRow& row) {
    return row.state == RowState::prefill && row.computed > 0;
  });
}

void attend_decodes(RankBuilder& builder, const HeadTailShare& share, const HeadTailRows& rows,
                    const Step& step) {
  ShardCall call;
  call.name = "decode";
  call.what = "decodes";
  call.step = step.index;
  call.q = {rows.q, 0};
  for (const std::size_t decode : share.batch.decodes) {
    const StepRow& row = step.rows[decode];
    // Each token is a sequence: what it sees on a rank does not follow from what the last one sees.
    for (std::int64_t i = 0; i < row.scheduled; ++i) {
      call.seqlens_q.push_back(1);
      call.kv_lens.push_back(layout::local_length(share.shard, row.computed + i + 1));
      append(call.table, block_table_line(row, builder.shape().max_pages));
    }
  }
  const Partial partial = attend_shard(builder, rows.common, call);
  merge_shards(builder, share, call, partial, {rows.out, rows.lse});
}

void merge_cached_context(RankBuilder& builder, const HeadTailShare& share,
                          const HeadTailRows& rows, BufferId q_local, const Step& step) {
  const RankShape& shape = builder.shape();
  ShardCall call = context_call(builder, share, step);
  call.q = {gather_queries(builder, share, q_local, step), 0};
  const Partial partial = attend_shard(builder, rows.common, call);
  Partial context;
  context.out = builder.workspace("out_context", {call.rows(), shape.num_heads_q, shape.head_dim});
  context.lse = builder.workspace("lse_context", DType::f32, {call.rows(), shape.num_heads_q});
  merge_shards(builder, share, call, partial, context);

  StatesMerge merge;
  merge.prefix = {context.out, 0};
  merge.prefix_lse = {context.lse, 0};
  merge.suffix = {rows.out, 0};
  merge.suffix_lse = {rows.lse, 0};
  merge.out = {rows.out, 0};
  merge.lse = {rows.lse, 0};
  merge.index = {builder.metadata_i32("context_index", context_index(share)), 0};
  merge.prefix_dtype = shape.dtype;
  merge.suffix_dtype = shape.dtype;
  builder.launch(
      "merge the cached context",
      merge_states_launch({shape.dtype, call.rows(), shape.num_heads_q, shape.head_dim}, merge));
}

}  // namespace cpverify::plan
