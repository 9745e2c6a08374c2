#include "plan/zigzag.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

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
#include "plan/split_exchange.hpp"

namespace cpverify::plan {
namespace {

using layout::CpRank;
using layout::Half;

/// Where one rank stands in the split.
struct Share {
  layout::ZigzagBatch batch;
  CpRank rank;
  SplitRows rows;
};

/// Metadata of an attention call.
struct CallMetadata {
  BufferId cu_seqlens_q;
  BufferId kv_lens;
  std::int64_t max_seqlen_q = 0;
};

Share make_share(const Problem& problem, const Step& step, const RankPlan& rank) {
  Share share;
  share.batch = layout::make_zigzag_batch(step, problem.scenario.topology.cp);
  share.rank = CpRank{rank.cp_rank};
  share.rows.tokens = layout::shard_tokens(share.batch, share.rank);
  share.rows.positions = layout::shard_positions(share.batch, share.rank);
  share.rows.reorder_index = layout::reorder_index(share.batch);
  share.rows.cp_size = problem.scenario.topology.cp;
  share.rows.gather_rows = layout::max_rows(share.batch);
  share.rows.physical_rows = layout::physical_rows(share.batch);
  share.rows.group = rank.tp_rank;
  share.rows.step = step.index;
  return share;
}

void add_split_facts(RankBuilder& builder, const Share& share) {
  std::vector<std::int64_t> rows;
  rows.reserve(share.batch.cp_size);
  for (std::uint32_t rank = 0; rank < share.batch.cp_size; ++rank) {
    rows.push_back(layout::logical_rows(share.batch, CpRank{rank}));
  }
  builder.metadata_i32("logical_rows", rows);
  builder.metadata_i32("max_rows", {share.rows.gather_rows});
  builder.metadata_i32("physical_rows", {share.rows.physical_rows});
  builder.metadata_i32("piece_lens", layout::piece_lens(share.batch));
  builder.metadata_i32("piece_order", layout::piece_order(share.batch));
}

CallMetadata add_call(RankBuilder& builder, const layout::HalfLengths& lengths,
                      const std::string& suffix) {
  CallMetadata metadata;
  metadata.cu_seqlens_q =
      builder.metadata_i32("cu_seqlens_q" + suffix, prefix_sums(lengths.seqlens_q));
  builder.metadata_i32("cu_seqlens_k" + suffix, prefix_sums(lengths.seqlens_k));
  metadata.kv_lens = builder.metadata_i32("kv_lens" + suffix, lengths.seqlens_k);
  for (const std::int64_t seqlen_q : lengths.seqlens_q) {
    metadata.max_seqlen_q = std::max(metadata.max_seqlen_q, seqlen_q);
  }
  return metadata;
}

AttentionCall call_of(const CallMetadata& metadata) {
  AttentionCall call;
  call.cu_seqlens_q = {metadata.cu_seqlens_q, 0};
  call.kv_lens = {metadata.kv_lens, 0};
  call.max_seqlen_q = metadata.max_seqlen_q;
  return call;
}

/// Attention of one half, whose rows begin at `first_row`.
void attend(RankBuilder& builder, const SplitBuffers& buffers, AttentionCall call,
            std::int64_t first_row, const std::string& label) {
  const RankShape& shape = builder.shape();
  call.q = {buffers.q_local, first_row * shape.q_row_elems()};
  call.out = {buffers.out_local, first_row * shape.q_row_elems()};
  call.lse = {buffers.lse_local, first_row * shape.num_heads_q};
  builder.launch(label, attention_launch(shape, buffers.common, call));
}

/// Adds to a rank its part of a step that is split, one call per half. Source: SGLang's zigzag with
/// FlashAttention.
void build_halves(RankBuilder& builder, const Share& share, const Step& step) {
  SplitBuffers buffers;
  buffers.common = builder.common(step);
  add_split_metadata(builder, share.rows, buffers);
  add_split_facts(builder, share);
  const CallMetadata prev =
      add_call(builder, layout::half_lengths(share.batch, share.rank, Half::prev), "_prev");
  const CallMetadata next =
      add_call(builder, layout::half_lengths(share.batch, share.rank, Half::next), "_next");
  add_split_workspaces(builder, share.rows, buffers);
  prepare_split(builder, share.rows, buffers);
  AttentionCall early = call_of(prev);
  AttentionCall late = call_of(next);
  early.sinks = builder.sinks();
  late.sinks = early.sinks;
  attend(builder, buffers, early, 0, "attention of the early blocks");
  attend(builder, buffers, late, layout::prev_rows(share.batch, share.rank),
         "attention of the late blocks");
  finish_split(builder, share.rows, buffers);
}

/// The same with one call of twice the batch: the early blocks as sequences 0 .. bs-1, the late
/// ones as bs .. 2bs-1, every request's pages twice. Source: SGLang's zigzag with TRT-LLM MHA.
void build_combined(RankBuilder& builder, const Share& share, const Step& step) {
  const RankShape& shape = builder.shape();
  layout::HalfLengths lengths = layout::half_lengths(share.batch, share.rank, Half::prev);
  const layout::HalfLengths late = layout::half_lengths(share.batch, share.rank, Half::next);
  lengths.seqlens_q.insert(lengths.seqlens_q.end(), late.seqlens_q.begin(), late.seqlens_q.end());
  lengths.seqlens_k.insert(lengths.seqlens_k.end(), late.seqlens_k.begin(), late.seqlens_k.end());

  SplitBuffers buffers;
  buffers.common = builder.common(step);
  add_split_metadata(builder, share.rows, buffers);
  add_split_facts(builder, share);
  AttentionCall call = call_of(add_call(builder, lengths, "_combined"));
  std::vector<std::int64_t> table = block_table_lines(step, shape.max_pages);
  const std::vector<std::int64_t> once = table;
  table.insert(table.end(), once.begin(), once.end());
  call.block_table =
      BufferRef{builder.metadata("block_table_combined", DType::i32,
                                 {2 * shape.num_seqs, shape.max_pages}, std::move(table)),
                0};
  call.num_seqs = 2 * shape.num_seqs;
  call.sinks = builder.sinks();
  add_split_workspaces(builder, share.rows, buffers);
  prepare_split(builder, share.rows, buffers);
  attend(builder, buffers, call, 0, "attention of early and late blocks");
  finish_split(builder, share.rows, buffers);
}

}  // namespace

void build_zigzag(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.is_cp_on = layout::is_zigzag_applicable(step, topology.cp);
  // All calls walk keys in tiles from key 0, so a row's bits do not depend on the split.
  plan.is_bitwise = true;
  plan.groups = cp_groups(topology);
  build_ranks(problem, step, plan, [&](RankPlan& rank) {
    const RankShape shape = make_rank_shape(problem, step, rank);
    RankBuilder builder{rank, shape};
    const Share share = make_share(problem, step, rank);
    if (plan.strategy == StrategyKind::zigzag_combined) {
      build_combined(builder, share, step);
    } else {
      build_halves(builder, share, step);
    }
  });
}

}  // namespace cpverify::plan
