#include "plan/row_split.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/row_split.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"
#include "plan/single.hpp"
#include "plan/split_exchange.hpp"
#include "support/round_up.hpp"

namespace cpverify::plan {
namespace {

using layout::RowSplit;
using layout::StepToken;

/// `gathers_padding`: every rank gives its physical rows (interleave), not the largest rank's.
SplitRows rows_of(const RowSplit& split, const Step& step, const RankPlan& rank,
                  bool gathers_padding) {
  SplitRows rows;
  for (const StepToken& token : split.at(rank.cp_rank)) {
    rows.tokens.push_back(token.flat);
    rows.positions.push_back(token.position);
  }
  rows.cp_size = static_cast<std::int64_t>(split.size());
  rows.physical_rows = round_up(layout::max_rows(split), rows.cp_size);
  rows.gather_rows = gathers_padding ? rows.physical_rows : layout::max_rows(split);
  rows.reorder_index = layout::gathered_rows(split, step.num_tokens(), rows.gather_rows);
  rows.group = rank.tp_rank;
  rows.step = step.index;
  return rows;
}

void add_row_counts(RankBuilder& builder, const RowSplit& split, const SplitRows& rows) {
  std::vector<std::int64_t> counts;
  counts.reserve(split.size());
  for (const std::vector<StepToken>& tokens : split) {
    counts.push_back(static_cast<std::int64_t>(tokens.size()));
  }
  builder.metadata_i32("logical_rows", counts);
  builder.metadata_i32("physical_rows", {rows.physical_rows});
}

/// Requests of which the rank has rows, and what the kernels that work by request take: everything
/// counts in the list of those, not in the batch. Source: SGLang, interleave with DSA.
void add_selected_requests(RankBuilder& builder, const std::vector<StepToken>& tokens,
                           const Step& step) {
  std::vector<std::int64_t> requests;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> request_of_token;
  for (const StepToken& token : tokens) {
    const auto row = static_cast<std::int64_t>(token.row);
    if (requests.empty() || requests.back() != row) {
      requests.push_back(row);
      counts.push_back(0);
      lengths.push_back(step.rows[token.row].computed + step.rows[token.row].scheduled);
    }
    ++counts.back();
    request_of_token.push_back(static_cast<std::int64_t>(requests.size()) - 1);
  }
  builder.metadata_i32("selected", requests);
  builder.metadata_i32("selected_counts", counts);
  builder.metadata_i32("cu_seqlens_q_selected", prefix_sums(counts));
  builder.metadata_i32("seq_lens_selected", lengths);
  builder.metadata_i32("cu_seqlens_k_selected", prefix_sums(lengths));
  builder.metadata_i32("token_to_selected", request_of_token);
}

AttentionCall local_call(const SplitBuffers& buffers) {
  AttentionCall call;
  call.q = {buffers.q_local, 0};
  call.out = {buffers.out_local, 0};
  call.lse = {buffers.lse_local, 0};
  return call;
}

/// A rank's rows of a request are a comb, not a suffix: every query is a sequence of its own.
AttentionCall query_by_query(RankBuilder& builder, const std::vector<StepToken>& tokens,
                             const Step& step, AttentionCall call) {
  const std::int64_t width = builder.shape().max_pages;
  std::vector<std::int64_t> lengths;
  std::vector<std::int64_t> table;
  for (const StepToken& token : tokens) {
    lengths.push_back(token.position + 1);
    const std::vector<std::int64_t> line = block_table_line(step.rows[token.row], width);
    table.insert(table.end(), line.begin(), line.end());
  }
  const auto count = static_cast<std::int64_t>(tokens.size());
  const std::vector<std::int64_t> ones(tokens.size(), 1);
  call.cu_seqlens_q = {builder.metadata_i32("cu_seqlens_q", prefix_sums(ones)), 0};
  call.kv_lens = {builder.metadata_i32("kv_lens", lengths), 0};
  call.block_table = BufferRef{
      builder.metadata("block_table_rows", DType::i32, {count, width}, std::move(table)), 0};
  call.num_seqs = count;
  call.max_seqlen_q = count > 0 ? 1 : 0;
  return call;
}

/// A piece ends where its keys end, so that the bottom-right causal mask is right.
AttentionCall request_by_request(RankBuilder& builder, const std::vector<StepToken>& tokens,
                                 const Step& step, AttentionCall call) {
  std::vector<std::int64_t> seqlens_q(step.rows.size(), 0);
  std::vector<std::int64_t> seqlens_k(step.rows.size(), 0);
  for (const StepToken& token : tokens) {
    ++seqlens_q[token.row];
    seqlens_k[token.row] = token.position + 1;
  }
  for (const std::int64_t seqlen_q : seqlens_q) {
    call.max_seqlen_q = std::max(call.max_seqlen_q, seqlen_q);
  }
  call.cu_seqlens_q = {builder.metadata_i32("cu_seqlens_q", prefix_sums(seqlens_q)), 0};
  builder.metadata_i32("cu_seqlens_k", prefix_sums(seqlens_k));
  call.kv_lens = {builder.metadata_i32("kv_lens", seqlens_k), 0};
  return call;
}

void build_rank(const Problem& problem, const Step& step, const RowSplit& split, RankPlan& rank,
                bool is_interleaved) {
  const RankShape shape = make_rank_shape(problem, step, rank);
  RankBuilder builder{rank, shape};
  const SplitRows rows = rows_of(split, step, rank, is_interleaved);
  const std::vector<StepToken>& tokens = split[rank.cp_rank];
  SplitBuffers buffers;
  buffers.common = builder.common(step);
  add_split_metadata(builder, rows, buffers);
  add_row_counts(builder, split, rows);
  if (is_interleaved) add_selected_requests(builder, tokens, step);
  add_split_workspaces(builder, rows, buffers);
  AttentionCall call = local_call(buffers);
  call.sinks = builder.sinks();
  call = is_interleaved ? query_by_query(builder, tokens, step, call)
                        : request_by_request(builder, tokens, step, call);
  prepare_split(builder, rows, buffers);
  builder.launch("attention of the rank's rows", attention_launch(shape, buffers.common, call));
  finish_split(builder, rows, buffers);
}

void build(const Problem& problem, const Step& step, Plan& plan, bool is_interleaved) {
  const TopologySpec& topology = problem.scenario.topology;
  plan.is_cp_on = is_interleaved ? layout::is_interleave_applicable(step, topology.cp)
                                 : layout::is_contiguous_applicable(step, topology.cp);
  // Every call walks keys in tiles from key 0, so a row's bits do not depend on the split.
  plan.is_bitwise = true;
  plan.groups = cp_groups(topology);
  if (!plan.is_cp_on) {
    for (RankPlan& rank : plan.ranks) build_whole_step(problem, step, rank);
    return;
  }
  const RowSplit split = is_interleaved ? layout::split_interleaved(step, topology.cp)
                                        : layout::split_contiguously(step, topology.cp);
  for (RankPlan& rank : plan.ranks) build_rank(problem, step, split, rank, is_interleaved);
}

}  // namespace

void build_interleave(const Problem& problem, const Step& step, Plan& plan) {
  build(problem, step, plan, true);
}

void build_contiguous(const Problem& problem, const Step& step, Plan& plan) {
  build(problem, step, plan, false);
}

}  // namespace cpverify::plan
