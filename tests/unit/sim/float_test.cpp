#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kNan = 0x7fffffff;  // The canonical NaN.
constexpr std::uint32_t kOtherNan = 0xffc12345;
constexpr std::uint32_t kInf = 0x7f800000;
constexpr std::uint32_t kMinusInf = 0xff800000;
constexpr std::uint32_t kMinusZero = 0x80000000;
constexpr std::uint32_t kOne = 0x3f800000;
constexpr std::uint32_t kSmallest = 1;            // 2^-149
constexpr std::uint32_t kMinNormal = 0x00800000;  // 2^-126

U32s unary(const std::string& op, const U32s& a) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0;", a), a.size());
}
U32s binary(const std::string& op, const U32s& a, const U32s& b) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0, %a1;", a, b), a.size());
}
U32s ternary(const std::string& op, const U32s& a, const U32s& b, const U32s& c) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0, %a1, %a2;", a, b, c), a.size());
}

TEST(Float, NanResultsAreCanonical) {
  EXPECT_EQ(binary("add.f32", {kOtherNan, kInf}, {kOne, kMinusInf}), (U32s{kNan, kNan}));
  EXPECT_EQ(binary("sub.rn.f32", {kInf, kOtherNan}, {kInf, kOtherNan}), (U32s{kNan, kNan}));
  EXPECT_EQ(binary("mul.f32", {0, kInf}, {kInf, kOtherNan}), (U32s{kNan, kNan}));
  EXPECT_EQ(ternary("fma.rn.f32", {kInf, kOne}, {0, kOtherNan}, {kOne, kOne}), (U32s{kNan, kNan}));
  EXPECT_EQ(binary("div.rn.f32", {0, kInf}, {0, kInf}), (U32s{kNan, kNan}));
}

TEST(Float, SignedZerosFollowIeee) {
  // -0 + -0 = -0; 1 - 1 = +0; -0 * 1 = -0.
  EXPECT_EQ(binary("add.f32", {kMinusZero, kOne}, {kMinusZero, 0xbf800000}), (U32s{kMinusZero, 0}));
  EXPECT_EQ(binary("mul.f32", {kMinusZero}, {kOne}), (U32s{kMinusZero}));
  EXPECT_EQ(binary("div.rn.f32", {kOne, kOne}, {kMinusZero, kInf}), (U32s{kMinusInf, 0}));
}

TEST(Float, SubnormalsAreKeptWithoutFtzAndFlushedWithIt) {
  // 2^-149 + 2^-149 = 2^-148; flushed, 0 + 0.
  EXPECT_EQ(binary("add.f32", {kSmallest}, {kSmallest}), (U32s{2}));
  EXPECT_EQ(binary("add.ftz.f32", {kSmallest, 0x80000001}, {kSmallest, 0x80000001}),
            (U32s{0, kMinusZero}));
  // 2^-126 * 0.5 = 2^-127, subnormal: flushed on the way out, with its sign.
  EXPECT_EQ(binary("mul.f32", {kMinNormal}, {0x3f000000}), (U32s{0x00400000}));
  EXPECT_EQ(binary("mul.ftz.f32", {kMinNormal, 0x80800000}, {0x3f000000, 0x3f000000}),
            (U32s{0, kMinusZero}));
  EXPECT_EQ(unary("neg.ftz.f32", {kSmallest, kOne}), (U32s{kMinusZero, 0xbf800000}));
}

TEST(Float, SaturationClampsToTheUnitInterval) {
  EXPECT_EQ(
      binary("add.sat.f32", {kOne, 0xbf800000, kOtherNan, kMinusZero}, {kOne, 0, kOne, kMinusZero}),
      (U32s{kOne, 0, 0, 0}));
}

TEST(Float, FmaRoundsOnce) {
  // (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24. Rounded product: 1 + 2^-11 (tie to even); minus itself: 0.
  // Fused: 2^-24 remains.
  const std::uint32_t a = 0x3f800800;
  const std::uint32_t minus = 0xbf801000;  // -(1 + 2^-11)
  EXPECT_EQ(ternary("fma.rn.f32", {a}, {a}, {minus}), (U32s{0x33800000}));
  EXPECT_EQ(run_lanes<std::uint32_t>("mul.rn.f32 %r1, %a0, %a0; add.rn.f32 %out, %r1, %a1;",
                                     U32s{a}, U32s{minus})[0],
            0U);
}

// 1 + 2^-149 lies between 1 and 1 + 2^-23 = 0x3f800001; 1 - 1 is -0 only when rounded down.
TEST(Float, RoundsTowardsZeroAndTheInfinities) {
  EXPECT_EQ(binary("add.rz.f32", {kOne, kOne}, {kSmallest, 0xbf800000}), (U32s{kOne, 0}));
  EXPECT_EQ(binary("add.rm.f32", {kOne, kOne}, {kSmallest, 0xbf800000}), (U32s{kOne, kMinusZero}));
  EXPECT_EQ(binary("add.rp.f32", {kOne, kOne}, {kSmallest, 0xbf800000}), (U32s{0x3f800001, 0}));
  // 1 - 2^-149 is below 1; its neighbour below is 0x3f7fffff.
  EXPECT_EQ(binary("sub.rz.f32", {kOne}, {kSmallest}), (U32s{0x3f7fffff}));
  EXPECT_EQ(binary("sub.rp.f32", {kOne}, {kSmallest}), (U32s{kOne}));
  // (1 + 2^-23)^2 = 1 + 2^-22 + 2^-46.
  EXPECT_EQ(binary("mul.rz.f32", {0x3f800001}, {0x3f800001}), (U32s{0x3f800002}));
  EXPECT_EQ(binary("mul.rp.f32", {0x3f800001}, {0x3f800001}), (U32s{0x3f800003}));
  EXPECT_EQ(binary("mul.rz.f32", {0x7f7fffff}, {0x7f7fffff}), (U32s{0x7f7fffff}));
  // (1 + 2^-23)^2 - (1 + 2^-22) = 2^-46 exactly, and 2^-149 more is above it: 2^-46 = 0x28800000.
  EXPECT_EQ(ternary("fma.rm.f32", {0x3f800001}, {0x3f800001}, {0xbf800002}), (U32s{0x28800000}));
  EXPECT_EQ(ternary("mad.rp.f32", {kOne}, {kSmallest}, {kOne}), (U32s{0x3f800001}));
}

