#include "plan/dcp.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/topology.hpp"
#include "plan/combine.hpp"
#include "plan/launches.hpp"
#include "plan/merge_launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/shard_reads.hpp"
#include "plan/single.hpp"

namespace cpverify::plan {
namespace {

/// What the operations of a rank have in common.
struct DcpRank {
  DcpSpec spec;
  ShardScheme scheme;
  HeadGroup group;
  CommonBuffers common;
  std::optional<BufferRef> sinks = {};  ///< Of all heads of the group.
};

std::int64_t longest(const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

/// The new tokens' own keys: K and V rows of the step as pages of one token.
AttentionCall new_token_call(RankBuilder& builder, const DcpRank& rank, const Step& step) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(step.rows.size());
  for (const StepRow& row : step.rows) lengths.push_back(row.scheduled);
  const std::int64_t width = longest(lengths);
  std::vector<std::int64_t> table;
  std::int64_t first = 0;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < width; ++i) table.push_back(i < length ? first + i : 0);
    first += length;
  }
  const auto num_rows = static_cast<std::int64_t>(step.rows.size());
  AttentionCall call;
  call.q = {rank.common.q, 0};
  call.cu_seqlens_q = {builder.metadata_i32("cu_seqlens_q", prefix_sums(lengths)), 0};
  call.kv_lens = {builder.metadata_i32("kv_lens_new", lengths), 0};
  call.max_seqlen_q = width;
  call.k_pool = BufferRef{rank.common.k, 0};
  call.v_pool = BufferRef{rank.common.v, 0};
  call.block_table = BufferRef{
      builder.metadata("block_table_new", DType::i32, {num_rows, width}, std::move(table)), 0};
  call.max_pages = width;
  call.block_size = 1;
  return call;
}

/// The rank's part of the tokens that were in the cache before the step, for the heads of the
/// group.
GroupPartial attend_context(RankBuilder& builder, const DcpRank& rank, const AttentionCall& own,
                            const Step& step) {
  ShardReads reads{"kv_lens_context", {}};
  for (const StepRow& row : step.rows) reads.sequences.push_back({&row, row.computed});
  const BufferId q_all = gather_query_heads(builder, rank.common.q, rank.group);
  const GroupPartial partial = add_partial(builder, rank.group);
  AttentionCall call;
  call.q = {q_all, 0};
  call.cu_seqlens_q = own.cu_seqlens_q;
  set_shard_reads(builder, rank.scheme, reads, call);
  call.out = {partial.out, 0};
  call.lse = {partial.lse, 0};
  call.max_seqlen_q = own.max_seqlen_q;
  call.is_causal = false;
  call.num_heads_q = builder.shape().num_heads_q * rank.group.size;
  builder.launch("attention of the cached shard",
                 attention_launch(builder.shape(), rank.common, call));
  return partial;
}

/// Row i merges with itself where its request has tokens in the cache.
BufferId add_merge_index(RankBuilder& builder, const Step& step) {
  std::vector<std::int64_t> index;
  for (const StepRow& row : step.rows) {
    for (std::int64_t i = 0; i < row.scheduled; ++i) {
      const auto place = static_cast<std::int64_t>(index.size());
      index.push_back(row.computed > 0 ? place : kPadRow);
    }
  }
  return builder.metadata_i32("merge_index",
                              padded(std::move(index), builder.shape().padded_rows, kPadRow));
}

/// Merges the context into `out` and `lse`, which hold the new tokens' part.
void merge_context(RankBuilder& builder, const DcpRank& rank, const OwnHeads& context, BufferId lse,
                   const Step& step) {
  const RankShape& shape = builder.shape();
  const bool is_f32 = rank.spec.combine == DcpCombine::ag_rs_f32;
  StatesMerge merge;
  merge.prefix = {context.out, 0};
  merge.prefix_lse = {context.lse, 0};
  merge.suffix = {rank.common.out, 0};
  merge.suffix_lse = {lse, 0};
  merge.prefix_dtype = is_f32 ? DType::f32 : shape.dtype;
  merge.suffix_dtype = shape.dtype;
  // The kernel has the f32 side second: merging does not mind which is which.
  if (is_f32) {
    std::swap(merge.prefix, merge.suffix);
    std::swap(merge.prefix_lse, merge.suffix_lse);
    std::swap(merge.prefix_dtype, merge.suffix_dtype);
  }
  merge.out = {rank.common.out, 0};
  merge.lse = {lse, 0};
  merge.index = {add_merge_index(builder, step), 0};
  const MergeShape rows{shape.dtype, shape.padded_rows, shape.num_heads_q, shape.head_dim};
  builder.launch("merge the context into the new tokens' part", merge_states_launch(rows, merge));
}

/// Context and new tokens apart; without any context there is nothing to exchange.
void build_split_rank(RankBuilder& builder, const DcpRank& rank, BufferId lse, const Step& step) {
  const RankShape& shape = builder.shape();
  AttentionCall own = new_token_call(builder, rank, step);
  own.out = {rank.common.out, 0};
  own.lse = {lse, 0};
  // The part that every row has, once: that of its own tokens.
  if (rank.sinks) {
    own.sinks = BufferRef{rank.sinks->buffer, rank.scheme.shard.index * shape.num_heads_q};
  }
  // Lengths of the whole requests decide, which are equal on all ranks: the branch has collectives.
  const bool is_merged = has_context(step);
  OwnHeads context;
  if (is_merged) {
    const GroupPartial partial = attend_context(builder, rank, own, step);
    const DType dtype = rank.spec.combine == DcpCombine::ag_rs_f32 ? DType::f32 : shape.dtype;
    context.out = builder.workspace("out_context", dtype,
                                    {shape.padded_rows, shape.num_heads_q, shape.head_dim});
    context.lse =
        builder.workspace("lse_context", DType::f32, {shape.padded_rows, shape.num_heads_q});
    combine_partials(builder, rank.spec.combine, partial, context, rank.group);
  }
  builder.launch("attention of the new tokens", attention_launch(shape, rank.common, own));
  if (is_merged) merge_context(builder, rank, context, lse, step);
}

