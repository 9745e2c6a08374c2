#include "plan/combine.hpp"

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "plan/exchange.hpp"
#include "plan/launches.hpp"
#include "plan/merge_launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

/// Of the heads of all ranks.
MergeShape group_shape(const RankShape& shape, const HeadGroup& group) {
  return {shape.dtype, shape.padded_rows, shape.num_heads_q * group.size, shape.head_dim};
}

/// A whole exchange over the group, of elements of `dtype`.
Collective head_collective(const GroupExchange& exchange, DType dtype, const HeadGroup& group,
                           std::string_view what) {
  return group_collective(exchange, dtype, fmt::format("{} of step {}", what, group.step));
}

/// The sums of the scaled partials, every rank's heads on that rank.
void scatter_sums(RankBuilder& builder, DType sum_dtype, BufferId scaled, BufferId target,
                  const HeadGroup& group) {
  const RankShape& shape = builder.shape();
  builder.collective("reduce-scatter scaled partials over heads",
                     head_collective({CollectiveKind::reduce_scatter, group.group, scaled, target,
                                      shape.padded_rows * shape.q_row_elems()},
                                     sum_dtype, group, "scaled partial rows"));
}

/// The same by sums of all heads on every rank, of which each takes its own.
void reduce_sums(RankBuilder& builder, BufferId scaled, BufferId target, const HeadGroup& group) {
  const RankShape& shape = builder.shape();
  const std::int64_t own_elems = shape.padded_rows * shape.q_row_elems();
  const BufferId summed = builder.workspace(
      "out_summed", {group.size, shape.padded_rows, shape.num_heads_q, shape.head_dim});
  builder.collective("all-reduce scaled partials",
                     head_collective({CollectiveKind::all_reduce, group.group, scaled, summed,
                                      group.size * own_elems},
                                     shape.dtype, group, "scaled partial rows"));
  builder.copy("take the own heads' rows",
               {{summed, group.own * own_elems}, {target, 0}, shape.bytes(own_elems)});
}

/// LSEs of all ranks, own outputs scaled by their share, and the sums of those.
void combine_by_scaling(RankBuilder& builder, DcpCombine combine, const GroupPartial& partial,
                        const OwnHeads& own, const HeadGroup& group) {
  const RankShape& shape = builder.shape();
  const DType sum_dtype = combine == DcpCombine::ag_rs_f32 ? DType::f32 : shape.dtype;
  const std::int64_t rows = shape.padded_rows;
  const std::int64_t size = group.size;
  const std::int64_t own_lses = rows * shape.num_heads_q;
  const BufferId gathered =
      builder.workspace("lse_gathered", DType::f32, {size, rows, size * shape.num_heads_q});
  const BufferId scaled =
      builder.workspace("out_scaled", sum_dtype, {size, rows, shape.num_heads_q, shape.head_dim});
  const BufferId merged =
      builder.workspace("lse_merged", DType::f32, {size, rows, shape.num_heads_q});

  builder.collective("all-gather partial lses",
                     head_collective({CollectiveKind::all_gather, group.group, partial.lse,
                                      gathered, size * own_lses},
                                     DType::f32, group, "partial lses"));

  LseScale scale;
  scale.partial = {partial.out, 0};
  scale.lses = {gathered, 0};
  scale.scaled = {scaled, 0};
  scale.lse = {merged, 0};
  scale.own = group.own;
  scale.num_partials = size;
  scale.scaled_dtype = sum_dtype;
  builder.launch("scale the partial by its share",
                 scale_by_lse_launch(group_shape(shape, group), scale));

  if (combine == DcpCombine::ag_ar) {
    reduce_sums(builder, scaled, own.out, group);
  } else {
    scatter_sums(builder, sum_dtype, scaled, own.out, group);
  }
  builder.copy("take the own heads' lses",
               {{merged, group.own * own_lses}, {own.lse, 0}, own_lses * 4});
}

/// Outputs with their LSEs of the own heads, a part from each rank of the group.
BufferId exchange_packed(RankBuilder& builder, const GroupPartial& partial,
                         const HeadGroup& group) {
  const RankShape& shape = builder.shape();
  const MergeShape whole = group_shape(shape, group);
  const std::vector<std::int64_t> extents{group.size, shape.padded_rows, shape.num_heads_q,
                                          packed_row_elems(whole)};
  const BufferId send = builder.workspace("packed_send", shape.dtype, extents);

  PartialPack pack;
  pack.partial = {partial.out, 0};
  pack.lse = {partial.lse, 0};
  pack.packed = {send, 0};
  pack.num_ranks = group.size;
  builder.launch("pack the partial with its lses", pack_partial_launch(whole, pack));
  if (group.size == 1) return send;

  const BufferId recv = builder.workspace("packed_recv", shape.dtype, extents);
  const std::int64_t count = shape.padded_rows * shape.num_heads_q * packed_row_elems(whole);
  builder.collective("all-to-all packed partials over heads",
                     head_collective({CollectiveKind::all_to_all, group.group, send, recv, count},
                                     shape.dtype, group, "packed partial rows"));
  return recv;
}

