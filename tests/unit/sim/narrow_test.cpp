#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// The lower bytes; the upper ones come from the second source, 1.
U16s to_f8(const std::string& form, const std::vector<float>& values) {
  return first(run_lanes<std::uint16_t>(
                   "mov.b32 %f1, 0f3f800000; cvt.rn.satfinite" + form + ".f32 %out, %f1, %a0;",
                   bits_of(values)),
               values.size());
}

TEST(Narrow, E4m3RoundsToEvenAndSaturates) {
  // Code 0x38 is 1 (exponent field 7, the bias); 0x7e is 448; units below 2^-6 are 2^-9.
  // 1.0625 is half way between 1 and 1.125 (even: 1); 1.1875 between 1.125 and 1.25 (even: 1.25).
  EXPECT_EQ(to_f8(".e4m3x2", {1.0F, 448.0F, 464.0F, 1e9F, -kInfinity, kNan}),
            (U16s{0x3838, 0x387e, 0x387e, 0x387e, 0x38fe, 0x387f}));
  EXPECT_EQ(to_f8(".e4m3x2", {1.0625F, 1.1875F, 0x1p-9F, 0x1p-10F, 0x1.8p-9F, -0.0F}),
            (U16s{0x3838, 0x383a, 0x3801, 0x3800, 0x3802, 0x3880}));
  EXPECT_EQ(to_f8(".relu.e4m3x2", {-1.0F, 2.0F, kNan}), (U16s{0x3800, 0x3840, 0x387f}));
}

TEST(Narrow, E5m2RoundsToEvenAndSaturates) {
  // Code 0x3c is 1; 0x7b is 57344; the smallest subnormal is 2^-16.
  EXPECT_EQ(to_f8(".e5m2x2", {1.0F, 57344.0F, kInfinity, -1e9F, 0x1p-16F, 0x1p-17F, kNan}),
            (U16s{0x3c3c, 0x3c7b, 0x3c7b, 0x3cfb, 0x3c01, 0x3c00, 0x3c7f}));
}

TEST(Narrow, EightBitFormatsWidenToF16) {
  // e4m3: 0x7e is 448 = 0x5f00, 0x01 is 2^-9 = 0x1800; NaN. e5m2 is the upper byte of f16.
  const auto e4 = run_lanes<std::uint32_t>("cvt.rn.f16x2.e4m3x2 %out, %a0;", U16s{0x7e01, 0xff38});
  EXPECT_EQ(first(e4, 2), (U32s{0x5f001800, 0x7fff3c00}));
  const auto e5 =
      run_lanes<std::uint32_t>("cvt.rn.relu.f16x2.e5m2x2 %out, %a0;", U16s{0x7c01, 0xbc7b});
  EXPECT_EQ(first(e5, 2), (U32s{0x7c000100, 0x00007b00}));
  const auto back =
      run_lanes<std::uint16_t>("cvt.rn.satfinite.e4m3x2.f16x2 %out, %a0;", U32s{0x5f001800});
  EXPECT_EQ(back[0], 0x7e01);
}

TEST(Narrow, Tf32KeepsTenBitsOfTheMantissa) {
  // 1 + 2^-11 is half way between 1 and 1 + 2^-10 = 0x3f802000.
  const std::vector<float> values{std::bit_cast<float>(0x3f801000U), -kInfinity, kNan,
                                  std::numeric_limits<float>::max()};
  const auto run = [&](const std::string& form) {
    return first(run_lanes<std::uint32_t>("cvt." + form + ".tf32.f32 %out, %a0;", bits_of(values)),
                 values.size());
  };
  EXPECT_EQ(run("rna"), (U32s{0x3f802000, 0xff800000, 0x7fffffff, 0x7f800000}));
  EXPECT_EQ(run("rn"), (U32s{0x3f800000, 0xff800000, 0x7fffffff, 0x7f800000}));
  EXPECT_EQ(run("rz"), (U32s{0x3f800000, 0xff800000, 0x7fffffff, 0x7f7fe000}));
  EXPECT_EQ(run("rna.satfinite"), (U32s{0x3f802000, 0xff7fe000, 0x7fffffff, 0x7f7fe000}));
}

TEST(Narrow, HalvesRoundToZeroAndRectify) {
  const auto run = [](const std::string& form, const std::vector<float>& values) {
    return first(run_lanes<std::uint16_t>("cvt." + form + ".f32 %out, %a0;", bits_of(values)),
                 values.size());
  };
  EXPECT_EQ(run("rz.f16", {65519.0F, 1e6F, kInfinity, -1.0004F, kNan}),
            (U16s{0x7bff, 0x7bff, 0x7c00, 0xbc00, 0x7fff}));
  EXPECT_EQ(run("rn.relu.f16", {-1.0F, 1.0F, kNan, -0.0F}), (U16s{0, 0x3c00, 0x7fff, 0}));
  EXPECT_EQ(run("rn.satfinite.f16", {kInfinity, -1e6F}), (U16s{0x7bff, 0xfbff}));
  // 1.999 in bf16: 1.9921875 = 0x3fff below, 2 above.
  EXPECT_EQ(run("rz.bf16", {1.999F}), (U16s{0x3fff}));
  const auto pair = run_lanes<std::uint32_t>(
      "mov.b32 %f1, 0fbf800000; cvt.rn.relu.bf16x2.f32 %out, %a0, %f1;", bits_of({2.0F}));
  EXPECT_EQ(pair[0], 0x40000000U);
}

TEST(Narrow, F16AndIntegers) {
  // 65519 rounds to 65504, 65520 is half way to 2^16; 2049 is half way, even is 2048 = 0x6800.
  EXPECT_EQ(first(run_lanes<std::uint16_t>("cvt.rn.f16.s32 %out, %a0;",
                                           U32s{65519, 65520, 2049, 0xffffffff, 0x80000000}),
                  5),
            (U16s{0x7bff, 0x7c00, 0x6800, 0xbc00, 0xfc00}));
  EXPECT_EQ(run_lanes<std::uint16_t>("cvt.rn.f16.u64 %out, %a0;", U64s{~0ULL})[0], 0x7c00);
  // -1.5, 2.5, infinity, NaN.
  EXPECT_EQ(first(run_lanes<std::uint32_t>("cvt.rzi.s32.f16 %out, %a0;",
                                           U16s{0xbe00, 0x4100, 0x7c00, 0x7e00}),
                  4),
            (U32s{0xffffffff, 2, 0x7fffffff, 0}));
}

}  // namespace
}  // namespace cpverify::sim
