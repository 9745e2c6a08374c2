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
  const auto row = [cp] {
    return RowSpec{.scheduled = *rc::gen::inRange<std::int64_t>(2 * cp, 2 * cp + 40),
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

TEST(IntegerOracleProperty, AgreesWithTheClosedFormsOfZigzag) {
  RC_ASSERT(rc::check([] {
    const Problem problem = any_cp_problem();
    const Step& step = problem.steps[0];
    const std::int64_t cp = problem.scenario.topology.cp;
    const ClosedForm form{cp, step};
    const auto ranks = expected_integers(problem, 0, StrategyKind::zigzag);
    const auto& first = ranks.at(0).arrays;
    const std::int64_t max_rows = first.at("max_rows").at(0);
    std::int64_t flat = 0;
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      std::int64_t end = step.rows[row].computed;
      for (std::int64_t block = 0; block < 2 * cp; ++block) {
        const std::int64_t owner = block < cp ? block : 2 * cp - 1 - block;
        const auto& arrays = ranks.at(static_cast<std::size_t>(owner)).arrays;
        end += form.size(row, block);
        const auto& kv_lens = arrays.at(block < cp ? "kv_lens_prev" : "kv_lens_next");
        RC_ASSERT(kv_lens.at(row) == end);
        const auto b = static_cast<std::int64_t>(row);
        RC_ASSERT(at(first.at("piece_order"), b * 2 * cp + block) == form.piece(row, block));
        for (std::int64_t t = 0; t < form.size(row, block); ++t, ++flat) {
          const std::int64_t in_rank = form.in_rank(row, block, t);
          RC_ASSERT(at(first.at("reorder_index"), flat) == owner * max_rows + in_rank);
          RC_ASSERT(at(arrays.at("shard_index"), in_rank) == flat);
        }
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

TEST(IntegerOracleProperty, EveryArrayHasTheSizeOfItsShape) {
  RC_ASSERT(rc::check([] {
    const Problem problem = any_cp_problem();
    for (const StrategyKind strategy : {StrategyKind::single, StrategyKind::zigzag}) {
      for (const RankIntegers& rank : expected_integers(problem, 0, strategy)) {
        for (const auto& entry : rank.arrays) {
          std::int64_t size = 1;
          for (const std::int64_t extent : rank.shapes.at(entry.first)) size *= extent;
          RC_ASSERT(size == static_cast<std::int64_t>(entry.second.size()));
        }
      }
    }
  }));
}

}  // namespace
}  // namespace cpverify::reference
