#include "layout/request_parts.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

/// Piece `index` of `num_pieces` of an interval, longer ones first.
TokenSet piece_of(const TokenSet& whole, std::int64_t index, std::int64_t num_pieces) noexcept {
  const std::int64_t length = whole.end - whole.begin;
  const std::int64_t quotient = length / num_pieces;
  const std::int64_t remainder = length % num_pieces;
  const std::int64_t begin = whole.begin + index * quotient + std::min(index, remainder);
  return interval(begin, begin + quotient + (index < remainder ? 1 : 0));
}

}  // namespace

HeadRange RequestGeometry::head_slice(std::uint32_t slice,
                                      std::uint32_t num_slices) const noexcept {
  const std::uint32_t size = spec_.num_heads_q / num_slices;
  return {slice * size, size};
}

TokenSet RequestGeometry::balanced_piece(std::int64_t index,
                                         std::int64_t num_pieces) const noexcept {
  return piece_of(all_queries(), index, num_pieces);
}

TokenSet RequestGeometry::chunk(std::int64_t index, std::int64_t num_chunks) const noexcept {
  const std::int64_t size = (row_.scheduled + num_chunks - 1) / num_chunks;
  const std::int64_t begin = std::min(index * size, row_.scheduled);
  const std::int64_t end = std::min(begin + size, row_.scheduled);
  return interval(row_.computed + begin, row_.computed + end);
}

bool RequestGeometry::is_ring() const noexcept {
  return spec_.kind == SplitKind::ring || spec_.kind == SplitKind::ulysses_ring;
}

std::uint32_t RequestGeometry::ring_size() const noexcept {
  return spec_.kind == SplitKind::ulysses_ring ? spec_.cp / spec_.ulysses : spec_.cp;
}

std::vector<TokenSet> RequestGeometry::ring_pieces(std::uint32_t place) const {
  const std::int64_t size = ring_size();
  if (spec_.ring_order == RingOrder::contiguous) return {balanced_piece(place, size)};
  return {balanced_piece(place, 2 * size), balanced_piece(2 * size - 1 - place, 2 * size)};
}

std::vector<TokenSet> RequestGeometry::ring_keys(std::uint32_t place) const {
  std::vector<TokenSet> keys{piece_of(interval(0, row_.computed), place, ring_size())};
  for (const TokenSet& piece : ring_pieces(place)) keys.push_back(piece);
  return keys;
}

bool RequestGeometry::has_replicated_rows() const noexcept {
  switch (spec_.kind) {
    case SplitKind::dcp:
    case SplitKind::dcp_virtual:
      return true;
    case SplitKind::pcp_head_tail:
    case SplitKind::pcp_virtual_batch:
      return row_.is_decode;
    default:
      return !batch_.is_split();
  }
}

std::uint32_t RequestGeometry::row_copy(std::uint32_t rank) const noexcept {
  if (has_replicated_rows()) return rank;
  if (spec_.kind == SplitKind::pcp_head_tail) return rank % spec_.dcp;
  if (spec_.kind == SplitKind::pcp_virtual_batch) return rank / spec_.cp;
  return 0;
}

std::uint32_t RequestGeometry::store_copy(std::uint32_t rank) const noexcept {
  if (batch_.num_shards() > 1 || spec_.kind == SplitKind::ring) return 0;
  if (spec_.kind == SplitKind::ulysses_ring) return rank % spec_.ulysses;
  return rank;
}

