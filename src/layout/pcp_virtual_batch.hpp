#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/topology.hpp"

/// The virtual batch of vLLM's prefill context parallelism: every rank's two chunks of a prefill
/// become rows of their own, without padding to whole chunks. Whole K and V of the step are in the
/// cache before attention, so a row sees what precedes it as cached context. All functions are
/// pure; docs/strategies/pcp_virtual_batch.md has the formulas and worked examples.
namespace cpverify::layout {

/// Consecutive new tokens of one request that a rank computes together.
struct VirtualRow {
  std::size_t request = 0;  ///< Index into VirtualBatch::requests.
  std::int64_t offset = 0;  ///< Of its first token, counted from the request's first new token.
  std::int64_t length = 0;  ///< Never 0.
};

struct VirtualBatch {
  std::vector<PcpRequest> requests;           ///< Rows of the step.
  std::vector<std::vector<VirtualRow>> rows;  ///< Of each rank in local order; may be empty.

  [[nodiscard]] std::int64_t num_tokens() const noexcept;
  /// Keys in the cache before the row's own: tokens of the request that precede it.
  [[nodiscard]] std::int64_t start(const VirtualRow& row) const {
    return requests[row.request].computed + row.offset;
  }
};

/// Local order: decodes, then rows that have something before them, then those that start a
/// request; request by request and chunk by chunk within each. Decodes go first by their state,
/// because the cache write takes them to be the first rows of every rank.
[[nodiscard]] VirtualBatch make_virtual_batch(const Step& step, std::uint32_t pcp_size);

/// Tokens of decode rows, which are the first rows of every rank.
[[nodiscard]] std::int64_t decode_rows(const VirtualBatch& batch) noexcept;

/// Tokens that a rank computes.
[[nodiscard]] std::int64_t local_rows(const VirtualBatch& batch, CpRank rank);

/// Tp: the most of any rank, to which all are padded.
[[nodiscard]] std::int64_t max_rows(const VirtualBatch& batch);

/// Flattened step token of each local row. [local_rows]
[[nodiscard]] std::vector<std::int64_t> local_tokens(const VirtualBatch& batch, CpRank rank);

/// Position in its request of each local row's token. [local_rows]
[[nodiscard]] std::vector<std::int64_t> local_positions(const VirtualBatch& batch, CpRank rank);

/// Row of every flattened token in the gathered buffer [P * Tp]: of a decode, that of rank 0. [T]
[[nodiscard]] std::vector<std::int64_t> hidden_restore(const VirtualBatch& batch);

/// Flattened token of every gathered row, 0 for a pad. [P * Tp]
[[nodiscard]] std::vector<std::int64_t> gather_index(const VirtualBatch& batch);

/// 1 for a gathered row whose K and V are written: prefills, and decodes of rank 0. [P * Tp]
[[nodiscard]] std::vector<std::int64_t> kv_write_mask(const VirtualBatch& batch);

}  // namespace cpverify::layout
