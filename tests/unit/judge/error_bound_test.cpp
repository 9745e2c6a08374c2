#include "judge/error_bound.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"

namespace cpverify::judge {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kU = 0x1p-24;

Arithmetic arithmetic(DType out, DType p, bool is_tensor_core) {
  Arithmetic arithmetic;
  arithmetic.head_dim = 64;
  arithmetic.out_dtype = out;
  arithmetic.numerics = {p, is_tensor_core, 32};
  return arithmetic;
}

TEST(Within, AcceptsTheBoundItselfAndRejectsTheNextDouble) {
  const double bound = 0.25;
  EXPECT_TRUE(within(1.25, 1.0, bound));
  EXPECT_TRUE(within(0.75, 1.0, bound));
  EXPECT_FALSE(within(std::nextafter(1.25, 2.0), 1.0, bound));
  EXPECT_FALSE(within(std::nextafter(0.75, 0.0), 1.0, bound));
}

TEST(Within, RejectsNanOnEitherSideAndOnBoth) {
  EXPECT_FALSE(within(kNan, 1.0, kInf));
  EXPECT_FALSE(within(1.0, kNan, kInf));
  EXPECT_FALSE(within(kNan, kNan, kInf));
  EXPECT_FALSE(within(1.0, 2.0, kNan));
}

TEST(Within, MatchesAnInfinityExactlyAndOnlyWithItself) {
  EXPECT_TRUE(within(-kInf, -kInf, 0.0));
  EXPECT_FALSE(within(-kInf, kInf, kInf));
  EXPECT_FALSE(within(-1e300, -kInf, kInf));
  EXPECT_FALSE(within(-kInf, -1e300, kInf));
}

TEST(ErrorRatio, AgreesWithWithinAtTheBound) {
  EXPECT_EQ(error_ratio(1.25, 1.0, 0.25), 1.0);
  EXPECT_GT(error_ratio(std::nextafter(1.25, 2.0), 1.0, 0.25), 1.0);
  EXPECT_EQ(error_ratio(1.0, 1.0, 0.0), 0.0);
  EXPECT_EQ(error_ratio(1.0, std::nextafter(1.0, 2.0), 0.0), kInf);
  EXPECT_EQ(error_ratio(kNan, kNan, 1.0), kInf);
}

TEST(RowBound, IsZeroForARowWithoutKeys) {
  const RowBound bound{arithmetic(DType::bf16, DType::bf16, true), {}};
  EXPECT_EQ(bound.lse(), 0.0);
}

// f32 kernel, d = 64, n = 32 keys (one tile, no rescale), G = 2, L = 3, in units of u = 2^-24:
//   scores   (64 + 2) * 2 + 3 * 2                     = 138
//   exp2     2^-22                                    =   4
//   sum of l 32 additions                             =  32
//   lg2      ln 2 * 2^-22 * bit_width(32) = .6931*4*6 =  16.636
//   the rest 3 * (3 + 2)                              =  15
//                                                sum  = 205.636, and products of these.
TEST(RowBound, OfLseIsTheSumOfItsTerms) {
  const RowBound bound{arithmetic(DType::f32, DType::f32, false), {32, 3.0, 2.0, 1.0}};
  EXPECT_GE(bound.lse(), 205.636 * kU);
  EXPECT_LE(bound.lse(), 205.636 * kU * 1.0001);
}

// The same row, A = 1, o = 0.5: numerator 138 + 4 + 32 = 174, denominator 174,
//   174 * 1 + 174 * 0.5 + division 4 * 0.5 + output cast 1 * 0.5 = 263.5.
TEST(RowBound, OfOutputIsTheSumOfItsTerms) {
  const RowBound bound{arithmetic(DType::f32, DType::f32, false), {32, 3.0, 2.0, 1.0}};
  EXPECT_GE(bound.output(1.0, 0.5), 263.5 * kU);
  EXPECT_LE(bound.output(1.0, 0.5), 263.5 * kU * 1.0001);
}

// bf16: 2^-8 (A + |o|) dominates; everything else is a percent of it.
TEST(RowBound, OfBf16OutputIsDominatedByTheTwoCasts) {
  const RowBound bound{arithmetic(DType::bf16, DType::bf16, true), {32, 3.0, 2.0, 1.0}};
  EXPECT_GT(bound.output(1.0, 0.5), 1.5 * 0x1p-8);
  EXPECT_LT(bound.output(1.0, 0.5), 1.5 * 0x1p-8 * 1.03);
}

// f16: P below 2^-24 underflows; 2^-25 per key and unit of |v|.
TEST(RowBound, OfF16OutputHasTheUnderflowOfP) {
  const RowMagnitudes row{4096, 8.0, 2.0, 10.0};
  const double f16 = RowBound{arithmetic(DType::f32, DType::f16, true), row}.output(0.0, 0.0);
  EXPECT_GE(f16, 0x1p-25 * 4096 * 10.0);
  EXPECT_LE(f16, 0x1p-25 * 4096 * 10.0 * 1.0001);
}

// q = 0: no score error, every exponential is exactly 1, sums of ones are exact; what is left is
// the logarithm and its roundings: ln 2 * 4 * bit_width(1000) + 3 * 6.9078 = 27.726 + 20.723 u.
TEST(RowBound, WithZeroScoresHasOnlyTheLogarithmLeft) {
  const RowBound bound{arithmetic(DType::f32, DType::f32, false), {1000, std::log(1000.0), 0, 1}};
  EXPECT_GE(bound.lse(), 48.44 * kU);
  EXPECT_LE(bound.lse(), 48.46 * kU);
}

TEST(RowBound, GrowsWithKeysScoresAndTruncation) {
  const Arithmetic exact = arithmetic(DType::f32, DType::f32, false);
  const double base = RowBound{exact, {100, 5.0, 2.0, 1.0}}.lse();
  EXPECT_GT((RowBound{exact, {200, 5.0, 2.0, 1.0}}.lse()), base);
  EXPECT_GT((RowBound{exact, {100, 5.0, 3.0, 1.0}}.lse()), base);
  EXPECT_GT((RowBound{arithmetic(DType::f32, DType::f32, true), {100, 5.0, 2.0, 1.0}}.lse()), base);
}

// Scores so large that f32 cannot place them: no bound holds, and nothing overflows into a pass of
// NaN.
TEST(RowBound, IsInfiniteWhereTheAnalysisEnds) {
  const RowBound bound{arithmetic(DType::f32, DType::f32, false), {100, 5.0, 1e9, 1.0}};
  EXPECT_EQ(bound.lse(), kInf);
  EXPECT_EQ(bound.output(1.0, 1.0), kInf);
  EXPECT_FALSE(within(kNan, 1.0, bound.lse()));
}

}  // namespace
}  // namespace cpverify::judge