// 2^-149 counts as 0 with .ftz; 1 + 1 = 2 is clamped to 1; NaN becomes +0.
TEST(Float, DirectedRoundingsFlushAndSaturate) {
  EXPECT_EQ(binary("add.rp.ftz.f32", {kOne}, {kSmallest}), (U32s{kOne}));
  EXPECT_EQ(binary("mul.rp.ftz.f32", {kMinNormal}, {0x3f000000}), (U32s{0}));
  EXPECT_EQ(binary("mul.rp.f32", {kMinNormal}, {0x3f000000}), (U32s{0x00400000}));
  EXPECT_EQ(binary("add.rz.sat.f32", {kOne, kOtherNan}, {kOne, kOne}), (U32s{kOne, 0}));
}

TEST(Float, AddAndMultiplyWithoutRoundingSuffixAreNotContracted) {
  EXPECT_EQ(run_lanes<std::uint32_t>("mul.f32 %r1, %a0, %a0; add.f32 %out, %r1, %a1;",
                                     U32s{0x3f800800}, U32s{0xbf801000})[0],
            0U);
}

TEST(Float, MinimumAndMaximumIgnoreNan) {
  EXPECT_EQ(binary("max.f32", {kOtherNan, kOne, kOtherNan, kMinusZero, 0},
                   {kOne, kOtherNan, kOtherNan, 0, kMinusZero}),
            (U32s{kOne, kOne, kNan, 0, 0}));
  EXPECT_EQ(binary("min.f32", {kOtherNan, kMinusZero, 0, kInf}, {kOne, 0, kMinusZero, kOne}),
            (U32s{kOne, kMinusZero, kMinusZero, kOne}));
  EXPECT_EQ(binary("max.NaN.f32", {kOtherNan, kOne}, {kOne, 0}), (U32s{kNan, kOne}));
  EXPECT_EQ(binary("min.NaN.f32", {kOne}, {kOtherNan}), (U32s{kNan}));
}

TEST(Float, SignOperationsTouchTheSignOnly) {
  EXPECT_EQ(unary("neg.f32", {0, kInf, kSmallest}), (U32s{kMinusZero, kMinusInf, 0x80000001}));
  EXPECT_EQ(unary("abs.f32", {kMinusZero, kMinusInf}), (U32s{0, kInf}));
}

TEST(Float, ReciprocalAndRoots) {
  EXPECT_EQ(unary("rcp.rn.f32", {0x40000000, 0, kMinusInf}), (U32s{0x3f000000, kInf, kMinusZero}));
  EXPECT_EQ(unary("rcp.approx.ftz.f32", {kSmallest}), (U32s{kInf}));
  EXPECT_EQ(unary("sqrt.rn.f32", {0x40800000, 0xbf800000, kMinusZero}),
            (U32s{0x40000000, kNan, kMinusZero}));
  EXPECT_EQ(unary("rsqrt.approx.f32", {0x40800000, 0}), (U32s{0x3f000000, kInf}));
}

TEST(Float, PowersOfTwoAreExact) {
  // 2^3 = 8; 2^-149 = 1; 2^-150 = 0; 2^128 = inf; ftz makes 2^-127 zero.
  EXPECT_EQ(unary("ex2.approx.f32", bits_of({3.0F, -149.0F, -160.0F, 128.0F, -INFINITY})),
            (U32s{0x41000000, 1, 0, kInf, 0}));
  EXPECT_EQ(unary("ex2.approx.ftz.f32", bits_of({-127.0F, -126.0F})), (U32s{0, kMinNormal}));
  EXPECT_EQ(unary("lg2.approx.f32", {0x41000000, 0, 0xbf800000, kInf, kSmallest}),
            (U32s{0x40400000, kMinusInf, kNan, kInf, bits_of({-149.0F})[0]}));
  EXPECT_EQ(unary("lg2.approx.ftz.f32", {kSmallest}), (U32s{kMinusInf}));
}

TEST(Float, DivisionIsCorrectlyRounded) {
  for (const std::string form : {"div.rn.f32", "div.full.f32", "div.approx.f32"}) {
    EXPECT_EQ(binary(form, bits_of({1.0F, 10.0F}), bits_of({3.0F, -4.0F})),
              bits_of({1.0F / 3.0F, -2.5F}));
  }
}

TEST(Float, InactiveLanesKeepTheirValues) {
  const auto got = run_lanes<std::uint32_t>(
      "mov.b32 %out, 0f40000000; setp.eq.u32 %p1, %r31, 3; @%p1 ex2.approx.ftz.f32 %out, %a0;",
      bits_of({5.0F}));
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane == 3 ? 0x42000000U : 0x40000000U) << lane;
  }
}

}  // namespace
}  // namespace cpverify::sim
