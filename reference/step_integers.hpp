#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

/// What the oracles of all strategies need: the arrays that every rank holds, and small helpers.
namespace cpverify::reference {

using Integers = std::vector<std::int64_t>;

/// Exclusive prefix sums, one entry more than `counts`.
[[nodiscard]] Integers prefix_sums(const Integers& counts);

/// The next multiple of `multiple`, by counting up.
[[nodiscard]] std::int64_t padded(std::int64_t count, std::int64_t multiple);

[[nodiscard]] inline std::int64_t length(const Integers& values) {
  return static_cast<std::int64_t>(values.size());
}

/// What a rank's heads and buffers need to know of the step.
struct StepSizes {
  std::int64_t padded_tokens = 0;
  std::int64_t num_rows = 0;
  std::int64_t max_pages = 0;
};

[[nodiscard]] StepSizes step_sizes(const Problem& problem, const Step& step);

/// Heads of one TP rank, by listing them.
struct Heads {
  std::int64_t query = 0;
  std::int64_t key_value = 0;
};

/// The rank's share of the query heads, and the KV heads that these read.
[[nodiscard]] Heads rank_heads(const Scenario& scenario, std::uint32_t tp_rank);

/// Arrays that have one dimension are as long as they are long.
void add_vector(RankIntegers& result, const std::string& name, const Integers& values);

/// The same of an array whose value i is about row `rows[i]` of the step, or whose value i + 1 is.
void add_vector(RankIntegers& result, const std::string& name, const Integers& values,
                const std::vector<std::size_t>& rows);

/// slot_mapping and block_table of an unsharded rank.
void add_common(RankIntegers& result, const Step& step, const StepSizes& sizes);

/// q, k, v, the pools (with `block_size` tokens of each block) and out.
void add_tensor_shapes(RankIntegers& result, const Problem& problem, const StepSizes& sizes,
                       const Heads& heads);

/// All of what a rank holds that computes the whole step itself, shapes of tensors apart.
[[nodiscard]] RankIntegers single_integers(const Step& step, const StepSizes& sizes);

}  // namespace cpverify::reference
