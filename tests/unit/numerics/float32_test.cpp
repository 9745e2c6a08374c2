#include "numerics/float32.hpp"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace cpverify::numerics {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kSignallingNan = from_bits(0xff800001U);

TEST(Canonical, KeepsNumbersAndReplacesNan) {
  EXPECT_EQ(to_bits(canonical(-0.0F)), 0x80000000U);
  EXPECT_EQ(canonical(kInfinity), kInfinity);
  EXPECT_EQ(to_bits(canonical(kSignallingNan)), 0x7fffffffU);
}

TEST(FlushSubnormal, KeepsTheSignAndTheSmallestNormal) {
  EXPECT_EQ(to_bits(flush_subnormal(from_bits(0x007fffffU))), 0U);
  EXPECT_EQ(to_bits(flush_subnormal(from_bits(0x80000001U))), 0x80000000U);
  EXPECT_EQ(to_bits(flush_subnormal(from_bits(0x00800000U))), 0x00800000U);
  EXPECT_EQ(to_bits(flush_subnormal(from_bits(0x7f800001U))), 0x7f800001U);
}

TEST(Maximum, TreatsMinusZeroAsSmallerAndSkipsNan) {
  EXPECT_EQ(to_bits(maximum(-0.0F, 0.0F)), 0U);
  EXPECT_EQ(to_bits(maximum(0.0F, -0.0F)), 0U);
  EXPECT_EQ(to_bits(maximum(-0.0F, -0.0F)), 0x80000000U);
  EXPECT_EQ(maximum(-kInfinity, -3.0F), -3.0F);
  EXPECT_EQ(maximum(kSignallingNan, -3.0F), -3.0F);
  EXPECT_EQ(maximum(-3.0F, kSignallingNan), -3.0F);
  EXPECT_EQ(to_bits(maximum(kSignallingNan, kSignallingNan)), 0x7fffffffU);
}

TEST(Minimum, TreatsMinusZeroAsSmallerAndSkipsNan) {
  EXPECT_EQ(to_bits(minimum(-0.0F, 0.0F)), 0x80000000U);
  EXPECT_EQ(to_bits(minimum(0.0F, -0.0F)), 0x80000000U);
  EXPECT_EQ(to_bits(minimum(0.0F, 0.0F)), 0U);
  EXPECT_EQ(minimum(kInfinity, 3.0F), 3.0F);
  EXPECT_EQ(minimum(kSignallingNan, 3.0F), 3.0F);
  EXPECT_EQ(minimum(3.0F, kSignallingNan), 3.0F);
  EXPECT_EQ(to_bits(minimum(kSignallingNan, kSignallingNan)), 0x7fffffffU);
}

TEST(MaximumNan, PropagatesNanOfEitherOperand) {
  EXPECT_EQ(to_bits(maximum_nan(kSignallingNan, 1.0F)), 0x7fffffffU);
  EXPECT_EQ(to_bits(maximum_nan(1.0F, kSignallingNan)), 0x7fffffffU);
  EXPECT_EQ(maximum_nan(1.0F, 2.0F), 2.0F);
  EXPECT_EQ(to_bits(minimum_nan(kSignallingNan, 1.0F)), 0x7fffffffU);
  EXPECT_EQ(to_bits(minimum_nan(1.0F, kSignallingNan)), 0x7fffffffU);
  EXPECT_EQ(minimum_nan(1.0F, 2.0F), 1.0F);
}

TEST(Divide, RoundsOnceAndCanonicalisesInvalid) {
  // 1/3 = 2^-2 * 1.0101...b. The 23 mantissa bits are 0101..010, followed by 1010...: above half,
  // so it rounds up to 0101..011 = 0x2aaaab. The exponent field is 127 - 2 = 125.
  EXPECT_EQ(to_bits(divide(1.0F, 3.0F)), 0x3eaaaaabU);
  EXPECT_EQ(to_bits(divide(0.0F, 0.0F)), 0x7fffffffU);
  EXPECT_EQ(to_bits(divide(kInfinity, kInfinity)), 0x7fffffffU);
  // Smallest normal / 2 is exactly the subnormal 0x00400000.
  EXPECT_EQ(to_bits(divide(from_bits(0x00800000U), 2.0F)), 0x00400000U);
}

TEST(Reciprocal, HandlesZerosAndInfinities) {
  EXPECT_EQ(reciprocal(0.0F), kInfinity);
  EXPECT_EQ(reciprocal(-0.0F), -kInfinity);
  EXPECT_EQ(to_bits(reciprocal(-kInfinity)), 0x80000000U);
  EXPECT_EQ(reciprocal(4.0F), 0.25F);
}

TEST(FusedMultiplyAdd, RoundsOnce) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24. Rounded to f32 alone the last term is lost (tie to even),
  // with -(1 + 2^-11) added before rounding it is what remains.
  const float x = 1.0F + 0x1p-12F;
  EXPECT_EQ(fused_multiply_add(x, x, -(1.0F + 0x1p-11F)), 0x1p-24F);
  EXPECT_EQ(to_bits(fused_multiply_add(kInfinity, 0.0F, 1.0F)), 0x7fffffffU);
}

}  // namespace
}  // namespace cpverify::numerics
