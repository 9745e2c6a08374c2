#pragma once

#include <cstdint>
#include <string>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "plan/launches.hpp"

/// What strategies that exchange rows within a group have in common.
namespace cpverify::plan {

/// Rows of `row_bytes` bytes, dense in both buffers: target[i] = source[index[i]].
[[nodiscard]] RowGather dense_rows(BufferId source, BufferId index, BufferId target,
                                   std::int64_t num_rows, std::int64_t row_bytes);

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

}  // namespace cpverify::plan
