#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

/// Splits of a step's rows that need no more than "who has this token": interleave and contiguous.
namespace cpverify::layout {

/// A new token of a step.
struct StepToken {
  std::int64_t flat = 0;  ///< Number in the flattened step.
  std::size_t row = 0;
  std::int64_t position = 0;  ///< In its request.
};

/// The tokens of every rank, in local row order. [C]
using RowSplit = std::vector<std::vector<StepToken>>;

/// Flattened token i belongs to rank i mod C, whatever request it is of. Source: SGLang's
/// interleave.
[[nodiscard]] RowSplit split_interleaved(const Step& step, std::uint32_t cp_size);

/// The new tokens of every request in C consecutive pieces whose lengths differ by one at most,
/// longer ones first; piece r of all requests, in their order, belongs to rank r.
[[nodiscard]] RowSplit split_contiguously(const Step& step, std::uint32_t cp_size);

/// More than one rank, and at least one token for each. A test of the batch: decode rows and short
/// requests are split with the others, and a rank may have no row of some. Source: SGLang's
/// interleave.
[[nodiscard]] bool is_interleave_applicable(const Step& step, std::uint32_t cp_size) noexcept;

/// The same for a batch of prefills; a decode row turns CP off for all.
[[nodiscard]] bool is_contiguous_applicable(const Step& step, std::uint32_t cp_size) noexcept;

/// Of the largest rank.
[[nodiscard]] std::int64_t max_rows(const RowSplit& split) noexcept;

/// Gathered row of every flattened token when each rank gives `gather_rows` rows. [T]
[[nodiscard]] std::vector<std::int64_t> gathered_rows(const RowSplit& split,
                                                      std::int64_t num_tokens,
                                                      std::int64_t gather_rows);

}  // namespace cpverify::layout
