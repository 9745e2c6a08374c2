#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"

/// The zigzag split of a batch over the C ranks of a context-parallel group, as SGLang defines it.
///
/// The new tokens of every request are cut into 2C blocks, longer ones first. Rank r owns block r
/// (the early, "prev" half of its work) and block 2C-1-r (the late, "next" half), which gives every
/// rank about the same number of visible (query, key) pairs. All functions are pure; a row is a
/// request of the step. docs/strategies/zigzag.md has the formulas and a worked example.
namespace cpverify::layout {

using BlockIndex = Id<struct BlockIndexTag>;  ///< A block of one request: 0 .. 2C-1.

/// Which of its two blocks of a request a rank works on.
enum class Half : std::uint8_t { prev, next };

/// What the split needs to know of one row.
struct RowExtent {
  std::int64_t prefix = 0;  ///< Tokens already in the pool.
  std::int64_t extend = 0;  ///< New tokens.
};

/// What the split needs to know of a step.
struct ZigzagBatch {
  std::uint32_t cp_size = 1;
  std::vector<RowExtent> rows;

  [[nodiscard]] std::int64_t num_tokens() const noexcept;
};

[[nodiscard]] ZigzagBatch make_zigzag_batch(const Step& step, std::uint32_t cp_size);

/// True when the step is split: more than one rank, and every row is prefill with at least 2C new
/// tokens. One row that is not turns CP off for the whole batch: every rank then computes all of
/// it. Decode is a state, not a length, and always turns CP off.
[[nodiscard]] bool is_zigzag_applicable(const Step& step, std::uint32_t cp_size) noexcept;

/// Tokens of a block of a request with `extend` new tokens; the remainder goes to early blocks.
[[nodiscard]] std::int64_t block_size(std::int64_t extend, std::uint32_t cp_size,
                                      BlockIndex block) noexcept;

/// First token of a block, counted from the first new token. Block 2C starts at `extend`.
[[nodiscard]] std::int64_t block_start(std::int64_t extend, std::uint32_t cp_size,
                                       BlockIndex block) noexcept;

[[nodiscard]] CpRank block_owner(std::uint32_t cp_size, BlockIndex block) noexcept;

[[nodiscard]] BlockIndex owned_block(std::uint32_t cp_size, CpRank rank, Half half) noexcept;

/// n_r of one request: its new tokens that a rank owns.
[[nodiscard]] std::int64_t shard_size(std::int64_t extend, std::uint32_t cp_size,
                                      CpRank rank) noexcept;

/// n_r: new tokens of the batch that a rank owns.
[[nodiscard]] std::int64_t logical_rows(const ZigzagBatch& batch, CpRank rank) noexcept;

/// Rows of the early half on a rank; its late half starts at this local row.
[[nodiscard]] std::int64_t prev_rows(const ZigzagBatch& batch, CpRank rank) noexcept;

/// M: the largest n_r, which every rank sends in an all-gather. It can exceed ceil(T / C), and the
/// largest rank need not be rank 0.
[[nodiscard]] std::int64_t max_rows(const ZigzagBatch& batch) noexcept;

/// Pm: rows of the local activations on every rank, M rounded up to a multiple of 2C.
[[nodiscard]] std::int64_t physical_rows(const ZigzagBatch& batch) noexcept;

/// Flattened step token of each local row: the early blocks of all requests, then the late blocks
/// of all requests. [n_r]
[[nodiscard]] std::vector<std::int64_t> shard_tokens(const ZigzagBatch& batch, CpRank rank);

/// Position in its request of each local row's token, prefix included. [n_r]
[[nodiscard]] std::vector<std::int64_t> shard_positions(const ZigzagBatch& batch, CpRank rank);

/// Query and KV lengths of one half on one rank, per request. A block's KV range is the prefix and
/// all new tokens up to the block's end, so bottom-right causal masking is right. [bs] each
struct HalfLengths {
  std::vector<std::int64_t> seqlens_q;
  std::vector<std::int64_t> seqlens_k;
};

[[nodiscard]] HalfLengths half_lengths(const ZigzagBatch& batch, CpRank rank, Half half);

/// A token of the batch by where the split puts it.
struct BlockToken {
  std::size_t row = 0;
  BlockIndex block;
  std::int64_t offset = 0;  ///< Within the block.
};

/// Row of a token in the all-gathered buffer [C*M]: owner * M + its local row.
[[nodiscard]] std::int64_t gathered_row(const ZigzagBatch& batch, const BlockToken& token) noexcept;

/// gathered_row of every flattened token of the step, in flattened order. [T]
[[nodiscard]] std::vector<std::int64_t> reorder_index(const ZigzagBatch& batch);

/// Rows of each piece in gathered order: by rank, then the early pieces by request, then the late
/// pieces by request. [2*C*bs]
[[nodiscard]] std::vector<std::int64_t> piece_lens(const ZigzagBatch& batch);

/// For the destination piece (request b, block j) at index b*2C+j: its number in gathered order.
/// [2*C*bs]
[[nodiscard]] std::vector<std::int64_t> piece_order(const ZigzagBatch& batch);

}  // namespace cpverify::layout
