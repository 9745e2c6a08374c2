#include "layout/zigzag.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

/// Block sizes of one request: 2C blocks of `quotient`, the first `remainder` one token longer.
struct Split {
  std::int64_t quotient;
  std::int64_t remainder;
};

Split split(std::int64_t extend, std::uint32_t cp_size) noexcept {
  const std::int64_t num_blocks = 2 * static_cast<std::int64_t>(cp_size);
  return {extend / num_blocks, extend % num_blocks};
}

/// Calls visit(row, first new token, first flattened token, size) for each block of a rank, in
/// local order.
template <class Visit>
void for_each_piece(const ZigzagBatch& batch, CpRank rank, const Visit& visit) {
  for (const Half half : {Half::prev, Half::next}) {
    const BlockIndex block = owned_block(batch.cp_size, rank, half);
    std::int64_t row_start = 0;
    for (const RowExtent& row : batch.rows) {
      const std::int64_t start = block_start(row.extend, batch.cp_size, block);
      visit(row, start, row_start + start, block_size(row.extend, batch.cp_size, block));
      row_start += row.extend;
    }
  }
}

/// Rows of block `block` of the requests before `row`.
std::int64_t rows_before(const ZigzagBatch& batch, std::size_t row, BlockIndex block) noexcept {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < row; ++i) {
    total += block_size(batch.rows[i].extend, batch.cp_size, block);
  }
  return total;
}

}  // namespace

std::int64_t ZigzagBatch::num_tokens() const noexcept {
  std::int64_t total = 0;
  for (const RowExtent& row : rows) {
    total += row.extend;
  }
  return total;
}

ZigzagBatch make_zigzag_batch(const Step& step, std::uint32_t cp_size) {
  ZigzagBatch batch{cp_size, {}};
  batch.rows.reserve(step.rows.size());
  for (const StepRow& row : step.rows) {
    batch.rows.push_back({row.computed, row.scheduled});
  }
  return batch;
}

bool is_zigzag_applicable(const Step& step, std::uint32_t cp_size) noexcept {
  if (cp_size <= 1 || step.rows.empty()) {
    return false;
  }
  const std::int64_t num_blocks = 2 * static_cast<std::int64_t>(cp_size);
  return std::all_of(step.rows.begin(), step.rows.end(), [num_blocks](const StepRow& row) {
    return row.state == RowState::prefill && row.scheduled >= num_blocks;
  });
}

std::int64_t block_size(std::int64_t extend, std::uint32_t cp_size, BlockIndex block) noexcept {
  const Split sizes = split(extend, cp_size);
  return sizes.quotient + (block.value() < sizes.remainder ? 1 : 0);
}

std::int64_t block_start(std::int64_t extend, std::uint32_t cp_size, BlockIndex block) noexcept {
  const Split sizes = split(extend, cp_size);
  const std::int64_t index = block.value();
  return index * sizes.quotient + std::min(index, sizes.remainder);
}

CpRank block_owner(std::uint32_t cp_size, BlockIndex block) noexcept {
  const std::uint32_t index = block.value();
  return CpRank{index < cp_size ? index : 2 * cp_size - 1 - index};
}

BlockIndex owned_block(std::uint32_t cp_size, CpRank rank, Half half) noexcept {
  return BlockIndex{half == Half::prev ? rank.value() : 2 * cp_size - 1 - rank.value()};
}

std::int64_t shard_size(std::int64_t extend, std::uint32_t cp_size, CpRank rank) noexcept {
  return block_size(extend, cp_size, owned_block(cp_size, rank, Half::prev)) +
         block_size(extend, cp_size, owned_block(cp_size, rank, Half::next));
}

std::int64_t logical_rows(const ZigzagBatch& batch, CpRank rank) noexcept {
  std::int64_t total = 0;
  for (const RowExtent& row : batch.rows) {
    total += shard_size(row.extend, batch.cp_size, rank);
  }
  return total;
}

std::int64_t prev_rows(const ZigzagBatch& batch, CpRank rank) noexcept {
  return rows_before(batch, batch.rows.size(), owned_block(batch.cp_size, rank, Half::prev));
}

