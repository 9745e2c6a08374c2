#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

/// What strategies that exchange rows within a group have in common.
namespace cpverify::plan {

/// Rows of `row_bytes` bytes, dense in both buffers: target[i] = source[index[i]].
[[nodiscard]] RowGather dense_rows(BufferId source, BufferId index, BufferId target,
                                   std::int64_t num_rows, std::int64_t row_bytes);

/// Where a rank's rows of the step go. K and V may lie in one buffer, token beside token.
struct LocalRows {
  BufferId index;  ///< i32: row of the step of each local row; -1: zeros.
  BufferId q;      ///< Dense rows.
  BufferRef k;
  BufferRef v;
  std::int64_t q_rows = 0;
  std::int64_t kv_rows = 0;
  std::int64_t kv_stride_elems = 0;  ///< From one row of `k`, and of `v`, to the next.
};

/// Takes this rank's rows out of the step's q, k and v.
void take_local_rows(RankBuilder& builder, const CommonBuffers& common, const LocalRows& rows);

/// Rows with K and V of a token one after the other, on their way into buffers of their own.
struct KvSplit {
  BufferId source;
  BufferId index;  ///< i32: row of `source` of each row of `k` and of `v`.
  BufferId k;
  BufferId v;
  std::int64_t num_rows = 0;
};

/// `order` says in which order the index puts them: "put k rows in <order>".
void split_kv_rows(RankBuilder& builder, const KvSplit& split, std::string_view order);

/// A whole exchange from one buffer to another; `count` is that of Collective.
struct GroupExchange {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::uint32_t group = 0;  ///< Index into Plan::groups.
  BufferId send;
  BufferId recv;
  std::int64_t count = 0;
};

[[nodiscard]] Collective group_collective(const GroupExchange& exchange, DType dtype,
                                          std::string meaning);

/// Attention rows of all ranks of a CP group on their way into the step's order.
struct AttentionGather {
  std::uint32_t group = 0;  ///< Index into Plan::groups.
  std::uint32_t step = 0;
  std::int64_t rows = 0;  ///< That every rank gives, pads included.
  BufferId local;
  BufferId gathered;       ///< Workspace: the rows of all ranks.
  BufferId reorder_index;  ///< i32: gathered row of each row of `out`.
  BufferId out;
};

/// The end of strategies that split rows: an all-gather, and the rows in the step's order.
void gather_attention_rows(RankBuilder& builder, const AttentionGather& gather);

}  // namespace cpverify::plan
