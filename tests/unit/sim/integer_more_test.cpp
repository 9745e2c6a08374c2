#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

U32s unary(const std::string& op, const U32s& a) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0;", a), a.size());
}
U32s binary(const std::string& op, const U32s& a, const U32s& b) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0, %a1;", a, b), a.size());
}
U32s ternary(const std::string& op, const U32s& a, const U32s& b, const U32s& c) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0, %a1, %a2;", a, b, c), a.size());
}

TEST(IntegerMore, Products24UseTheLow24Bits) {
  // 0x800000 is -2^23 as a signed 24-bit number. The upper byte of 0x01000003 does not count.
  EXPECT_EQ(binary("mul24.lo.s32", {0x00800000}, {1}), (U32s{0xff800000}));
  EXPECT_EQ(binary("mul24.lo.u32", {0x01000003}, {2}), (U32s{6}));
  // (2^24 - 1)^2 = 0xfffffe000001; its bits 16 to 47. As signed numbers -1 * -1 = 1: 0.
  EXPECT_EQ(binary("mul24.hi.u32", {0xffffff}, {0xffffff}), (U32s{0xfffffe00}));
  EXPECT_EQ(binary("mul24.hi.s32", {0xffffff}, {0xffffff}), (U32s{0}));
  EXPECT_EQ(ternary("mad24.lo.u32", {3}, {5}, {0xffffffff}), (U32s{14}));
  // (2^23 - 1)^2 >> 16 = 2^30 - 256: with 2^31 - 1 more it clamps.
  EXPECT_EQ(ternary("mad24.hi.sat.s32", {0x7fffff}, {0x7fffff}, {0x7fffffff}), (U32s{0x7fffffff}));
}

TEST(IntegerMore, MadHighAddsToTheUpperHalf) {
  // 2^31 * 2 = 2^32; -2^31 * 2 = -2^32; upper halves 1 and -1.
  EXPECT_EQ(ternary("mad.hi.u32", {0x80000000}, {2}, {10}), (U32s{11}));
  EXPECT_EQ(ternary("mad.hi.s32", {0x80000000}, {2}, {10}), (U32s{9}));
  // (-2^31)^2 >> 32 = 2^30; plus 2^31 - 1 clamps.
  EXPECT_EQ(ternary("mad.hi.sat.s32", {0x80000000}, {0x80000000}, {0x7fffffff}),
            (U32s{0x7fffffff}));
  const auto wide =
      run_lanes<std::uint64_t>("mad.hi.s64 %out, %a0, %a1, 5;", U64s{1ULL << 63}, U64s{2});
  EXPECT_EQ(wide[0], 4U);  // -2^64 >> 64 = -1, plus 5.
}

TEST(IntegerMore, SumsOfDifferencesWrap) {
  EXPECT_EQ(ternary("sad.s32", {0xfffffffb}, {3}, {1}), (U32s{9}));  // |-5 - 3| + 1
  EXPECT_EQ(ternary("sad.u32", {3}, {5}, {0xffffffff}), (U32s{1}));
  EXPECT_EQ(ternary("sad.s32", {0x80000000}, {0x7fffffff}, {1}), (U32s{0}));  // 2^32 - 1 + 1
}

TEST(IntegerMore, DotProductsTakeEachByteWithItsSign) {
  // Bytes 1, 2, 3, -1 times 1, 1, 1, 255, plus 10: -239 = 0xffffff11; times 1, 1, 1, -1: 17.
  EXPECT_EQ(ternary("dp4a.s32.u32", {0xff030201}, {0xff010101}, {10}), (U32s{0xffffff11}));
  EXPECT_EQ(ternary("dp4a.s32.s32", {0xff030201}, {0xff010101}, {10}), (U32s{17}));
  EXPECT_EQ(ternary("dp4a.u32.u32", {0xffffffff}, {0xffffffff}, {0}), (U32s{4 * 255 * 255}));
}