/// Every query as a sequence of its own, because the keys it sees on a rank do not follow from
/// those that the last query sees.
void build_cached_rank(RankBuilder& builder, const DcpRank& rank, BufferId lse, const Step& step) {
  const RankShape& shape = builder.shape();
  ShardReads reads{"kv_lens_local", {}, true};
  for (const StepRow& row : step.rows) {
    for (std::int64_t i = 0; i < row.scheduled; ++i) {
      reads.sequences.push_back({&row, row.computed + i + 1});
    }
  }
  const std::vector<std::int64_t> ones(reads.sequences.size(), 1);
  const BufferId q_all = gather_query_heads(builder, rank.common.q, rank.group);
  const GroupPartial partial = add_partial(builder, rank.group);
  AttentionCall call;
  call.q = {q_all, 0};
  call.cu_seqlens_q = {builder.metadata_i32("cu_seqlens_q", prefix_sums(ones)), 0};
  set_shard_reads(builder, rank.scheme, reads, call);
  call.out = {partial.out, 0};
  call.lse = {partial.lse, 0};
  call.max_seqlen_q = shape.num_tokens > 0 ? 1 : 0;
  call.is_causal = false;
  call.num_seqs = shape.num_tokens;
  call.num_heads_q = shape.num_heads_q * rank.group.size;
  // One shard counts the sinks; the first has a key of every row.
  if (rank.scheme.shard.index == 0) call.sinks = rank.sinks;
  builder.launch("attention of the sharded cache", attention_launch(shape, rank.common, call));
  combine_partials(builder, rank.spec.combine, partial, {rank.common.out, lse}, rank.group);
}

/// Query heads of the decode group of a rank: its members hold consecutive ones.
HeadRange group_heads(const RankPlan& rank, std::uint32_t size) {
  const HeadRange own = rank.heads_q;
  return {own.first - rank.kv_shard.index * own.count, own.count * size};
}

void build_rank(const Problem& problem, const Step& step, StrategyKind strategy, RankPlan& plan) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.kv_shard = layout::kv_shard_of(topology, plan);
  const RankShape shape = make_rank_shape(problem, step, plan);
  RankBuilder builder{plan, shape};
  DcpRank rank;
  rank.spec = problem.scenario.dcp;
  rank.scheme = {strategy, rank.spec.owner, plan.kv_shard, problem.block_tokens()};
  rank.group = {plan.rank.value() / topology.dcp, topology.dcp, plan.kv_shard.index, step.index};
  rank.common = builder.common(step, stored_slots(rank.scheme, step));
  rank.sinks = builder.sinks(group_heads(plan, topology.dcp));
  builder.metadata("positions", DType::i64, {shape.padded_rows},
                   padded(step_positions(step), shape.padded_rows, 0));
  const std::vector<std::int64_t> row_tokens =
      plan.buffers.at(rank.common.out.value()).output->row_tokens;
  const BufferId lse = builder.lse_output("lse", row_tokens);

  builder.fill("zero out", rank.common.out, 0);
  builder.fill("set lse to -inf", lse, kNegativeInfinityBits);
  builder.launch("write the own tokens' k and v to the pools",
                 kv_write_launch(shape, rank.common, {rank.common.k, 0}, {rank.common.v, 0},
                                 shape.bytes(shape.kv_row_elems())));
  if (rank.spec.visibility == DcpVisibility::split) {
    build_split_rank(builder, rank, lse, step);
  } else {
    build_cached_rank(builder, rank, lse, step);
  }
}

MergeNumerics merge_numerics(const Problem& problem, const Step& step) {
  const DcpSpec& spec = problem.scenario.dcp;
  const std::uint32_t shards = problem.scenario.topology.dcp;
  if (spec.visibility == DcpVisibility::cached) {
    return combine_numerics(spec.combine, problem.scenario.model.dtype, shards);
  }
  if (!has_context(step)) return {};
  MergeNumerics numerics = combine_numerics(spec.combine, problem.scenario.model.dtype, shards + 1);
  numerics.depth = 2;
  return numerics;
}

}  // namespace

void build_dcp(const Problem& problem, const Step& step, Plan& plan) {
  const TopologySpec world = layout::world_of(problem.scenario.topology, plan.strategy);
  plan.is_cp_on = world.dcp > 1;
  // One shard is the whole cache, and its group computes what a single device does.
  plan.is_bitwise = !plan.is_cp_on;
  for (const std::vector<RankId>& members : layout::dcp_groups(world)) {
    plan.groups.push_back({fmt::format("dcp[{}]", plan.groups.size()), members});
  }
  build_ranks(problem, step, plan,
              [&](RankPlan& rank) { build_rank(problem, step, plan.strategy, rank); });
  if (plan.is_cp_on) plan.numerics.merge = merge_numerics(problem, step);
}

}  // namespace cpverify::plan
