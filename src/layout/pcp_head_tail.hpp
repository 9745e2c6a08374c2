#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/topology.hpp"

/// The padded split of vllm-ascend's prefill context parallelism: every prefill is padded to 2P
/// chunks of equal length, of which a rank computes one at the head and one at the tail; decodes
/// are computed by every rank. All functions are pure; docs/strategies/pcp_head_tail.md has the
/// formulas and worked examples.
namespace cpverify::layout {

enum class Half : std::uint8_t { head, tail };

/// One of a rank's rows: a new token of a request, or padding behind the last one.
struct PaddedToken {
  std::size_t request = 0;   ///< Index into HeadTailBatch::requests.
  std::int64_t offset = 0;   ///< Counted from the request's first new token.
  bool is_pad = false;       ///< The request has no such token.
  std::int64_t padded = -1;  ///< Its row of the padded batch in request order.
};

struct HeadTailBatch {
  std::vector<PcpRequest> requests;   ///< Rows of the step.
  std::vector<std::size_t> decodes;   ///< Of those, in the step's order.
  std::vector<std::size_t> prefills;  ///< The others, in the step's order.
  std::uint32_t pcp_size = 1;         ///< P.

  /// Tokens of a chunk of prefills[i], c.
  [[nodiscard]] std::int64_t chunk(std::size_t prefill) const {
    return pcp_chunk(requests[prefills[prefill]].scheduled, pcp_size);
  }
  /// Tokens of decodes, which are the first rows of every rank.
  [[nodiscard]] std::int64_t decode_rows() const;
  /// Rows of one half of all prefills, pads included: the sum of their chunks.
  [[nodiscard]] std::int64_t half_rows() const;
  /// Rows that every rank computes, pads included.
  [[nodiscard]] std::int64_t local_rows() const { return decode_rows() + 2 * half_rows(); }
  /// Rows of the decodes' replicas, with which the padded batch begins.
  [[nodiscard]] std::int64_t padded_decode_rows() const { return pcp_size * decode_rows(); }
  /// Rows of the padded batch that are of prefills.
  [[nodiscard]] std::int64_t padded_prefill_rows() const { return 2 * half_rows() * pcp_size; }
};

[[nodiscard]] HeadTailBatch make_head_tail_batch(const Step& step, std::uint32_t pcp_size);

/// The chunk of every prefill that is the rank's head (p) or tail (2P-1-p).
[[nodiscard]] std::int64_t chunk_of(const HeadTailBatch& batch, CpRank rank, Half half);

/// A rank's rows in local order: decodes, then head and tail of each prefill in turn. [local_rows]
[[nodiscard]] std::vector<PaddedToken> padded_tokens(const HeadTailBatch& batch, CpRank rank);

/// Flattened step token of each local row, -1 for pads. [local_rows]
[[nodiscard]] std::vector<std::int64_t> padded_local_tokens(const HeadTailBatch& batch,
                                                            CpRank rank);

/// Gathered row (rank * local_rows + local row) of each row of the padded batch. The padded batch
/// has every decode P times, rank by rank, then each prefill with its pads. [P * local_rows]
[[nodiscard]] std::vector<std::int64_t> restore_index(const HeadTailBatch& batch);

/// The same of prefills alone, where ranks gather only those. [padded_prefill_rows]
[[nodiscard]] std::vector<std::int64_t> prefill_restore_index(const HeadTailBatch& batch);

/// 1 for the rows of the padded batch that are tokens, and of a decode's the first of every P as
/// vllm-ascend has it, which is the replicas of one token only where a decode has one. [P * local]
[[nodiscard]] std::vector<std::int64_t> unpad_mask(const HeadTailBatch& batch);

/// Row of the padded batch of every flattened token; of a decode, that of rank 0. [T]
[[nodiscard]] std::vector<std::int64_t> unpad_index(const HeadTailBatch& batch);

/// Local row of each row where decodes come first, then the heads of all prefills, then the tails;
/// the same on all ranks. [local_rows]
[[nodiscard]] std::vector<std::int64_t> head_tail_index(const HeadTailBatch& batch);

/// The way back: where head_tail_index has each local row. [local_rows]
[[nodiscard]] std::vector<std::int64_t> full_index(const HeadTailBatch& batch);

}  // namespace cpverify::layout
