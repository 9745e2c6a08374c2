#include "layout/row_split.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "support/check.hpp"

namespace cpverify::layout {

RowSplit split_interleaved(const Step& step, std::uint32_t cp_size) {
  CPVERIFY_CHECK(cp_size > 0);
  RowSplit split(cp_size);
  std::int64_t flat = 0;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    for (std::int64_t i = 0; i < step.rows[row].scheduled; ++i, ++flat) {
      split[static_cast<std::size_t>(flat) % cp_size].push_back(
          {flat, row, step.rows[row].computed + i});
    }
  }
  return split;
}

RowSplit split_contiguously(const Step& step, std::uint32_t cp_size) {
  CPVERIFY_CHECK(cp_size > 0);
  RowSplit split(cp_size);
  std::int64_t row_start = 0;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    const std::int64_t extend = step.rows[row].scheduled;
    const std::int64_t shortest = extend / cp_size;
    const std::int64_t longer = extend % cp_size;
    std::int64_t start = 0;
    for (std::uint32_t rank = 0; rank < cp_size; ++rank) {
      const std::int64_t end = start + shortest + (rank < longer ? 1 : 0);
      for (; start < end; ++start) {
        split[rank].push_back({row_start + start, row, step.rows[row].computed + start});
      }
    }
    row_start += extend;
  }
  return split;
}

bool is_interleave_applicable(const Step& step, std::uint32_t cp_size) noexcept {
  return cp_size > 1 && step.num_tokens() >= std::int64_t{cp_size};
}

bool is_contiguous_applicable(const Step& step, std::uint32_t cp_size) noexcept {
  const bool has_decode = std::any_of(step.rows.begin(), step.rows.end(), [](const StepRow& row) {
    return row.state == RowState::decode;
  });
  return !has_decode && is_interleave_applicable(step, cp_size);
}

std::int64_t max_rows(const RowSplit& split) noexcept {
  std::size_t most = 0;
  for (const std::vector<StepToken>& tokens : split) most = std::max(most, tokens.size());
  return static_cast<std::int64_t>(most);
}

std::vector<std::int64_t> gathered_rows(const RowSplit& split, std::int64_t num_tokens,
                                        std::int64_t gather_rows) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(num_tokens), -1);
  std::int64_t first = 0;
  for (const std::vector<StepToken>& tokens : split) {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      rows.at(static_cast<std::size_t>(tokens[i].flat)) = first + static_cast<std::int64_t>(i);
    }
    first += gather_rows;
  }
  return rows;
}

}  // namespace cpverify::layout
