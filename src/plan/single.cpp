#include "plan/single.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

struct RowLengths {
  std::vector<std::int64_t> seqlens_q;
  std::vector<std::int64_t> seqlens_k;
};

RowLengths row_lengths(const Step& step) {
  RowLengths lengths;
  for (const StepRow& row : step.rows) {
    lengths.seqlens_q.push_back(row.scheduled);
    lengths.seqlens_k.push_back(row.computed + row.scheduled);
  }
  return lengths;
}

}  // namespace

void build_whole_step(const Problem& problem, const Step& step, RankPlan& rank) {
  const RankShape shape = make_rank_shape(problem, step, rank);
  RankBuilder builder{rank, shape};
  const CommonBuffers buffers = builder.common(step);
  const RowLengths lengths = row_lengths(step);

  builder.metadata("positions", DType::i64, {shape.padded_rows},
                   padded(step_positions(step), shape.padded_rows, 0));
  const BufferId cu_seqlens_q =
      builder.metadata_i32("cu_seqlens_q", prefix_sums(lengths.seqlens_q));
  builder.metadata_i32("cu_seqlens_k", prefix_sums(lengths.seqlens_k));
  const BufferId kv_lens = builder.metadata_i32("kv_lens", lengths.seqlens_k);
  const std::vector<std::int64_t> row_tokens =
      rank.buffers.at(buffers.out.value()).output->row_tokens;
  const BufferId lse = builder.lse_output("lse", row_tokens);

  builder.fill("zero out", buffers.out, 0);
  builder.fill("set lse to -inf", lse, kNegativeInfinityBits);
  builder.launch("write k and v to the pools",
                 kv_write_launch(shape, buffers, {buffers.k, 0}, {buffers.v, 0},
                                 shape.bytes(shape.kv_row_elems())));
  AttentionCall call;
  call.q = {buffers.q, 0};
  call.cu_seqlens_q = {cu_seqlens_q, 0};
  call.kv_lens = {kv_lens, 0};
  call.out = {buffers.out, 0};
  call.lse = {lse, 0};
  call.sinks = builder.sinks();
  for (const std::int64_t seqlen_q : lengths.seqlens_q) {
    call.max_seqlen_q = std::max(call.max_seqlen_q, seqlen_q);
  }
  builder.launch("attention of all rows", attention_launch(shape, buffers, call));
}

void build_single(const Problem& problem, const Step& step, Plan& plan) {
  for (RankPlan& rank : plan.ranks) build_whole_step(problem, step, rank);
}

void build_ranks(const Problem& problem, const Step& step, Plan& plan,
                 const std::function<void(RankPlan&)>& build_split) {
  for (RankPlan& rank : plan.ranks) {
    if (plan.is_cp_on) {
      build_split(rank);
    } else {
      build_whole_step(problem, step, rank);
    }
  }
}

}  // namespace cpverify::plan
