#include "numerics/float16.hpp"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>
#include <immintrin.h>

#include "numerics/float32.hpp"

namespace cpverify::numerics {
namespace {

/// The value of a finite 16-bit pattern from the definition of the format:
/// (-1)^s * 2^(max(e, 1) - bias) * (has_hidden_bit + m / 2^mantissa_bits).
double value_by_definition(std::uint32_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>((bits & 0x7fffU) >> mantissa_bits);
  const int mantissa = static_cast<int>(bits & ((1U << mantissa_bits) - 1));
  const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
  const double magnitude =
      std::ldexp(hidden + mantissa, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
  return (bits & 0x8000U) != 0 ? -magnitude : magnitude;
}

struct Format {
  int mantissa_bits;
  std::uint32_t infinity_bits;
  std::uint16_t (*narrow)(float);
  float (*widen)(std::uint16_t);
};

class HalfFormat : public testing::TestWithParam<Format> {};

TEST_P(HalfFormat, WideningIsTheValueOfTheDefinition) {
  const Format& format = GetParam();
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    if ((bits & 0x7fffU) >= format.infinity_bits) continue;
    const float widened = format.widen(static_cast<std::uint16_t>(bits));
    ASSERT_EQ(static_cast<double>(widened), value_by_definition(bits, format.mantissa_bits))
        << bits;
    ASSERT_EQ(std::signbit(widened), (bits & 0x8000U) != 0) << bits;
  }
}

TEST_P(HalfFormat, RoundTripKeepsAllBitsExceptOfNan) {
  const Format& format = GetParam();
  int nans = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const bool is_nan = (bits & 0x7fffU) > format.infinity_bits;
    nans += is_nan ? 1 : 0;
    ASSERT_EQ(std::isnan(format.widen(half)), is_nan) << bits;
    ASSERT_EQ(format.narrow(format.widen(half)), is_nan ? kCanonicalNan16 : half) << bits;
  }
  // Two signs times every non-zero mantissa.
  EXPECT_EQ(nans, 2 * ((1 << format.mantissa_bits) - 1));
}

TEST_P(HalfFormat, RoundsToNearestAndTiesToEvenBetweenAllNeighbours) {
  const Format& format = GetParam();
  const float infinity = std::numeric_limits<float>::infinity();
  for (std::uint32_t low = 0; low < format.infinity_bits; ++low) {
    const double next = low + 1 < format.infinity_bits
                            ? value_by_definition(low + 1, format.mantissa_bits)
                            // The last interval ends where the next binade would begin.
                            : 2 * value_by_definition(low & ~((1U << format.mantissa_bits) - 1),
                                                      format.mantissa_bits);
    // Exact in double and in f32: it has one mantissa bit more than the 16-bit format.
    const double middle = (value_by_definition(low, format.mantissa_bits) + next) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);
    const std::uint32_t even = (low & 1U) == 0 ? low : low + 1;
    ASSERT_EQ(format.narrow(tie), even) << low;
    ASSERT_EQ(format.narrow(std::nextafter(tie, 0.0F)), low) << low;
    ASSERT_EQ(format.narrow(std::nextafter(tie, infinity)), low + 1) << low;
    ASSERT_EQ(format.narrow(-tie), even | 0x8000U) << low;
  }
}

TEST_P(HalfFormat, InfinitiesAndOverflowBecomeInfinities) {
  const Format& format = GetParam();
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(format.narrow(infinity), format.infinity_bits);
  EXPECT_EQ(format.narrow(-infinity), format.infinity_bits | 0x8000U);
  EXPECT_EQ(format.narrow(std::numeric_limits<float>::max()), format.infinity_bits);
  EXPECT_EQ(format.widen(static_cast<std::uint16_t>(format.infinity_bits)), infinity);
}

TEST_P(HalfFormat, EveryNanBecomesTheCanonicalOne) {
  for (const std::uint32_t bits : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffc00000U}) {
    EXPECT_EQ(GetParam().narrow(from_bits(bits)), 0x7fff);
  }
}

INSTANTIATE_TEST_SUITE_P(F16, HalfFormat,
                         testing::Values(Format{10, 0x7c00, f32_to_f16, f16_to_f32}));
INSTANTIATE_TEST_SUITE_P(Bf16, HalfFormat,
                         testing::Values(Format{7, 0x7f80, f32_to_bf16, bf16_to_f32}));

TEST(F16, AgreesWithTheProcessorsOwnConversion) {
  // 7919 is prime, so the low bits of the samples take all values: about 542,000 patterns.
  for (std::uint64_t bits = 0; bits < (1ULL << 32); bits += 7919) {
    const float value = from_bits(static_cast<std::uint32_t>(bits));
    if (std::isnan(value)) continue;
    const auto expected = static_cast<std::uint16_t>(
        _mm_extract_epi16(_mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT), 0));
    ASSERT_EQ(f32_to_f16(value), expected) << bits;
  }
}

TEST(F16, NanWidensToTheCanonicalNan) {
  EXPECT_EQ(to_bits(f16_to_f32(0x7c01)), 0x7fffffffU);
  EXPECT_EQ(to_bits(f16_to_f32(0xfe00)), 0x7fffffffU);
}

TEST(PackHalves, PutsTheFirstIntoTheUpperHalf) {
  EXPECT_EQ(pack_halves(0x1234, 0xabcd), 0x1234abcdU);
}

}  // namespace
}  // namespace cpverify::numerics