TEST(IntegerMore, BfindLooksForTheSignificantBit) {
  constexpr std::uint32_t kNone = 0xffffffff;
  EXPECT_EQ(unary("bfind.u32", {0, 1, 0x80000000}), (U32s{kNone, 0, 31}));
  // For -1 there is no zero to find, for -2^31 it is bit 30.
  EXPECT_EQ(unary("bfind.s32", {0xffffffff, 0x80000000, 4}), (U32s{kNone, 30, 2}));
  EXPECT_EQ(unary("bfind.shiftamt.u32", {1, 0x80000000, 0}), (U32s{31, 0, kNone}));
  EXPECT_EQ(run_lanes<std::uint32_t>("bfind.s64 %out, %a0;", U64s{1ULL << 40})[0], 40U);
}

TEST(IntegerMore, FnsCountsFromTheBase) {
  constexpr std::uint32_t kNone = 0xffffffff;
  // 0b10110: from bit 1 upwards the second is 2; from 3 downwards the first is 2.
  EXPECT_EQ(ternary("fns.b32", {0x16, 0x16, 0x16, 0x16, 0x16, 0x80000000}, {1, 3, 1, 0, 0, 31},
                    {2, 0xffffffff, 0, 0, 4, 1}),
            (U32s{2, 2, 1, kNone, kNone, 31}));
}

TEST(IntegerMore, MasksAndExtensionsClampOrWrap) {
  EXPECT_EQ(binary("bmsk.clamp.b32", {4, 32, 0, 31}, {8, 1, 40, 2}),
            (U32s{0xff0, 0, 0xffffffff, 0x80000000}));
  EXPECT_EQ(binary("bmsk.wrap.b32", {33, 0}, {1, 32}), (U32s{2, 0}));
  EXPECT_EQ(binary("szext.clamp.s32", {0x80, 0x180, 5, 0x80000000}, {8, 8, 0, 99}),
            (U32s{0xffffff80, 0xffffff80, 0, 0x80000000}));
  EXPECT_EQ(binary("szext.wrap.u32", {0x1ff}, {40}), (U32s{0xff}));
}

TEST(FloatBits, TestpSortsValuesIntoKinds) {
  // 1, -0, the smallest subnormal, infinity, NaN.
  const U32s values{0x3f800000, 0x80000000, 1, 0xff800000, 0x7fc00000};
  const auto run = [&](const std::string& kind) {
    return first(run_lanes<std::uint32_t>(
                     "testp." + kind + ".f32 %p1, %a0; selp.u32 %out, 1, 0, %p1;", values),
                 values.size());
  };
  EXPECT_EQ(run("finite"), (U32s{1, 1, 1, 0, 0}));
  EXPECT_EQ(run("infinite"), (U32s{0, 0, 0, 1, 0}));
  EXPECT_EQ(run("number"), (U32s{1, 1, 1, 1, 0}));
  EXPECT_EQ(run("notanumber"), (U32s{0, 0, 0, 0, 1}));
  EXPECT_EQ(run("normal"), (U32s{1, 1, 0, 0, 0}));
  EXPECT_EQ(run("subnormal"), (U32s{0, 0, 1, 0, 0}));
}

TEST(FloatBits, CopysignTakesTheSignOfTheFirst) {
  EXPECT_EQ(binary("copysign.f32", {0xc0000000, 0x00000000}, {0x40400000, 0xffc00001}),
            (U32s{0xc0400000, 0x7fc00001}));
}

TEST(FloatBits, TrigonometryKeepsItsEdges) {
  // sin(-0) = -0, sin(inf) = NaN; cos(0) = 1. tanh(inf) = 1; tanh of a subnormal is itself.
  EXPECT_EQ(unary("sin.approx.f32", {0x80000000, 0x7f800000}), (U32s{0x80000000, 0x7fffffff}));
  EXPECT_EQ(unary("sin.approx.ftz.f32", {0x80000001}), (U32s{0x80000000}));
  EXPECT_EQ(unary("cos.approx.f32", {0, 0xffc00000}), (U32s{0x3f800000, 0x7fffffff}));
  EXPECT_EQ(unary("tanh.approx.f32", {0xff800000, 3, 0x7fc00000}),
            (U32s{0xbf800000, 3, 0x7fffffff}));
}

}  // namespace
}  // namespace cpverify::sim
