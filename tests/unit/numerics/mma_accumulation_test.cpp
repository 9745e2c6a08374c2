#include "numerics/mma_accumulation.hpp"

#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/mma_accumulation.hpp"
#include "numerics/float32.hpp"

namespace cpverify::numerics {
namespace {

constexpr float kTwo24 = 16777216.0F;
/// 2^-12: a product of two is 2^-24.
constexpr float kTwoM12 = 1.0F / 4096;

float run(MmaAccumulation policy, const std::vector<float>& a, float c) {
  return accumulate(policy, a, std::vector<float>(a.size(), 1.0F), c);
}

// From 2^24 on, f32 values are 2 apart; a tie goes to the multiple of 4.
// Chain: 2^24 + 1 -> 2^24, four times. Pairwise: (1+1)+(1+1) = 4, 2^24 + 4.
// Truncating: the grid is 2^(24-25) = 1/2, the sum 2^24 + 4 exactly.
TEST(MmaAccumulation, SmallProductsBesideALargeC) {
  const std::vector<float> ones(4, 1.0F);
  EXPECT_EQ(run(MmaAccumulation::fma_chain, ones, kTwo24), kTwo24);
  EXPECT_EQ(run(MmaAccumulation::pairwise, ones, kTwo24), kTwo24 + 4);
  EXPECT_EQ(run(MmaAccumulation::truncating, ones, kTwo24), kTwo24 + 4);
}

// 1 + 3 * 2^-24 lies between 1 + 2^-23 and 1 + 2^-22. Chain: 1 + 2^-24 is a tie -> 1, three times.
// Pairwise: 2^-24 + 2^-24 = 2^-23, + 2^-24 (the odd one), 1 + 3 * 2^-24 is a tie of the two,
// 1 + 2^-22 is even. Truncating: exact on the grid of 2^-25, cut to 1 + 2^-23.
TEST(MmaAccumulation, TheSumIsRoundedOrCut) {
  const std::vector<float> small(3, kTwoM12);
  EXPECT_EQ(accumulate(MmaAccumulation::fma_chain, small, small, 1.0F), 1.0F);
  EXPECT_EQ(accumulate(MmaAccumulation::pairwise, small, small, 1.0F), 1.0F + 0x1p-22F);
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, small, small, 1.0F), 1.0F + 0x1p-23F);
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, small, std::vector<float>(3, -kTwoM12), -1.0F),
            -1.0F - 0x1p-23F);
}

// The grid beside 1 is 2^-25. Each 2^-26 is cut to 0 where four of them would be 2^-24; -2^-26 too,
// so that 1 stays where the exact result would be cut to 1 - 2^-24.
TEST(MmaAccumulation, AddendsBelowTheGridAreLost) {
  const std::vector<float> tiny(4, 0x1p-13F);
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, tiny, tiny, 1.0F), 1.0F);
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, tiny, std::vector<float>(4, -0x1p-13F), 1.0F),
            1.0F);
  // 3 * 2^-26 is cut to 2^-25; two of them are 2^-24, and 1 + 2^-24 is cut to 1; of -1 and these,
  // -1 + 2^-24 is exact.
  const std::vector<float> three{0x3p-13F, 0x3p-13F};
  const std::vector<float> factor{0x1p-13F, 0x1p-13F};
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, three, factor, 1.0F), 1.0F);
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, three, factor, -1.0F), -1.0F + 0x1p-24F);
}

// 1.5 * 1.5 = 2.25 has the exponent 0 + 0, so the grid is 2^-25 still, and 2^-25 is kept: the sum
// 2.25 + 2^-25 - 2.25. A normalised product would have had the grid 2^-24.
TEST(MmaAccumulation, ProductsAreNotNormalised) {
  EXPECT_EQ(accumulate(MmaAccumulation::truncating, std::vector<float>{1.5F, 0x1p-13F, -1.5F},
                       std::vector<float>{1.5F, 0x1p-12F, 1.5F}, 0.0F),
            0x1p-25F);
}

TEST(MmaAccumulation, ExactSumsAreTheSameUnderEveryPolicy) {
  for (const MmaAccumulation policy : kMmaAccumulations) {
    EXPECT_EQ(run(policy, {1, 2, 3, 4, 5, 6, 7, 8}, 0.5F), 36.5F) << name(policy);
    EXPECT_EQ(run(policy, {1}, -1), 0.0F) << name(policy);
    EXPECT_EQ(to_bits(run(policy, {1, -1, 0}, 0)), 0U) << name(policy);
    EXPECT_EQ(to_bits(run(policy, {-0.0F, -0.0F}, -0.0F)), kSignBit32) << name(policy);
    EXPECT_EQ(run(policy, {0x1p-149F}, 0x1p-149F), 0x1p-148F) << name(policy);
  }
}

TEST(MmaAccumulation, InfinitiesAndNaNsComeThroughUnderEveryPolicy) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (const MmaAccumulation policy : kMmaAccumulations) {
    EXPECT_EQ(run(policy, {kInfinity, 1}, 1), kInfinity) << name(policy);
    EXPECT_EQ(to_bits(run(policy, {kInfinity, -kInfinity}, 1)), kCanonicalNan32) << name(policy);
    EXPECT_EQ(to_bits(run(policy, {1, 1}, std::numeric_limits<float>::quiet_NaN())),
              kCanonicalNan32)
        << name(policy);
    EXPECT_EQ(run(policy, {kLargest, kLargest}, 0), kInfinity) << name(policy);
  }
  // Cut towards zero, 2^128 - 2^103 stays the largest number; to nearest it is infinity.
  EXPECT_EQ(run(MmaAccumulation::truncating, {kLargest, 0x1p103F}, 0), kLargest);
  EXPECT_EQ(run(MmaAccumulation::pairwise, {kLargest, 0x1p103F}, 0), kInfinity);
}

}  // namespace
}  // namespace cpverify::numerics
