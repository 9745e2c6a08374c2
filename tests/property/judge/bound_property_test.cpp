#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "judge/error_bound.hpp"
#include "property/judge/emulated_kernel.hpp"
#include "property/judge/emulated_merge.hpp"
#include "support/rng.hpp"

namespace cpverify::judge {
namespace {

using test::exact;
using test::ExactRow;
using test::RowProblem;
using test::RowResult;

/// Uniform in [-magnitude, magnitude], rounded to the dtype.
std::vector<float> values(std::size_t count, float magnitude, DType dtype, Rng& rng) {
  std::vector<float> made;
  for (std::size_t i = 0; i < count; ++i) {
    const auto unit =
        static_cast<float>(static_cast<std::int64_t>(rng.below(1U << 21)) - (1 << 20));
    made.push_back(test::rounded_to(dtype, unit * 0x1p-20F * magnitude));
  }
  return made;
}

/// A row of 1 to 400 keys; scores from negligible to so peaked that one key has all the weight.
RowProblem any_row() {
  RowProblem row;
  row.dtype = *rc::gen::element(DType::f32, DType::f16, DType::bf16);
  row.is_tensor_core = row.dtype != DType::f32 && *rc::gen::arbitrary<bool>();
  Rng rng{*rc::gen::arbitrary<std::uint64_t>()};
  const std::size_t dims = *rc::gen::element<std::size_t>(32, 64, 128);
  const std::size_t keys = *rc::gen::inRange<std::size_t>(1, 400);
  const float magnitude = *rc::gen::element(0.0F, 0.01F, 0.5F, 2.0F, 8.0F);
  row.softmax_scale = *rc::gen::element(0.08838835F, 0.125F, 0.3F);
  row.q = values(dims, magnitude, row.dtype, rng);
  row.k = values(keys * dims, 1.0F, row.dtype, rng);
  row.v = values(keys * dims, *rc::gen::element(1e-6F, 1.0F, 100.0F), row.dtype, rng);
  return row;
}

/// Some of: a cap that most scores exceed or none comes near, a sink, and a window that begins in
/// the middle of a tile.
RowProblem any_row_with_features() {
  RowProblem row = any_row();
  row.soft_cap = *rc::gen::element(0.0F, 0.5F, 5.0F, 50.0F, 1000.0F);
  if (*rc::gen::arbitrary<bool>()) row.sink = *rc::gen::element(0.0F, -90.0F, 1.5F, 10.0F, 99.0F);
  row.keys_before = *rc::gen::inRange<std::size_t>(0, 32);
  return row;
}

Arithmetic arithmetic_of(const RowProblem& row) {
  Arithmetic arithmetic;
  arithmetic.head_dim = static_cast<std::uint32_t>(row.head_dim());
  arithmetic.out_dtype = row.dtype;
  arithmetic.numerics.p_dtype = row.is_tensor_core ? row.dtype : DType::f32;
  arithmetic.numerics.is_tensor_core = row.is_tensor_core;
  arithmetic.soft_cap = static_cast<double>(row.soft_cap);
  arithmetic.has_window = row.keys_before > 0;
  return arithmetic;
}

RowBound bound_of(const RowProblem& row, const ExactRow& expected) {
  return {arithmetic_of(row), expected.magnitudes};
}

/// Largest error / bound of the row's elements.
double output_ratio(const RowResult& found, const ExactRow& expected, const RowBound& bound) {
  double worst = 0.0;
  for (std::size_t d = 0; d < found.out.size(); ++d) {
    const double want = expected.result.out[d];
    worst =
        std::max(worst, error_ratio(found.out[d], want, bound.output(expected.abs_mass[d], want)));
  }
  return worst;
}

// The derivation against arithmetic: a correct kernel, rounding or truncating, never exceeds its
// bounds.
RC_GTEST_PROP(RowBound, HoldsForACorrectKernel, ()) {
  const RowProblem row = any_row();
  const RowResult found = test::emulate(row);
  const ExactRow expected = exact(row);
  const RowBound bound = bound_of(row, expected);
  RC_ASSERT(within(found.lse, expected.result.lse, bound.lse()));
  RC_ASSERT(output_ratio(found, expected, bound) <= 1.0);
}

RC_GTEST_PROP(RowBound, HoldsForSoftCapsSinksAndWindows, ()) {
  const RowProblem row = any_row_with_features();
  const RowResult found = test::emulate(row);
  const ExactRow expected = exact(row);
  const RowBound bound = bound_of(row, expected);
  RC_ASSERT(within(found.lse, expected.result.lse, bound.lse()));
  RC_ASSERT(output_ratio(found, expected, bound) <= 1.0);
}

// With q = 0 a sink of 0 counts as one key, and the bound is as tight as without it: 7 keys and the
// sink are told from 7 keys and from 9.
TEST(RowBound, TellsOneSinkFromNoneAndTwo) {
  RowProblem row;
  row.q.assign(32, 0.0F);
  row.k.assign(7 * 32, 1.0F);
  row.v.assign(7 * 32, 1.0F);
  row.sink = 0.0F;
  const ExactRow expected = exact(row);
  const RowBound bound = bound_of(row, expected);
  EXPECT_TRUE(within(test::emulate(row).lse, expected.result.lse, bound.lse()));
  EXPECT_TRUE(within(std::log(8.0), expected.result.lse, bound.lse()));
  EXPECT_FALSE(within(std::log(7.0), expected.result.lse, bound.lse()));
  EXPECT_FALSE(within(std::log(9.0), expected.result.lse, bound.lse()));
  EXPECT_LT(bound.lse(), 1e-5);
}

// A kernel that leaves the cap out of scores which exceed it cannot pass, nor one that uses
// another.
TEST(RowBound, FailsAKernelWithoutTheCap) {
  RowProblem row;
  row.q.assign(32, 1.0F);
  row.k.assign(64, 0.0F);
  row.v.assign(64, 1.0F);
  std::fill(row.k.begin() + 32, row.k.end(), 0.0625F);  // Scores 0 and 2.
  row.soft_cap = 2.0F;
  const ExactRow expected = exact(row);
  const RowBound bound = bound_of(row, expected);
  // ln(1 + e^(2 tanh 1)) = ln(1 + e^1.52319) = 1.72041
  EXPECT_NEAR(expected.result.lse, 1.72041, 1e-5);
  EXPECT_TRUE(within(test::emulate(row).lse, expected.result.lse, bound.lse()));
  row.soft_cap = 0.0F;
  EXPECT_FALSE(within(test::emulate(row).lse, expected.result.lse, bound.lse()));
  row.soft_cap = 2.001F;
  EXPECT_FALSE(within(test::emulate(row).lse, expected.result.lse, bound.lse()));
}

RowBound merged_bound_of(const RowProblem& row, const ExactRow& expected,
                         const MergeNumerics& merge) {
  Arithmetic arithmetic = arithmetic_of(row);
  arithmetic.numerics.merge = merge;
  return {arithmetic, expected.magnitudes};
}

/// 0 = the first of `partials` + 1 ascending key numbers; neighbours may be equal: no keys.
std::vector<std::size_t> any_cuts(std::size_t keys, std::size_t partials) {
  std::vector<std::size_t> cuts{0, keys};
  while (cuts.size() < partials + 1) cuts.push_back(*rc::gen::inRange<std::size_t>(0, keys + 1));
  std::sort(cuts.begin(), cuts.end());
  return cuts;
}

// Whatever part of the keys each partial has, merging them in any of the ways that the plans know
// stays within the bound.
RC_GTEST_PROP(RowBound, HoldsForMergedPartials, ()) {
  const RowProblem row = any_row();
  const std::size_t partials = *rc::gen::inRange<std::size_t>(2, 9);
  const auto parts = test::emulate_parts(test::split_keys(row, any_cuts(row.num_keys(), partials)));
  const ExactRow expected = exact(row);
  const auto count = static_cast<std::int64_t>(partials);
  const auto holds = [&](const RowResult& found, const MergeNumerics& merge) {
    const RowBound bound = merged_bound_of(row, expected, merge);
    return within(found.lse, expected.result.lse, bound.lse()) &&
           output_ratio(found, expected, bound) <= 1.0;
  };
  RC_ASSERT(holds(test::merge_at_once(parts, row.dtype), {count, 1, row.dtype, DType::f32}));
  RC_ASSERT(holds(test::merge_scaled(parts, row.dtype), {count, 1, row.dtype, row.dtype}));
  RC_ASSERT(
      holds(test::merge_in_turn(parts, row.dtype), {count, count - 1, row.dtype, DType::f32}));
}

// A plain mean of two partials that weigh differently is beyond it.
TEST(RowBound, FailsAMeanOfUnequalPartials) {
  RowProblem row;
  row.q.assign(32, 1.0F);
  row.k.assign(64, 0.0F);
  row.v.assign(64, 0.0F);
  std::fill(row.k.begin() + 32, row.k.end(), 0.0625F);  // Score 2: weights 1 and e^2.
  std::fill(row.v.begin() + 32, row.v.end(), 1.0F);
  const ExactRow expected = exact(row);
  const RowBound bound = merged_bound_of(row, expected, {2, 1, DType::f32, DType::f32});
  EXPECT_FALSE(within(0.5, expected.result.out[0], bound.output(expected.abs_mass[0], 0.88)));
}

// And it is not so wide that it lets a kernel pass that misses the last key of a few hundred
// nearly equal ones: LSE is then wrong by about 1/n >= 1/400, its bound is below 2e-4.
RC_GTEST_PROP(RowBound, FailsAKernelThatDropsAKey, ()) {
  RowProblem row = any_row();
  RC_PRE(row.num_keys() > 1);
  for (float& value : row.q) value = test::rounded_to(row.dtype, value * 0.05F);
  const ExactRow expected = exact(row);
  RC_PRE(expected.magnitudes.max_abs_score < 2.0);
  const RowBound bound = bound_of(row, expected);
  row.k.resize(row.k.size() - row.head_dim());
  row.v.resize(row.v.size() - row.head_dim());
  RC_ASSERT(!within(test::emulate(row).lse, expected.result.lse, bound.lse()));
}

// A kernel that forgets the scale's factor log2(e), or writes LSE in base 2, cannot pass.
RC_GTEST_PROP(RowBound, FailsTheWrongBase, ()) {
  const RowProblem row = any_row();
  const ExactRow expected = exact(row);
  RC_PRE(std::abs(expected.result.lse) > 0.01);
  const double base_2 = test::emulate(row).lse * 1.4426950408889634;
  RC_ASSERT(!within(base_2, expected.result.lse, bound_of(row, expected).lse()));
}

}  // namespace
}  // namespace cpverify::judge
