#include "layout/pcp_virtual_batch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

/// The rows of one rank, request by request.
std::vector<VirtualRow> rank_rows(const std::vector<PcpRequest>& requests, std::int64_t rank,
                                  std::uint32_t pcp_size) {
  std::vector<VirtualRow> rows;
  for (std::size_t index = 0; index < requests.size(); ++index) {
    const PcpRequest& request = requests[index];
    if (request.is_decode) {
      rows.push_back({index, 0, request.scheduled});
      continue;
    }
    const std::int64_t chunk = pcp_chunk(request.scheduled, pcp_size);
    for (const std::int64_t k : {rank, 2 * std::int64_t{pcp_size} - 1 - rank}) {
      const std::int64_t offset = k * chunk;
      const std::int64_t end = std::min(offset + chunk, request.scheduled);
      if (offset < end) rows.push_back({index, offset, end - offset});
    }
  }
  return rows;
}

/// Calls visit(row, token of the row) for the tokens of a rank in local order.
template <class Visit>
void for_each_token(const VirtualBatch& batch, CpRank rank, const Visit& visit) {
  for (const VirtualRow& row : batch.rows.at(rank.value())) {
    for (std::int64_t i = 0; i < row.length; ++i) visit(row, i);
  }
}

CpRank rank_at(std::size_t index) {
  return CpRank{static_cast<std::uint32_t>(index)};
}

}  // namespace

std::int64_t VirtualBatch::num_tokens() const noexcept {
  std::int64_t total = 0;
  for (const PcpRequest& request : requests) total += request.scheduled;
  return total;
}

VirtualBatch make_virtual_batch(const Step& step, std::uint32_t pcp_size) {
  VirtualBatch batch{pcp_requests(step), {}};
  const auto order_of = [&batch](const VirtualRow& row) {
    if (batch.requests[row.request].is_decode) return 0;
    return batch.start(row) > 0 ? 1 : 2;
  };
  for (std::uint32_t rank = 0; rank < pcp_size; ++rank) {
    std::vector<VirtualRow> rows = rank_rows(batch.requests, rank, pcp_size);
    std::stable_sort(rows.begin(), rows.end(),
                     [&order_of](const VirtualRow& one, const VirtualRow& other) {
                       return order_of(one) < order_of(other);
                     });
    batch.rows.push_back(std::move(rows));
  }
  return batch;
}

std::int64_t decode_rows(const VirtualBatch& batch) noexcept {
  std::int64_t total = 0;
  for (const PcpRequest& request : batch.requests) {
    if (request.is_decode) total += request.scheduled;
  }
  return total;
}

std::int64_t local_rows(const VirtualBatch& batch, CpRank rank) {
  std::int64_t total = 0;
  for (const VirtualRow& row : batch.rows.at(rank.value())) total += row.length;
  return total;
}

std::int64_t max_rows(const VirtualBatch& batch) {
  std::int64_t most = 0;
  for (std::size_t rank = 0; rank < batch.rows.size(); ++rank) {
    most = std::max(most, local_rows(batch, rank_at(rank)));
  }
  return most;
}

std::vector<std::int64_t> local_tokens(const VirtualBatch& batch, CpRank rank) {
  std::vector<std::int64_t> tokens;
  for_each_token(batch, rank, [&](const VirtualRow& row, std::int64_t i) {
    tokens.push_back(batch.requests[row.request].first_token + row.offset + i);
  });
  return tokens;
}

std::vector<std::int64_t> local_positions(const VirtualBatch& batch, CpRank rank) {
  std::vector<std::int64_t> positions;
  for_each_token(batch, rank, [&](const VirtualRow& row, std::int64_t i) {
    positions.push_back(batch.start(row) + i);
  });
  return positions;
}

std::vector<std::int64_t> hidden_restore(const VirtualBatch& batch) {
  std::vector<std::int64_t> restore(static_cast<std::size_t>(batch.num_tokens()), 0);
  const std::int64_t stride = max_rows(batch);
  // Downwards, so that rank 0's replica of a decode is the one that stays.
  for (std::size_t rank = batch.rows.size(); rank-- > 0;) {
    auto row = static_cast<std::int64_t>(rank) * stride;
    for (const std::int64_t token : local_tokens(batch, rank_at(rank))) {
      restore[static_cast<std::size_t>(token)] = row++;
    }
  }
  return restore;
}

std::vector<std::int64_t> gather_index(const VirtualBatch& batch) {
  std::vector<std::int64_t> index;
  const auto stride = static_cast<std::size_t>(max_rows(batch));
  for (std::size_t rank = 0; rank < batch.rows.size(); ++rank) {
    const std::vector<std::int64_t> tokens = local_tokens(batch, rank_at(rank));
    index.insert(index.end(), tokens.begin(), tokens.end());
    index.resize((rank + 1) * stride, 0);
  }
  return index;
}

std::vector<std::int64_t> kv_write_mask(const VirtualBatch& batch) {
  std::vector<std::int64_t> mask;
  const auto stride = static_cast<std::size_t>(max_rows(batch));
  for (std::size_t rank = 0; rank < batch.rows.size(); ++rank) {
    for_each_token(batch, rank_at(rank), [&](const VirtualRow& row, std::int64_t /*i*/) {
      mask.push_back(rank == 0 || !batch.requests[row.request].is_decode ? 1 : 0);
    });
    mask.resize((rank + 1) * stride, 0);
  }
  return mask;
}

}  // namespace cpverify::layout