std::vector<TokenSet> RequestGeometry::own_pieces(std::uint32_t rank) const {
  if (has_replicated_rows()) return {all_queries()};
  const std::int64_t cp = spec_.cp;
  switch (spec_.kind) {
    case SplitKind::zigzag:
    case SplitKind::zigzag_combined:
      return {balanced_piece(rank, 2 * cp), balanced_piece(2 * cp - 1 - rank, 2 * cp)};
    case SplitKind::interleave:
      // Flattened token start + (x - computed) is congruent to the rank.
      return {comb(row_.computed, total(), cp, rank - start_ + row_.computed)};
    case SplitKind::contiguous:
    case SplitKind::ulysses:
      return {balanced_piece(rank, cp)};
    case SplitKind::pcp_head_tail:
    case SplitKind::pcp_virtual_batch: {
      const bool is_strided = spec_.kind == SplitKind::pcp_head_tail;
      const std::int64_t p = is_strided ? rank / spec_.dcp : rank % spec_.cp;
      return {chunk(p, 2 * cp), chunk(2 * cp - 1 - p, 2 * cp)};
    }
    case SplitKind::ring:
      return ring_pieces(rank);
    case SplitKind::ulysses_ring: {
      std::vector<TokenSet> pieces = ring_pieces(rank / spec_.ulysses);
      for (TokenSet& piece : pieces) {
        piece = piece_of(piece, rank % spec_.ulysses, spec_.ulysses);
      }
      return pieces;
    }
    default:
      return {all_queries()};
  }
}

void RequestGeometry::add_causal(RequestSplit& split, AttentionPart part) const {
  if (count(part.queries) == 0 || count(part.keys) == 0) return;
  part.diagonal = part.queries.period == 1 ? bottom_right_diagonal(part.queries, part.keys) : 0;
  part.window = spec_.window;
  split.parts.push_back(part);
}

void RequestGeometry::add_sharded(RequestSplit& split, bool is_cached) const {
  const std::int64_t end = is_cached ? total() : row_.computed;
  for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
    const TokenSet keys =
        shard_of(0, end, batch_.shard(rank), batch_.num_shards(), spec_.interleave_size);
    if (count(keys) == 0 || row_.scheduled == 0) continue;
    AttentionPart part{rank, 0, all_heads(), all_queries(), keys, std::nullopt, 0};
    if (is_cached) part.diagonal = 0;
    split.parts.push_back(part);
  }
}

void RequestGeometry::add_sliced_queries(RequestSplit& split, bool is_context_sharded) const {
  const bool is_head_tail = spec_.kind == SplitKind::pcp_head_tail;
  for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
    const HeadRange heads =
        head_slice(row_copy(rank), is_head_tail ? spec_.dcp : std::max(1U, spec_.dcp / spec_.cp));
    for (const TokenSet& queries : own_pieces(rank)) {
      const std::int64_t first_key = is_context_sharded ? row_.computed : 0;
      if (!is_head_tail) {
        add_causal(split, {rank, 0, heads, queries, interval(first_key, queries.end), {}, 0});
        continue;
      }
      const TokenSet earlier = interval(first_key, queries.begin);
      if (count(queries) > 0 && count(earlier) > 0) {
        split.parts.push_back({rank, 0, heads, queries, earlier, std::nullopt, 0});
      }
      add_causal(split, {rank, 0, heads, queries, queries, {}, 0});
    }
  }
}

void RequestGeometry::add_ring(RequestSplit& split) const {
  for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
    const bool has_ulysses = spec_.kind == SplitKind::ulysses_ring;
    const std::uint32_t place = has_ulysses ? rank / spec_.ulysses : rank;
    const HeadRange heads =
        has_ulysses ? head_slice(rank % spec_.ulysses, spec_.ulysses) : all_heads();
    for (std::uint32_t hop = 0; hop < ring_size(); ++hop) {
      const std::vector<TokenSet> keys = ring_keys((place + ring_size() - hop) % ring_size());
      for (const TokenSet& queries : ring_pieces(place)) {
        add_ring_blocks(split, {rank, 0, heads, queries, {}, {}, 0}, keys);
      }
    }
  }
}

void RequestGeometry::add_ring_blocks(RequestSplit& split, AttentionPart part,
                                      const std::vector<TokenSet>& blocks) const {
  for (const TokenSet& keys : blocks) {
    if (count(part.queries) == 0 || count(keys) == 0 || keys.begin >= part.queries.end) continue;
    part.keys = keys;
    part.diagonal.reset();
    if (keys.end > part.queries.begin) part.diagonal = bottom_right_diagonal(part.queries, keys);
    split.parts.push_back(part);
  }
}

