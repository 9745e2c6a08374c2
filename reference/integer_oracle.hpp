#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpverify/step.hpp"

namespace cpverify::reference {

/// The integers a rank must hold in one step, by the names of the plan's metadata buffers
/// (docs/plan.md), derived by brute force from the definitions: one token at a time, no closed
/// forms.
struct RankIntegers {
  /// What an output holds that has other heads than the rank's, or other rows than its local ones.
  struct Claim {
    std::int64_t first_head = 0;  ///< Of the model's query heads.
    std::int64_t num_heads = 0;
    std::vector<std::int64_t> row_tokens;
  };

  bool is_cp_on = false;
  /// Metadata arrays by buffer name, row-major.
  std::map<std::string, std::vector<std::int64_t>> arrays;
  /// Row of the step that each value is about, of arrays that are not laid out by the step's rows:
  /// prefix sums have one value more, the first.
  std::map<std::string, std::vector<std::size_t>> value_rows;
  /// Shapes of metadata, workspace and output buffers that are fixed by the strategy, by name.
  std::map<std::string, std::vector<std::int64_t>> shapes;
  /// Flattened step token held by each local row, -1 for pad rows.
  std::vector<std::int64_t> row_tokens;
  /// By buffer name.
  std::map<std::string, Claim> claims;
};

/// One entry per world rank.
[[nodiscard]] std::vector<RankIntegers> expected_integers(const Problem& problem,
                                                          std::uint32_t step,
                                                          StrategyKind strategy);

/// Number of keys that a query sees: bottom-right causal over computed + new tokens of its request.
[[nodiscard]] std::int64_t visible_keys(const StepRow& row, std::int64_t new_token_index);

/// What a pool slot must hold: the K/V of the token last written to it. A token cached before step
/// 0 counts as written.
struct SlotOwner {
  bool is_written = false;
  RequestId request;
  std::int64_t position = 0;
};

/// Of an unsharded pool: [num_blocks * block_tokens()], after all steps up to and including `step`.
[[nodiscard]] std::vector<SlotOwner> expected_slots(const Problem& problem, std::uint32_t step);

/// Of every world rank's pools: the same, or [num_blocks * block_size] of the rank's own when the
/// strategy shards the cache.
class RankSlots {
 public:
  RankSlots(const Problem& problem, std::uint32_t step, StrategyKind strategy);
  [[nodiscard]] const std::vector<SlotOwner>& of(RankId rank) const;

 private:
  std::vector<std::vector<SlotOwner>> by_shard_;  ///< One when nothing is sharded.
  std::vector<std::size_t> shards_;               ///< Of every rank; empty then.
};

}  // namespace cpverify::reference
