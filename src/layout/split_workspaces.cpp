#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

std::int64_t ceil_div(std::int64_t value, std::int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// Rows that every rank of a padded gather sends.
std::int64_t padded_rows(const BatchSplit& batch, std::int64_t largest) {
  const std::int64_t cp = batch.spec().cp;
  switch (batch.spec().kind) {
    case SplitKind::zigzag:
    case SplitKind::zigzag_combined:
      return ceil_div(largest, 2 * cp) * 2 * cp;
    case SplitKind::interleave:
      return ceil_div(largest, cp) * cp;
    case SplitKind::pcp_head_tail: {
      std::int64_t rows = 0;
      for (const SplitRow& row : batch.rows()) {
        rows += row.is_decode ? row.scheduled : 2 * ceil_div(row.scheduled, 2 * cp);
      }
      return rows;
    }
    default:
      return largest;
  }
}

/// Keys that a rank has in its cache of the requests of the step, for the launch of a kernel that
/// must not wait for their lengths.
Workspace shard_bound(const BatchSplit& batch, std::uint32_t rank) {
  const std::int64_t shards = batch.num_shards();
  const std::int64_t size = batch.spec().interleave_size;
  std::int64_t longest = 0;
  std::int64_t local = 0;
  for (const SplitRow& row : batch.rows()) {
    const std::int64_t total = row.computed + row.scheduled;
    longest = std::max(longest, total);
    local = std::max(local, count(shard_of(0, total, batch.shard(rank), shards, size)));
  }
  return {"local keys of the longest request", rank, RowUnit::key_value, local,
          ceil_div(longest, shards * size) * size};
}

/// The block of keys that travels: every place sends as many rows as the fullest may have.
Workspace ring_block(const BatchSplit& batch, std::uint32_t rank) {
  const SplitSpec& spec = batch.spec();
  const bool has_ulysses = spec.kind == SplitKind::ulysses_ring;
  const std::int64_t places = has_ulysses ? spec.cp / spec.ulysses : spec.cp;
  const std::int64_t pieces = spec.ring_order == RingOrder::zigzag ? 2 : 1;
  std::int64_t capacity = 0;
  std::int64_t needed = 0;
  for (std::size_t index = 0; index < batch.rows().size(); ++index) {
    const SplitRow& row = batch.rows()[index];
    capacity += ceil_div(row.computed, places) + pieces * ceil_div(row.scheduled, pieces * places);
    needed += batch.local_length(index, rank);
  }
  return {"travelling keys", rank, RowUnit::key_value, needed, capacity};
}

}  // namespace

std::vector<Workspace> BatchSplit::workspaces() const {
  const std::vector<std::int64_t> rows = rows_per_rank();
  const std::int64_t largest = *std::max_element(rows.begin(), rows.end());
  const std::int64_t padded = is_split_ ? padded_rows(*this, largest) : largest;
  const bool is_ring = spec_.kind == SplitKind::ring || spec_.kind == SplitKind::ulysses_ring;
  const bool has_gather = is_split_ && spec_.cp > 1 && !is_ring &&
                          spec_.kind != SplitKind::ulysses && spec_.kind != SplitKind::dcp &&
                          spec_.kind != SplitKind::dcp_virtual;
  std::vector<Workspace> all;
  for (std::uint32_t rank = 0; rank < num_ranks_; ++rank) {
    all.push_back({"local rows", rank, RowUnit::query, rows[rank], padded});
    if (has_gather) {
      all.push_back({"gathered keys", rank, RowUnit::key_value, num_tokens(),
                     std::int64_t{spec_.cp} * padded});
    }
    if (num_shards() > 1) all.push_back(shard_bound(*this, rank));
    if (is_ring) all.push_back(ring_block(*this, rank));
  }
  return all;
}

}  // namespace cpverify::layout
