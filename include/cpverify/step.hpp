#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify {

/// By state, never by length: a one-token last chunk of a prompt is prefill.
enum class RowState : std::uint8_t { prefill, decode };

/// One request's share of a step.
struct StepRow {
  RequestId request;
  std::int64_t computed = 0;   ///< Tokens whose K/V is in the pool before this step ("prefix" p_b).
  std::int64_t scheduled = 0;  ///< New tokens of this step, >= 1 ("extend" L_b).
  RowState state = RowState::prefill;
  /// Physical block of each logical block of the request, of Problem::block_tokens() tokens each;
  /// covers computed + scheduled tokens.
  std::vector<std::int32_t> block_table;
  /// Slot of each new token in an unsharded pool: block * block_tokens() + offset. [scheduled]
  std::vector<std::int64_t> slots;
};

/// What one forward pass has to compute: the problem, not the solution. New tokens are flattened
/// row by row: row 0's scheduled tokens in position order, then row 1's, and so on.
struct Step {
  std::uint32_t index = 0;
  std::vector<StepRow> rows;

  [[nodiscard]] std::int64_t num_tokens() const noexcept {
    std::int64_t total = 0;
    for (const StepRow& row : rows) total += row.scheduled;
    return total;
  }
};

/// A token whose K/V is in the pool before step 0.
struct CachedToken {
  RequestId request;
  std::int64_t position = 0;
  std::int64_t slot = 0;
};

/// Everything that subject and reference are given; neither computes it.
struct Problem {
  Scenario scenario;
  std::uint32_t num_blocks = 0;  ///< Of every rank's pool, null block included.
  std::vector<CachedToken> cached;
  std::vector<Step> steps;

  [[nodiscard]] std::int64_t block_tokens() const noexcept { return scenario.block_tokens(); }
};

/// Runs the scheduler: chunked prefill, prefix hits (whole blocks only), mixed batches, decode,
/// arrivals. Throws InputError when the pool is too small for the requests.
[[nodiscard]] Problem make_problem(const Scenario& scenario);

}  // namespace cpverify
