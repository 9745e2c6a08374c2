#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "judge/checks.hpp"
#include "judge/finding_log.hpp"
#include "run/runner.hpp"

namespace cpverify::judge {

/// Whose a flattened step token is.
struct TokenPlace {
  std::uint32_t row = 0;  ///< Index into Step::rows.
  std::int64_t position = 0;
};

/// One entry per flattened token of the step.
[[nodiscard]] std::vector<TokenPlace> token_places(const Step& step);

/// A captured output buffer whose claim, shape and size fit together, so that it can be indexed.
class OutputView {
 public:
  /// One row's share of one head: what a query head of a token produced.
  struct Cell {
    std::int64_t token = 0;    ///< Flattened step token, -1 for a pad row.
    std::uint32_t head = 0;    ///< Global query head.
    std::int64_t element = 0;  ///< Index in the buffer of the cell's first element.
    const std::byte* data = nullptr;
    std::uint32_t dim = 0;  ///< Which of its elements is meant.

    [[nodiscard]] Cell at(std::uint32_t index) const noexcept {
      Cell copy = *this;
      copy.dim = index;
      return copy;
    }
  };

  OutputView(RankId rank, const Buffer& buffer, const std::vector<std::byte>& bytes,
             std::uint32_t elems_per_head)
      : rank_{rank}, buffer_{&buffer}, bytes_{&bytes}, elems_per_head_{elems_per_head} {}

  [[nodiscard]] RankId rank() const noexcept { return rank_; }
  [[nodiscard]] const Buffer& buffer() const noexcept { return *buffer_; }
  [[nodiscard]] OutputKind kind() const noexcept { return buffer_->output->kind; }
  /// head_dim for attention, 1 for lse.
  [[nodiscard]] std::uint32_t elems_per_head() const noexcept { return elems_per_head_; }
  [[nodiscard]] std::size_t cell_bytes() const noexcept {
    return elems_per_head_ * size_bytes(buffer_->dtype);
  }
  [[nodiscard]] std::size_t num_cells() const noexcept {
    return buffer_->output->row_tokens.size() * buffer_->output->heads.count;
  }
  /// Cells in memory order: row by row, head by head.
  [[nodiscard]] Cell cell(std::size_t index) const noexcept;
  /// One element as an exact double.
  [[nodiscard]] double value(const Cell& cell, std::uint32_t index) const noexcept;

 private:
  RankId rank_;
  const Buffer* buffer_;
  const std::vector<std::byte>* bytes_;
  std::uint32_t elems_per_head_;
};

/// An element of a floating dtype at `data`, exactly. NaN for a dtype that is not floating.
[[nodiscard]] double element_value(DType dtype, const std::byte* data) noexcept;

/// The bits of an element, for reports: "0x3f80".
[[nodiscard]] std::string element_bits(DType dtype, const std::byte* data);

/// Views of all output buffers of a step, in rank and buffer order. One that cannot be indexed is
/// an `output_missing` finding instead; `log` may be null when nobody wants to know.
[[nodiscard]] std::vector<OutputView> output_views(const Problem& problem, const Plan& plan,
                                                   const run::StepCapture& capture,
                                                   FindingLog* log);

/// One step as the problem states it.
struct StepContext {
  const Problem* problem = nullptr;
  const Step* step = nullptr;
  std::vector<TokenPlace> places;
};

[[nodiscard]] StepContext step_context(const Problem& problem, std::uint32_t step);

/// Notes a bad element of a valid cell, grouped by rank, step, buffer and request. Returns
/// the finding, placed but without detail, when it is the group's first.
Finding* note_cell(FindingLog& log, const std::string& kind, const StepContext& context,
                   const OutputView& view, const OutputView::Cell& cell);

/// Checks that a pad row holds what its claim says, zero bytes or -inf; else notes
/// `pad_row_written`.
void check_pad_cell(FindingLog& log, std::uint32_t step, const OutputView& view,
                    const OutputView::Cell& cell);

}  // namespace cpverify::judge
