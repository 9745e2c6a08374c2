#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/float64.hpp"
#include "numerics/float8.hpp"
#include "numerics/half_arithmetic.hpp"
#include "numerics/odd_rounding.hpp"
#include "numerics/trigonometry.hpp"

namespace cpverify::numerics {
namespace {

/// The value of an 8-bit code from its definition.
double f8_value(int mantissa_bits, int bias, std::uint32_t code) {
  const int mantissa = static_cast<int>(code & ((1U << mantissa_bits) - 1));
  const int field = static_cast<int>((code & 0x7fU) >> mantissa_bits);
  const double magnitude =
      field == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                 : std::ldexp(mantissa + (1 << mantissa_bits), field - bias - mantissa_bits);
  return (code & 0x80U) != 0 ? -magnitude : magnitude;
}

template <class Format>
void expect_all_codes() {
  for (std::uint32_t code = 0; code < 256; ++code) {
    const auto byte = static_cast<std::uint8_t>(code);
    if ((code & 0x7fU) > Format::kLargest) continue;
    const float value = f8_to_f32<Format>(byte);
    EXPECT_EQ(static_cast<double>(value), f8_value(Format::kMantissaBits, Format::kBias, code));
    EXPECT_EQ(f32_to_f8<Format>(value), byte);
    if ((code & 0x80U) != 0 || code == Format::kLargest) continue;
    // Half way to the next code the even one wins; a bit to either side decides.
    const float next = f8_to_f32<Format>(static_cast<std::uint8_t>(code + 1));
    const float middle = 0.5F * (value + next);
    EXPECT_EQ(f32_to_f8<Format>(middle), code + code % 2) << code;
    EXPECT_EQ(f32_to_f8<Format>(std::nextafter(middle, 0.0F)), code) << code;
    EXPECT_EQ(f32_to_f8<Format>(std::nextafter(middle, next)), code + 1) << code;
  }
}

TEST(Float8, EveryCodeIsItsValueAndEveryMiddleRoundsToEven) {
  expect_all_codes<E4M3>();
  expect_all_codes<E5M2>();
}

TEST(Float8, EndsOfTheFormats) {
  EXPECT_TRUE(std::isnan(f8_to_f32<E4M3>(0xff)));
  EXPECT_EQ(f8_to_f32<E5M2>(0xfc), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(f8_to_f32<E5M2>(0x7d)));
  EXPECT_EQ(f32_to_f8<E4M3>(std::numeric_limits<float>::max()), 0x7e);
  EXPECT_EQ(f32_to_f8<E5M2>(from_bits(1)), 0);
}

TEST(OddRounding, InexactResultsAreOdd) {
  // 1 + 2^-60 lies between 1 (even) and 1 + 2^-52 (odd); 1 - 2^-60 between 1 - 2^-53 (odd) and 1.
  EXPECT_EQ(add_to_odd(1.0, 0x1p-60), 1.0 + 0x1p-52);
  EXPECT_EQ(add_to_odd(1.0, -0x1p-60), 1.0 - 0x1p-53);
  EXPECT_EQ(add_to_odd(-1.0, -0x1p-60), -1.0 - 0x1p-52);
  EXPECT_EQ(add_to_odd(1.0, 2.0), 3.0);
  EXPECT_EQ(narrow_to_odd(1.0 + 0x1p-40), 1.0F + 0x1p-23F);
  EXPECT_EQ(narrow_to_odd(0x1p-200), from_bits(1));
  EXPECT_EQ(narrow_to_odd(-1e300), -std::numeric_limits<float>::max());
}

/// Many f16 products, which are exact in double: no neighbour is nearer.
TEST(HalfArithmetic, IsTheNearestValue) {
  for (const std::uint32_t partner :
       {0x0001U, 0x03ffU, 0x0400U, 0x3555U, 0x3c01U, 0x7bffU, 0xb801U}) {
    const auto b = static_cast<std::uint16_t>(partner);
    for (std::uint32_t a = 0; a < 0x7c00; a += 3) {
      const auto x = static_cast<std::uint16_t>(a);
      const double exact = static_cast<double>(f16_to_f32(x)) * static_cast<double>(f16_to_f32(b));
      const std::uint16_t got = half_multiply<Float16Format>(x, b);
      if ((got & 0x7fffU) >= 0x7bffU) continue;
      const auto value = [](std::uint32_t bits) {
        return std::fabs(static_cast<double>(f16_to_f32(static_cast<std::uint16_t>(bits))));
      };
      const std::uint32_t magnitude = got & 0x7fffU;
      const double error = std::fabs(value(magnitude) - std::fabs(exact));
      EXPECT_LE(error, std::fabs(value(magnitude + 1) - std::fabs(exact)));
      if (magnitude == 0) continue;
      EXPECT_LE(error, std::fabs(value(magnitude - 1) - std::fabs(exact)));
    }
  }
}

TEST(Directed, NarrowsTowardsTheSideAskedFor) {
  const double value = -(1.0 + 0x1p-30);
  EXPECT_EQ(narrow_directed(value, Direction::to_zero), -1.0F);
  EXPECT_EQ(narrow_directed(value, Direction::up), -1.0F);
  EXPECT_EQ(narrow_directed(value, Direction::down), -(1.0F + 0x1p-23F));
  EXPECT_EQ(to_bits(narrow_directed(-0x1p-200, Direction::to_zero)), 0x80000000U);
  EXPECT_EQ(narrow_directed(0.5, Direction::down), 0.5F);
}

double ulp(float value) {
  const float magnitude = std::fabs(value);
  return static_cast<double>(std::nextafter(magnitude, 2.0F * magnitude + 1.0F)) -
         static_cast<double>(magnitude);
}

TEST(Trigonometry, SineAndCosineAreWithinOneUlp) {
  double worst = 0.0;
  for (int i = -200000; i <= 200000; ++i) {
    const float x = static_cast<float>(i) * 0.00031415927F;
    const double wide = static_cast<double>(x);
    const float sine = sine_approx(x);
    const float cosine = cosine_approx(x);
    worst = std::fmax(worst, std::fabs(static_cast<double>(sine) - std::sin(wide)) / ulp(sine));
    worst = std::fmax(worst, std::fabs(static_cast<double>(cosine) - std::cos(wide)) / ulp(cosine));
  }
  EXPECT_LT(worst, 1.0);
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Trigonometry, LargeArgumentsStayInRange) {
  EXPECT_NEAR(static_cast<double>(sine_approx(1e9F)), std::sin(1e9), 1e-7);
  EXPECT_EQ(sine_approx(1e30F), 0.0F);
  EXPECT_EQ(cosine_approx(-1e30F), 1.0F);
}

TEST(Trigonometry, TanhIsWithinItsBound) {
  double worst = 0.0;
  for (int i = 1; i <= 200000; ++i) {
    const float x = static_cast<float>(i) * 0.0001F;
    const double want = std::tanh(static_cast<double>(x));
    worst = std::fmax(worst, std::fabs(static_cast<double>(tanh_approx(x)) - want) / want);
    EXPECT_EQ(tanh_approx(-x), -tanh_approx(x));
  }
  EXPECT_LT(worst, 0x1p-20);
}

}  // namespace
}  // namespace cpverify::numerics
