#pragma once

#include <cstdint>
#include <vector>

#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {

/// One request under one strategy: fills the lists of a RequestSplit. `start` is the flattened
/// number of the request's first new token.
class RequestGeometry {
 public:
  RequestGeometry(const BatchSplit& batch, const SplitRow& row, std::int64_t start) noexcept
      : batch_{batch}, spec_{batch.spec()}, row_{row}, start_{start} {}

  void add_parts(RequestSplit& split) const;
  void add_rows(RequestSplit& split) const;
  void add_stored(RequestSplit& split) const;
  void add_slots(RequestSplit& split, std::int64_t first_slot) const;

  /// Tokens in a rank's pool after the step.
  [[nodiscard]] std::int64_t local_length(std::uint32_t rank) const;
  /// Tokens of the fullest rank after the step.
  [[nodiscard]] std::int64_t largest_local_length() const;

 private:
  [[nodiscard]] std::int64_t total() const noexcept { return row_.computed + row_.scheduled; }
  [[nodiscard]] TokenSet all_queries() const noexcept { return interval(row_.computed, total()); }
  [[nodiscard]] HeadRange all_heads() const noexcept { return {0, spec_.num_heads_q}; }
  [[nodiscard]] HeadRange head_slice(std::uint32_t slice, std::uint32_t num_slices) const noexcept;
  /// Piece `index` of `num_pieces` of the new tokens, longer ones first.
  [[nodiscard]] TokenSet balanced_piece(std::int64_t index, std::int64_t num_pieces) const noexcept;
  /// Chunk `index` of ceil(scheduled / num_chunks) new tokens; the last ones may be empty.
  [[nodiscard]] TokenSet chunk(std::int64_t index, std::int64_t num_chunks) const noexcept;
  /// New tokens that a rank holds, in local order; empty pieces included.
  [[nodiscard]] std::vector<TokenSet> own_pieces(std::uint32_t rank) const;
  /// Blocks of keys that start on place `place` of a ring: its context, then its new tokens.
  [[nodiscard]] std::vector<TokenSet> ring_keys(std::uint32_t place) const;
  [[nodiscard]] std::vector<TokenSet> ring_pieces(std::uint32_t place) const;
  [[nodiscard]] std::uint32_t ring_size() const noexcept;
  [[nodiscard]] bool is_ring() const noexcept;
  /// Every rank of the domain holds and computes the rows of the request.
  [[nodiscard]] bool has_replicated_rows() const noexcept;
  [[nodiscard]] std::uint32_t row_copy(std::uint32_t rank) const noexcept;
  [[nodiscard]] std::uint32_t store_copy(std::uint32_t rank) const noexcept;

  void add_causal(RequestSplit& split, AttentionPart part) const;
  void add_sharded(RequestSplit& split, bool is_cached) const;
  void add_sliced_queries(RequestSplit& split, bool is_context_sharded) const;
  void add_ring(RequestSplit& split) const;
  /// The part's queries with each block of keys that they see some of.
  void add_ring_blocks(RequestSplit& split, AttentionPart part,
                       const std::vector<TokenSet>& blocks) const;

  const BatchSplit& batch_;
  const SplitSpec& spec_;
  const SplitRow& row_;
  std::int64_t start_;
};

}  // namespace cpverify::layout
