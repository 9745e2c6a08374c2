#include "layout/ring.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

/// Piece `block` of `num_blocks` of a row: sizes differ by one at most, longer ones first.
RingPiece piece_of(const RingRow& row, std::size_t index, std::uint32_t block,
                   std::uint32_t num_blocks) {
  const std::int64_t quotient = row.scheduled / num_blocks;
  const std::int64_t remainder = row.scheduled % num_blocks;
  const std::int64_t number = block;
  RingPiece piece;
  piece.row = index;
  piece.block = block;
  piece.start = number * quotient + std::min(number, remainder);
  piece.size = quotient + (number < remainder ? 1 : 0);
  return piece;
}

/// Whether a query piece with tokens sees keys of the other piece.
bool sees(const RingPiece& queries, const RingPiece& keys) noexcept {
  return queries.size > 0 && queries.row == keys.row && keys.block <= queries.block;
}

}  // namespace

RingBatch make_ring_batch(const Step& step, RingPlacement placement, std::uint32_t cp_size) {
  RingBatch batch{placement, cp_size, {}};
  std::int64_t first = 0;
  for (const StepRow& row : step.rows) {
    batch.rows.push_back({row.computed, row.scheduled, first});
    first += row.scheduled;
  }
  return batch;
}

bool is_ring_applicable(const Step& step, std::uint32_t cp_size) noexcept {
  return cp_size > 1 && std::any_of(step.rows.begin(), step.rows.end(), [](const StepRow& row) {
           return row.state == RowState::prefill && row.scheduled > 0;
         });
}

std::vector<RingPiece> ring_pieces(const RingBatch& batch, CpRank rank) {
  const std::uint32_t cp_size = batch.cp_size;
  const bool is_zigzag = batch.placement == RingPlacement::zigzag;
  const std::uint32_t num_blocks = is_zigzag ? 2 * cp_size : cp_size;
  std::vector<std::uint32_t> blocks{rank.value()};
  if (is_zigzag) blocks.push_back(num_blocks - 1 - rank.value());
  std::vector<RingPiece> pieces;
  for (const std::uint32_t block : blocks) {
    for (std::size_t row = 0; row < batch.rows.size(); ++row) {
      pieces.push_back(piece_of(batch.rows[row], row, block, num_blocks));
    }
  }
  return pieces;
}

std::int64_t ring_rows(const RingBatch& batch, CpRank rank) {
  std::int64_t total = 0;
  for (const RingPiece& piece : ring_pieces(batch, rank)) total += piece.size;
  return total;
}

std::int64_t max_ring_rows(const RingBatch& batch) {
  std::int64_t largest = 0;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    largest = std::max(largest, ring_rows(batch, CpRank{rank}));
  }
  return largest;
}

std::vector<std::int64_t> ring_tokens(const RingBatch& batch, CpRank rank) {
  std::vector<std::int64_t> tokens;
  for (const RingPiece& piece : ring_pieces(batch, rank)) {
    const std::int64_t first = batch.rows[piece.row].first + piece.start;
    for (std::int64_t i = 0; i < piece.size; ++i) tokens.push_back(first + i);
  }
  return tokens;
}

std::vector<std::int64_t> ring_reorder_index(const RingBatch& batch) {
  std::int64_t num_tokens = 0;
  for (const RingRow& row : batch.rows) num_tokens += row.scheduled;
  std::vector<std::int64_t> index(static_cast<std::size_t>(num_tokens));
  const std::int64_t rows_per_rank = max_ring_rows(batch);
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    std::int64_t place = rank * rows_per_rank;
    for (const std::int64_t token : ring_tokens(batch, CpRank{rank})) {
      index[static_cast<std::size_t>(token)] = place++;
    }
  }
  return index;
}

CpRank block_source(std::uint32_t cp_size, CpRank rank, std::uint32_t hop) noexcept {
  return CpRank{(rank.value() + cp_size - hop % cp_size) % cp_size};
}

std::int64_t HopKeys::longest() const noexcept {
  return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
}

HopKeys hop_keys(const RingBatch& batch, CpRank rank, CpRank source) {
  const std::vector<RingPiece> block = ring_pieces(batch, source);
  HopKeys keys;
  for (const RingPiece& queries : ring_pieces(batch, rank)) {
    std::vector<std::int64_t>& rows = keys.rows.emplace_back();
    std::int64_t first = 0;
    for (const RingPiece& piece : block) {
      for (std::int64_t i = 0; sees(queries, piece) && i < piece.size; ++i) {
        rows.push_back(first + i);
      }
      first += piece.size;
    }
    keys.lengths.push_back(static_cast<std::int64_t>(rows.size()));
  }
  return keys;
}

}  // namespace cpverify::layout