void RequestGeometry::add_parts(RequestSplit& split) const {
  switch (spec_.kind) {
    case SplitKind::dcp:
    case SplitKind::dcp_virtual:
      if (spec_.visibility == DcpVisibility::cached) return add_sharded(split, true);
      add_sharded(split, false);
      for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
        add_causal(split, {rank,
                           0,
                           head_slice(rank, spec_.dcp),
                           all_queries(),
                           interval(row_.computed, total()),
                           {},
                           0});
      }
      return;
    case SplitKind::pcp_head_tail:
      add_sharded(split, row_.is_decode);
      if (!row_.is_decode) add_sliced_queries(split, true);
      return;
    case SplitKind::pcp_virtual_batch:
      if (!row_.is_decode) return add_sliced_queries(split, false);
      if (batch_.num_shards() > 1) return add_sharded(split, true);
      break;
    case SplitKind::ring:
    case SplitKind::ulysses_ring:
      return add_ring(split);
    case SplitKind::ulysses:
      for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
        add_causal(
            split,
            {rank, 0, head_slice(rank, spec_.cp), all_queries(), interval(0, total()), {}, 0});
      }
      return;
    default:
      break;
  }
  const bool is_replicated = has_replicated_rows();
  if (is_replicated) split.num_replicas = batch_.num_ranks();
  for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
    for (const TokenSet& queries : own_pieces(rank)) {
      // A kernel gets the comb of an interleaved rank as one sequence per query.
      const std::int64_t end = queries.period == 1 ? queries.end : total();
      add_causal(split,
                 {rank, is_replicated ? rank : 0, all_heads(), queries, interval(0, end), {}, 0});
    }
  }
}

void RequestGeometry::add_rows(RequestSplit& split) const {
  for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
    for (const TokenSet& piece : own_pieces(rank)) {
      std::int64_t length = piece.end - piece.begin;
      if (piece.period > 1) {
        // Flattened tokens start .. start + scheduled - 1 of this rank, by SGLang's formula.
        length = floor_div(start_ + row_.scheduled - 1 - rank, spec_.cp) -
                 floor_div(start_ - 1 - rank, spec_.cp);
      }
      split.rows.push_back({rank, row_copy(rank), piece, length});
    }
  }
}

void RequestGeometry::add_stored(RequestSplit& split) const {
  for (std::uint32_t rank = 0; rank < batch_.num_ranks(); ++rank) {
    if (is_ring()) {
      const std::uint32_t place = spec_.kind == SplitKind::ring ? rank : rank / spec_.ulysses;
      for (const TokenSet& keys : ring_keys(place)) {
        split.stored.push_back({rank, store_copy(rank), keys, keys.end - keys.begin});
      }
      continue;
    }
    const std::uint32_t shard = batch_.shard(rank);
    split.stored.push_back(
        {rank, store_copy(rank),
         shard_of(0, total(), shard, batch_.num_shards(), spec_.interleave_size),
         shard_length(total(), shard, batch_.num_shards(), spec_.interleave_size)});
  }
}

void RequestGeometry::add_slots(RequestSplit& split, std::int64_t first_slot) const {
  std::vector<std::int64_t> used(batch_.num_ranks(), 0);  // By the shares before, on each rank.
  for (const TokenShare& share : split.stored) {
    const TokenSet before = clip(share.tokens, 0, row_.computed);
    const TokenSet written = clip(share.tokens, row_.computed, total());
    if (count(written) > 0) {
      split.slots.push_back(
          {share.rank, share.copy, written, first_slot + used[share.rank] + count(before)});
    }
    used[share.rank] += share.length;
  }
}

std::int64_t RequestGeometry::local_length(std::uint32_t rank) const {
  if (!is_ring()) {
    return shard_length(total(), batch_.shard(rank), batch_.num_shards(), spec_.interleave_size);
  }
  std::int64_t length = 0;
  const std::uint32_t place = spec_.kind == SplitKind::ring ? rank : rank / spec_.ulysses;
  for (const TokenSet& keys : ring_keys(place)) length += keys.end - keys.begin;
  return length;
}

std::int64_t RequestGeometry::largest_local_length() const {
  std::int64_t largest = local_length(0);
  for (std::uint32_t rank = 1; is_ring() && rank < batch_.num_ranks(); ++rank) {
    largest = std::max(largest, local_length(rank));
  }
  return largest;  // Of shards, the first is never shorter than another.
}

}  // namespace cpverify::layout
