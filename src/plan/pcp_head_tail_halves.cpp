#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "layout/pcp_head_tail.hpp"
#include "plan/launches.hpp"
#include "plan/merge_launches.hpp"
#include "plan/pcp_head_tail_parts.hpp"
#include "plan/rank_builder.hpp"

// Chunks attended to the new tokens of their requests.
namespace cpverify::plan {
namespace {

using layout::Half;
using Values = std::vector<std::int64_t>;

/// Results of the prefills' rows in half order; rows of decodes are not used.
struct HalfPartials {
  BufferId out_nomask;
  BufferId lse_nomask;
  BufferId out_mask;
  BufferId lse_mask;
};

/// Consecutive rows of RestoredKv, one run for each prefill.
struct KeyRuns {
  Values first;
  Values length;

  [[nodiscard]] std::int64_t longest() const {
    return *std::max_element(length.begin(), length.end());
  }
  /// [prefills, longest]
  [[nodiscard]] Values table() const {
    Values pages;
    for (std::size_t run = 0; run < first.size(); ++run) {
      for (std::int64_t i = 0; i < longest(); ++i) {
        pages.push_back(i < length[run] ? first[run] + i : 0);
      }
    }
    return pages;
  }
};

/// The keys before a half's chunks, or those of the chunks themselves.
KeyRuns key_runs(const HeadTailShare& share, Half half, bool is_masked) {
  const std::int64_t chunk = layout::chunk_of(share.batch, share.rank, half);
  KeyRuns runs;
  std::int64_t first = 0;  // Of the request at hand.
  for (std::size_t prefill = 0; prefill < share.batch.prefills.size(); ++prefill) {
    const std::int64_t size = share.batch.chunk(prefill);
    runs.first.push_back(is_masked ? first + chunk * size : first);
    runs.length.push_back(is_masked ? size : chunk * size);
    first += 2 * std::int64_t{share.batch.pcp_size} * size;
  }
  return runs;
}

/// What the attention calls of the halves have in common.
struct HalfCalls {
  HeadTailRows rows;
  RestoredKv kv;
  BufferId cu_seqlens_q;
  BufferId chunk_lens;
  HalfPartials partials;
  std::int64_t longest_chunk = 0;
};

/// One attention call: all prefills' rows of a half, one sequence each.
AttentionCall half_call(const RankBuilder& builder, const HeadTailShare& share,
                        const HalfCalls& calls, Half half) {
  const RankShape& shape = builder.shape();
  const std::int64_t first =
      share.batch.decode_rows() + (half == Half::head ? 0 : share.batch.half_rows());
  AttentionCall call;
  call.q = {calls.rows.q, first * shape.q_row_elems()};
  call.cu_seqlens_q = {calls.cu_seqlens_q, 0};
  call.out.offset_elems = first * shape.q_row_elems();
  call.lse.offset_elems = first * shape.num_heads_q;
  call.max_seqlen_q = calls.longest_chunk;
  call.k_pool = calls.kv.k;
  call.v_pool = calls.kv.v;
  call.num_seqs = static_cast<std::int64_t>(share.batch.prefills.size());
  call.block_size = 1;
  return call;
}

void set_keys(RankBuilder& builder, AttentionCall& call, const KeyRuns& runs,
              const std::string& table_name) {
  call.max_pages = runs.longest();
  const auto num_runs = static_cast<std::int64_t>(runs.first.size());
  call.block_table = BufferRef{
      builder.metadata(table_name, DType::i32, {num_runs, runs.longest()}, runs.table()), 0};
}

/// Every query of a half sees all earlier chunks, and its own chunk up to itself.
void attend_half(RankBuilder& builder, const HeadTailShare& share, const HalfCalls& calls,
                 Half half) {
  const std::string_view name = half == Half::head ? "head" : "tail";
  const KeyRuns earlier = key_runs(share, half, false);
  // The first rank's heads have nothing before them.
  if (earlier.longest() > 0) {
    AttentionCall call = half_call(builder, share, calls, half);
    call.out.buffer = calls.partials.out_nomask;
    call.lse.buffer = calls.partials.lse_nomask;
    call.kv_lens = {builder.metadata_i32(fmt::format("kv_lens_{}_nomask", name), earlier.length),
                    0};
    call.is_causal = false;
    set_keys(builder, call, earlier, fmt::format("block_table_{}_nomask", name));
    builder.launch(fmt::format("attention of {}s to earlier chunks", name),
                   attention_launch(builder.shape(), calls.rows.common, call));
  }
  AttentionCall call = half_call(builder, share, calls, half);
  call.out.buffer = calls.partials.out_mask;
  call.lse.buffer = calls.partials.lse_mask;
  call.kv_lens = {calls.chunk_lens, 0};
  set_keys(builder, call, key_runs(share, half, true), fmt::format("block_table_{}_mask", name));
  builder.launch(fmt::format("attention of {}s to their own chunks", name),
                 attention_launch(builder.shape(), calls.rows.common, call));
}

HalfPartials add_partials(RankBuilder& builder, std::int64_t rows) {
  const RankShape& shape = builder.shape();
  const std::vector<std::int64_t> extents{rows, shape.num_heads_q, shape.head_dim};
  HalfPartials partials;
  partials.out_nomask = builder.workspace("out_nomask", extents);
  partials.lse_nomask = builder.workspace("lse_nomask", DType::f32, {rows, shape.num_heads_q});
  partials.out_mask = builder.workspace("out_mask", extents);
  partials.lse_mask = builder.workspace("lse_mask", DType::f32, {rows, shape.num_heads_q});
  builder.fill("zero out_nomask", partials.out_nomask, 0);
  builder.fill("set lse_nomask to -inf", partials.lse_nomask, kNegativeInfinityBits);
  return partials;
}

/// Row i of the halves is merged into row i of the results, but for decodes and pads.
Values merge_index(const HeadTailShare& share) {
  Values index = half_order_tokens(share);
  for (std::size_t row = 0; row < index.size(); ++row) {
    const bool is_decode = static_cast<std::int64_t>(row) < share.batch.decode_rows();
    index[row] = is_decode || index[row] == kPadRow ? kPadRow : static_cast<std::int64_t>(row);
  }
  return index;
}

}  // namespace

Values half_order_tokens(const HeadTailShare& share) {
  const Values tokens = layout::padded_local_tokens(share.batch, share.rank);
  Values ordered;
  for (const std::int64_t row : layout::head_tail_index(share.batch)) {
    ordered.push_back(tokens.at(static_cast<std::size_t>(row)));
  }
  return ordered;
}

void attend_prefills(RankBuilder& builder, const HeadTailShare& share, const HeadTailRows& rows,
                     const RestoredKv& kv) {
  const RankShape& shape = builder.shape();
  Values chunks;
  for (std::size_t prefill = 0; prefill < share.batch.prefills.size(); ++prefill) {
    chunks.push_back(share.batch.chunk(prefill));
  }
  HalfCalls calls;
  calls.rows = rows;
  calls.kv = kv;
  calls.cu_seqlens_q = builder.metadata_i32("cu_seqlens_q_half", prefix_sums(chunks));
  calls.chunk_lens = builder.metadata_i32("kv_lens_mask", chunks);
  calls.longest_chunk = *std::max_element(chunks.begin(), chunks.end());
  calls.partials = add_partials(builder, share.batch.local_rows());
  attend_half(builder, share, calls, Half::head);
  attend_half(builder, share, calls, Half::tail);

  StatesMerge merge;
  merge.prefix = {calls.partials.out_nomask, 0};
  merge.prefix_lse = {calls.partials.lse_nomask, 0};
  merge.suffix = {calls.partials.out_mask, 0};
  merge.suffix_lse = {calls.partials.lse_mask, 0};
  merge.out = {rows.out, 0};
  merge.lse = {rows.lse, 0};
  merge.index = {builder.metadata_i32("merge_index", merge_index(share)), 0};
  merge.prefix_dtype = shape.dtype;
  merge.suffix_dtype = shape.dtype;
  builder.launch(
      "merge earlier chunks and own chunks",
      merge_states_launch(
          {shape.dtype, share.batch.local_rows(), shape.num_heads_q, shape.head_dim}, merge));
}

}  // namespace cpverify::plan
