#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/topology.hpp"

/// Strategies ring and ring_contiguous: who owns which new token of a step, and what a rank's
/// queries see of the K and V block that another rank owns. Source: docs/strategies/ring.md.
namespace cpverify::layout {

/// zigzag: 2C blocks of every request, r and 2C-1-r on rank r. contiguous: C blocks, r on rank r.
enum class RingPlacement : std::uint8_t { zigzag, contiguous };

/// One row of a step.
struct RingRow {
  std::int64_t computed = 0;   ///< Tokens in the cache.
  std::int64_t scheduled = 0;  ///< New tokens.
  std::int64_t first = 0;      ///< Its first new token, flattened.
};

/// What the split needs to know of a step.
struct RingBatch {
  RingPlacement placement = RingPlacement::zigzag;
  std::uint32_t cp_size = 1;
  std::vector<RingRow> rows;
};

[[nodiscard]] RingBatch make_ring_batch(const Step& step, RingPlacement placement,
                                        std::uint32_t cp_size);

/// True when the step is split: more than one rank, and a row in prefill with new tokens. Decode
/// rows beside it are split with it; a step of decode rows alone is computed whole by every rank.
[[nodiscard]] bool is_ring_applicable(const Step& step, std::uint32_t cp_size) noexcept;

/// Consecutive new tokens of one row, on one rank. Later blocks of a row hold later tokens.
struct RingPiece {
  std::size_t row = 0;
  std::uint32_t block = 0;
  std::int64_t start = 0;  ///< First token, counted from the row's first new one.
  std::int64_t size = 0;   ///< May be 0.
};

/// A rank's pieces in local order: the first block of all rows, then the second of all rows.
[[nodiscard]] std::vector<RingPiece> ring_pieces(const RingBatch& batch, CpRank rank);

/// New tokens that a rank owns.
[[nodiscard]] std::int64_t ring_rows(const RingBatch& batch, CpRank rank);

/// M: the largest of those, which every message and every rank's local buffers have room for.
[[nodiscard]] std::int64_t max_ring_rows(const RingBatch& batch);

/// Flattened step token of each local row of a rank.
[[nodiscard]] std::vector<std::int64_t> ring_tokens(const RingBatch& batch, CpRank rank);

/// Row of every flattened token in the all-gathered buffer [C*M]. [T]
[[nodiscard]] std::vector<std::int64_t> ring_reorder_index(const RingBatch& batch);

/// Owner of the block that a rank holds after `hop` messages: every rank sends to the next.
[[nodiscard]] CpRank block_source(std::uint32_t cp_size, CpRank rank, std::uint32_t hop) noexcept;

/// What the pieces of a rank see of the block of `source`: all of an earlier piece of their row,
/// their own piece up to the query, and nothing of a later piece.
struct HopKeys {
  /// Keys of the piece's last query. [pieces]
  std::vector<std::int64_t> lengths;
  /// Local rows, of `source`, of those keys in ascending order. [pieces][length]
  std::vector<std::vector<std::int64_t>> rows;

  [[nodiscard]] std::int64_t longest() const noexcept;
};

[[nodiscard]] HopKeys hop_keys(const RingBatch& batch, CpRank rank, CpRank source);

}  // namespace cpverify::layout
