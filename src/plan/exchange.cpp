#include "plan/exchange.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {

RowGather dense_rows(BufferId source, BufferId index, BufferId target, std::int64_t num_rows,
                     std::int64_t row_bytes) {
  RowGather gather;
  gather.source = {source, 0};
  gather.index = {index, 0};
  gather.target = {target, 0};
  gather.num_rows = num_rows;
  gather.row_bytes = row_bytes;
  gather.source_stride_bytes = row_bytes;
  gather.target_stride_bytes = row_bytes;
  return gather;
}

void take_local_rows(RankBuilder& builder, const CommonBuffers& common, const LocalRows& rows) {
  const RankShape& shape = builder.shape();
  builder.launch("gather the rank's query rows",
                 gather_rows_launch(dense_rows(common.q, rows.index, rows.q, rows.q_rows,
                                               shape.bytes(shape.q_row_elems()))));
  RowGather gather = dense_rows(common.k, rows.index, rows.k.buffer, rows.kv_rows,
                                shape.bytes(shape.kv_row_elems()));
  gather.target = rows.k;
  gather.target_stride_bytes = shape.bytes(rows.kv_stride_elems);
  builder.launch("gather the rank's k rows", gather_rows_launch(gather));
  gather.source = {common.v, 0};
  gather.target = rows.v;
  builder.launch("gather the rank's v rows", gather_rows_launch(gather));
}

void split_kv_rows(RankBuilder& builder, const KvSplit& split, std::string_view order) {
  const RankShape& shape = builder.shape();
  RowGather gather = dense_rows(split.source, split.index, split.k, split.num_rows,
                                shape.bytes(shape.kv_row_elems()));
  gather.source_stride_bytes = 2 * gather.row_bytes;
  builder.launch(fmt::format("put k rows in {}", order), gather_rows_launch(gather));
  gather.source = {split.source, shape.kv_row_elems()};
  gather.target = {split.v, 0};
  builder.launch(fmt::format("put v rows in {}", order), gather_rows_launch(gather));
}

Collective group_collective(const GroupExchange& exchange, DType dtype, std::string meaning) {
  Collective collective;
  collective.kind = exchange.kind;
  collective.group = exchange.group;
  collective.send = {exchange.send, 0};
  collective.recv = {exchange.recv, 0};
  collective.count = exchange.count;
  collective.dtype = dtype;
  collective.meaning = std::move(meaning);
  return collective;
}

void gather_attention_rows(RankBuilder& builder, const AttentionGather& gather) {
  const RankShape& shape = builder.shape();
  builder.collective(
      "all-gather attention rows",
      group_collective({CollectiveKind::all_gather, gather.group, gather.local, gather.gathered,
                        gather.rows * shape.q_row_elems()},
                       shape.dtype, fmt::format("attention rows of step {}", gather.step)));
  builder.launch(
      "reorder attention rows",
      gather_rows_launch(dense_rows(gather.gathered, gather.reorder_index, gather.out,
                                    shape.padded_rows, shape.bytes(shape.q_row_elems()))));
}

}  // namespace cpverify::plan
