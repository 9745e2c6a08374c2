#include "reference/dtype_values.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"

namespace cpverify::reference {
namespace {

double widen_f16(std::uint16_t bits) {
  std::array<std::byte, 2> bytes{};
  std::memcpy(bytes.data(), &bits, 2);
  double value = 0.0;
  widen(DType::f16, bytes.data(), 1, &value);
  return value;
}

double widen_bf16(std::uint16_t bits) {
  std::array<std::byte, 2> bytes{};
  std::memcpy(bytes.data(), &bits, 2);
  double value = 0.0;
  widen(DType::bf16, bytes.data(), 1, &value);
  return value;
}

TEST(Widen, KnowsTheLandmarksOfF16) {
  EXPECT_EQ(widen_f16(0x3C00), 1.0);
  EXPECT_EQ(widen_f16(0xC000), -2.0);
  EXPECT_EQ(widen_f16(0x7BFF), 65504.0);
  EXPECT_EQ(widen_f16(0x0400), std::ldexp(1.0, -14));  // Smallest normal.
  EXPECT_EQ(widen_f16(0x3555), 1365.0 / 4096.0);       // 0x155 = 341: (1024+341) * 2^-12.
  EXPECT_EQ(widen_f16(0x7C00), std::numeric_limits<double>::infinity());
  EXPECT_EQ(widen_f16(0xFC00), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(widen_f16(0x7E00)));
}

TEST(Widen, KeepsSubnormalsAndTheSignOfZeroInF16) {
  EXPECT_EQ(widen_f16(0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(widen_f16(0x83FF), -1023.0 * std::ldexp(1.0, -24));
  EXPECT_EQ(widen_f16(0x0000), 0.0);
  EXPECT_FALSE(std::signbit(widen_f16(0x0000)));
  EXPECT_EQ(widen_f16(0x8000), 0.0);
  EXPECT_TRUE(std::signbit(widen_f16(0x8000)));
}

// value = (-1)^s * 2^(e-25) * (1024+f) for e > 0, spelled with ldexp instead of bits.
TEST(Widen, AgreesWithTheDefinitionOnEveryFiniteF16) {
  for (std::uint32_t bits = 0; bits < 0x10000U; ++bits) {
    const int exponent = static_cast<int>((bits >> 10U) & 31U);
    const int fraction = static_cast<int>(bits & 1023U);
    if (exponent == 31) continue;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    const double expected = bits < 0x8000U ? magnitude : -magnitude;
    ASSERT_EQ(widen_f16(static_cast<std::uint16_t>(bits)), expected) << bits;
  }
}

TEST(Widen, KnowsTheLandmarksOfBf16) {
  EXPECT_EQ(widen_bf16(0x3F80), 1.0);
  EXPECT_EQ(widen_bf16(0xC040), -3.0);
  EXPECT_EQ(widen_bf16(0x0001), std::ldexp(1.0, -133));   // Subnormal: 2^-126 * 2^-7.
  EXPECT_EQ(widen_bf16(0x7F7F), std::ldexp(255.0, 120));  // 1.9921875 * 2^127.
  EXPECT_EQ(widen_bf16(0xFF80), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(widen_bf16(0x7FC0)));
}

TEST(Widen, IsExactForF32AndCountsElements) {
  const std::array<float, 3> source{0.1F, std::numeric_limits<float>::denorm_min(), -7.0F};
  std::array<std::byte, 12> bytes{};
  std::memcpy(bytes.data(), source.data(), bytes.size());
  std::array<double, 4> target{9.0, 9.0, 9.0, 9.0};
  widen(DType::f32, bytes.data(), 3, target.data());
  EXPECT_EQ(target,
            (std::array<double, 4>{static_cast<double>(0.1F), std::ldexp(1.0, -149), -7.0, 9.0}));
}

TEST(Widen, RefusesIntegers) {
  std::array<std::byte, 8> bytes{};
  double value = 0.0;
  EXPECT_THROW(widen(DType::i32, bytes.data(), 1, &value), std::invalid_argument);
}

}  // namespace
}  // namespace cpverify::reference
