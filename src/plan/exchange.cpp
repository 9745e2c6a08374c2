#include "plan/exchange.hpp"

#include <cstdint>
#include <string>
#include <utility>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "plan/launches.hpp"

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

}  // namespace cpverify::plan