void merge_packed(RankBuilder& builder, BufferId packed, std::int64_t num_partials,
                  const OwnHeads& own) {
  const RankShape& shape = builder.shape();
  PackedMerge merge;
  merge.packed = {packed, 0};
  merge.out = {own.out, 0};
  merge.lse = {own.lse, 0};
  merge.num_partials = num_partials;
  builder.launch("merge the partials",
                 merge_packed_launch(
                     {shape.dtype, shape.padded_rows, shape.num_heads_q, shape.head_dim}, merge));
}

}  // namespace

BufferId gather_query_heads(RankBuilder& builder, BufferId q, const HeadGroup& group) {
  const RankShape& shape = builder.shape();
  const std::int64_t rows = shape.padded_rows;
  std::vector<std::int64_t> order;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t rank = 0; rank < group.size; ++rank) order.push_back(rank * rows + row);
  }
  const BufferId head_order = builder.metadata_i32("head_order", std::move(order));
  const BufferId gathered =
      builder.workspace("q_gathered", {group.size, rows, shape.num_heads_q, shape.head_dim});
  const BufferId all_heads =
      builder.workspace("q_all", {rows, group.size * shape.num_heads_q, shape.head_dim});

  builder.collective("all-gather query rows over heads",
                     head_collective({CollectiveKind::all_gather, group.group, q, gathered,
                                      rows * shape.q_row_elems()},
                                     shape.dtype, group, "query rows"));
  builder.launch("put the heads of a row side by side",
                 gather_rows_launch(dense_rows(gathered, head_order, all_heads, rows * group.size,
                                               shape.bytes(shape.q_row_elems()))));
  return all_heads;
}

GroupPartial add_partial(RankBuilder& builder, const HeadGroup& group) {
  const RankShape& shape = builder.shape();
  const std::int64_t heads = shape.num_heads_q * group.size;
  GroupPartial partial;
  partial.out = builder.workspace("out_partial", {shape.padded_rows, heads, shape.head_dim});
  partial.lse = builder.workspace("lse_partial", DType::f32, {shape.padded_rows, heads});
  builder.fill("zero out_partial", partial.out, 0);
  builder.fill("set lse_partial to -inf", partial.lse, kNegativeInfinityBits);
  return partial;
}

void combine_partials(RankBuilder& builder, DcpCombine combine, const GroupPartial& partial,
                      const OwnHeads& own, const HeadGroup& group) {
  switch (combine) {
    case DcpCombine::ag_rs:
    case DcpCombine::ag_rs_f32:
    case DcpCombine::ag_ar:
      combine_by_scaling(builder, combine, partial, own, group);
      break;
    case DcpCombine::a2a:
      merge_packed(builder, exchange_packed(builder, partial, group), group.size, own);
      break;
  }
}

void combine_over_prefill(RankBuilder& builder, const GroupPartial& partial, const OwnHeads& own,
                          const HeadGroup& group, const PrefillGroup& prefill) {
  const RankShape& shape = builder.shape();
  const BufferId packed = exchange_packed(builder, partial, group);
  const std::int64_t row_elems = packed_row_elems(group_shape(shape, group));
  const BufferId all = builder.workspace(
      "packed_all", {prefill.size, group.size, shape.padded_rows, shape.num_heads_q, row_elems});
  const std::int64_t count = group.size * shape.padded_rows * shape.num_heads_q * row_elems;
  builder.collective(
      "all-gather packed partials",
      head_collective({CollectiveKind::all_gather, prefill.group, packed, all, count}, shape.dtype,
                      group, "packed partial rows of all shards"));
  merge_packed(builder, all, std::int64_t{prefill.size} * group.size, own);
}

MergeNumerics combine_numerics(DcpCombine combine, DType dtype, std::uint32_t partials) {
  MergeNumerics numerics;
  numerics.partials = partials;
  numerics.depth = 1;
  numerics.partial_dtype = dtype;
  const bool sums_in_type = combine == DcpCombine::ag_rs || combine == DcpCombine::ag_ar;
  numerics.sum_dtype = sums_in_type ? dtype : DType::f32;
  return numerics;
}

}  // namespace cpverify::plan