std::int64_t max_rows(const ZigzagBatch& batch) noexcept {
  std::int64_t largest = 0;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    largest = std::max(largest, logical_rows(batch, CpRank{rank}));
  }
  return largest;
}

std::int64_t physical_rows(const ZigzagBatch& batch) noexcept {
  const std::int64_t alignment = 2 * static_cast<std::int64_t>(batch.cp_size);
  return (max_rows(batch) + alignment - 1) / alignment * alignment;
}

std::vector<std::int64_t> shard_tokens(const ZigzagBatch& batch, CpRank rank) {
  std::vector<std::int64_t> tokens;
  for_each_piece(batch, rank,
                 [&tokens](const RowExtent& /*row*/, std::int64_t /*start*/, std::int64_t first,
                           std::int64_t size) {
                   for (std::int64_t i = 0; i < size; ++i) {
                     tokens.push_back(first + i);
                   }
                 });
  return tokens;
}

std::vector<std::int64_t> shard_positions(const ZigzagBatch& batch, CpRank rank) {
  std::vector<std::int64_t> positions;
  for_each_piece(batch, rank,
                 [&positions](const RowExtent& row, std::int64_t start, std::int64_t /*first*/,
                              std::int64_t size) {
                   for (std::int64_t i = 0; i < size; ++i) {
                     positions.push_back(row.prefix + start + i);
                   }
                 });
  return positions;
}

HalfLengths half_lengths(const ZigzagBatch& batch, CpRank rank, Half half) {
  const BlockIndex block = owned_block(batch.cp_size, rank, half);
  HalfLengths lengths;
  for (const RowExtent& row : batch.rows) {
    const std::int64_t size = block_size(row.extend, batch.cp_size, block);
    lengths.seqlens_q.push_back(size);
    lengths.seqlens_k.push_back(row.prefix + block_start(row.extend, batch.cp_size, block) + size);
  }
  return lengths;
}

std::int64_t gathered_row(const ZigzagBatch& batch, const BlockToken& token) noexcept {
  const CpRank owner = block_owner(batch.cp_size, token.block);
  const bool is_late = token.block.value() >= batch.cp_size;
  const std::int64_t in_rank = (is_late ? prev_rows(batch, owner) : 0) +
                               rows_before(batch, token.row, token.block) + token.offset;
  return owner.value() * max_rows(batch) + in_rank;
}

std::vector<std::int64_t> reorder_index(const ZigzagBatch& batch) {
  std::vector<std::int64_t> index;
  index.reserve(static_cast<std::size_t>(batch.num_tokens()));
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    for (std::uint32_t j = 0; j < 2 * batch.cp_size; ++j) {
      const BlockIndex block{j};
      const std::int64_t first = gathered_row(batch, {row, block, 0});
      const std::int64_t size = block_size(batch.rows[row].extend, batch.cp_size, block);
      for (std::int64_t offset = 0; offset < size; ++offset) {
        index.push_back(first + offset);
      }
    }
  }
  return index;
}

std::vector<std::int64_t> piece_lens(const ZigzagBatch& batch) {
  std::vector<std::int64_t> lengths;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    for_each_piece(
        batch, CpRank{rank},
        [&lengths](const RowExtent& /*row*/, std::int64_t /*start*/, std::int64_t /*first*/,
                   std::int64_t size) { lengths.push_back(size); });
  }
  return lengths;
}

std::vector<std::int64_t> piece_order(const ZigzagBatch& batch) {
  const std::size_t num_rows = batch.rows.size();
  std::vector<std::int64_t> order;
  order.reserve(num_rows * 2 * batch.cp_size);
  for (std::size_t row = 0; row < num_rows; ++row) {
    for (std::uint32_t j = 0; j < 2 * batch.cp_size; ++j) {
      // A rank contributes 2*bs pieces, its early ones first.
      const std::size_t rank_start =
          2 * num_rows * block_owner(batch.cp_size, BlockIndex{j}).value();
      const std::size_t half_start = j < batch.cp_size ? 0 : num_rows;
      order.push_back(static_cast<std::int64_t>(rank_start + half_start + row));
    }
  }
  return order;
}

}  // namespace cpverify::layout
