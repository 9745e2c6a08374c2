#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;

std::int64_t at(const Integers& values, std::int64_t index) {
  return values.at(static_cast<std::size_t>(index));
}

/// A batch long enough for CP to be on.
Problem any_cp_problem() {
  const auto cp = *rc::gen::inRange(2U, 9U);
  const std::int64_t least = 2 * std::int64_t{cp};
  const auto row = [least] {
    return RowSpec{.scheduled = *rc::gen::inRange<std::int64_t>(least, least + 40),
                   .computed = *rc::gen::inRange<std::int64_t>(0, 50)};
  };
  Problem problem = *rc::gen::inRange(0, 2) == 0 ? problem_of({row()}, cp)
                                                 : problem_of({row(), row(), row()}, cp);
  problem.scenario.padding.token_multiple = *rc::gen::inRange<std::int64_t>(1, 9);
  return problem;
}

// The closed forms of the layout, for one row b and one length L: s_j = q + [j < m] with q = L div
// 2C and m = L mod 2C. The oracle must not know them; here they check it.
struct ClosedForm {
  std::int64_t cp;
  const Step& step;

  [[nodiscard]] std::int64_t size(std::size_t row, std::int64_t block) const {
    const std::int64_t length = step.rows[row].scheduled;
    return length / (2 * cp) + (block < length % (2 * cp) ? 1 : 0);
  }
  [[nodiscard]] std::int64_t total(std::int64_t block, std::size_t rows) const {
    std::int64_t sum = 0;
    for (std::size_t row = 0; row < rows; ++row) sum += size(row, block);
    return sum;
  }
  /// Row within the owner's shard of token t of a block.
  [[nodiscard]] std::int64_t in_rank(std::size_t row, std::int64_t block, std::int64_t t) const {
    if (block < cp) return total(block, row) + t;
    return total(2 * cp - 1 - block, step.rows.size()) + total(block, row) + t;
  }
  [[nodiscard]] std::int64_t piece(std::size_t row, std::int64_t block) const {
    const auto rows = static_cast<std::int64_t>(step.rows.size());
    const auto b = static_cast<std::int64_t>(row);
    return block < cp ? 2 * rows * block + b : 2 * rows * (2 * cp - 1 - block) + rows + b;
  }
};

/// Checks the piece and the tokens of one block, `flat` being its first flattened token, and
/// returns the block's kv length as its owner holds it.
std::int64_t assert_block(const ClosedForm& form, const std::vector<RankIntegers>& ranks,
                          std::size_t row, std::int64_t block, std::int64_t flat) {
  const bool is_early = block < form.cp;
  const std::int64_t owner = is_early ? block : 2 * form.cp - 1 - block;
  const auto& common = ranks.at(0).arrays;
  const auto& owned = ranks.at(static_cast<std::size_t>(owner)).arrays;
  const std::int64_t place = static_cast<std::int64_t>(row) * 2 * form.cp + block;
  RC_ASSERT(at(common.at("piece_order"), place) == form.piece(row, block));
  for (std::int64_t t = 0; t < form.size(row, block); ++t) {
    const std::int64_t in_rank = form.in_rank(row, block, t);
    const std::int64_t gathered = owner * common.at("max_rows").at(0) + in_rank;
    RC_ASSERT(at(common.at("reorder_index"), flat + t) == gathered);
    RC_ASSERT(at(owned.at("shard_index"), in_rank) == flat + t);
  }
  return owned.at(is_early ? "kv_lens_prev" : "kv_lens_next").at(row);
}

TEST(IntegerOracleProperty, AgreesWithTheClosedFormsOfZigzag) {
  RC_ASSERT(rc::check([] {
    const Problem problem = any_cp_problem();
    const Step& step = problem.steps[0];
    const ClosedForm form{problem.scenario.topology.cp, step};
    const auto ranks = expected_integers(problem, 0, StrategyKind::zigzag);
    std::int64_t flat = 0;
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      std::int64_t end = step.rows[row].computed;
      for (std::int64_t block = 0; block < 2 * form.cp; ++block) {
        end += form.size(row, block);
        RC_ASSERT(assert_block(form, ranks, row, block, flat) == end);
        flat += form.size(row, block);
      }
    }
  }));
}

TEST(IntegerOracleProperty, EveryTokenIsOwnedExactlyOnceInOrder) {
  RC_ASSERT(rc::check([] {
    const Problem problem = any_cp_problem();
    const auto ranks = expected_integers(problem, 0, StrategyKind::zigzag);
    Integers owned;
    for (const RankIntegers& rank : ranks) {
      RC_ASSERT(rank.is_cp_on);
      RC_ASSERT(static_cast<std::int64_t>(rank.row_tokens.size()) ==
                rank.arrays.at("physical_rows")[0]);
      for (const std::int64_t token : rank.row_tokens) {
        if (token >= 0) owned.push_back(token);
      }
    }
    std::sort(owned.begin(), owned.end());
    RC_ASSERT(static_cast<std::int64_t>(owned.size()) == problem.steps[0].num_tokens());
    for (std::size_t i = 0; i < owned.size(); ++i) {
      RC_ASSERT(owned[i] == static_cast<std::int64_t>(i));
    }
  }));
}

void assert_sizes(const RankIntegers& rank) {
  for (const auto& entry : rank.arrays) {
    std::int64_t size = 1;
    for (const std::int64_t extent : rank.shapes.at(entry.first)) size *= extent;
    RC_ASSERT(size == static_cast<std::int64_t>(entry.second.size()));
  }
}

TEST(IntegerOracleProperty, EveryArrayHasTheSizeOfItsShape) {
  RC_ASSERT(rc::check([] {
    const Problem problem = any_cp_problem();
    for (const StrategyKind strategy : {StrategyKind::single, StrategyKind::zigzag}) {
      for (const RankIntegers& rank : expected_integers(problem, 0, strategy)) assert_sizes(rank);
    }
  }));
}

}  // namespace
}  // namespace cpverify::reference
