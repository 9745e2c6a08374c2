#include "judge/diagnosis.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace cpverify::judge {
namespace {

TEST(CountedKeys, InvertsTheF32LogarithmUpToLargeCounts) {
  for (int keys = 1; keys < 70000; keys += keys < 300 ? 1 : 977) {
    const float lse = std::log(static_cast<float>(keys));
    EXPECT_EQ(counted_keys(static_cast<double>(lse)), keys);
  }
}

TEST(CountedKeys, HasNoKeysAtMinusInfinity) {
  EXPECT_EQ(counted_keys(-std::numeric_limits<double>::infinity()), 0.0);
}

TEST(CountedKeys, SaysNanAndInfinity) {
  EXPECT_TRUE(std::isnan(counted_keys(std::numeric_limits<double>::quiet_NaN())));
  EXPECT_TRUE(std::isinf(counted_keys(1e6)));
  EXPECT_TRUE(std::isinf(counted_keys(std::numeric_limits<double>::infinity())));
}

// ln 5 = 1.60944, log2 5 = 2.32193.
TEST(IsBase2, KnowsTheRatioOfTheUnits) {
  EXPECT_TRUE(is_base_2(2.32193, 1.60944, 1e-5));
  EXPECT_FALSE(is_base_2(1.60944, 1.60944, 1e-5));
  EXPECT_FALSE(is_base_2(2.3, 1.60944, 1e-5));
}

// One visible key: LSE is 0 in every base.
TEST(IsBase2, CannotTellAtZero) {
  EXPECT_FALSE(is_base_2(0.0, 0.0, 1e-6));
}

}  // namespace
}  // namespace cpverify::judge
