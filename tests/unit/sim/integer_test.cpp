#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

/// `op` on two 32-bit inputs.
U32s binary32(const std::string& op, const U32s& a, const U32s& b) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0, %a1;", a, b), a.size());
}
U64s binary64(const std::string& op, const U64s& a, const U64s& b) {
  return first(run_lanes<std::uint64_t>(op + " %out, %a0, %a1;", a, b), a.size());
}
U16s binary16(const std::string& op, const U16s& a, const U16s& b) {
  return first(run_lanes<std::uint16_t>(op + " %out, %a0, %a1;", a, b), a.size());
}

TEST(Integer, AddAndSubtractWrap) {
  // 2^32-1 + 1 = 0; 2^31-1 + 1 = 2^31; 0 - 1 = 2^32-1.
  EXPECT_EQ(binary32("add.s32", {0xffffffff, 0x7fffffff}, {1, 1}), (U32s{0, 0x80000000}));
  EXPECT_EQ(binary32("sub.u32", {0, 5}, {1, 7}), (U32s{0xffffffff, 0xfffffffe}));
  EXPECT_EQ(binary64("add.s64", {~0ULL, 1}, {2, 2}), (U64s{1, 3}));
  EXPECT_EQ(binary16("add.u16", {0xffff, 10}, {1, 20}), (U16s{0, 30}));
}

TEST(Integer, SaturatedAddStopsAtTheLimits) {
  EXPECT_EQ(binary32("add.sat.s32", {0x7fffffff, 0x80000000, 5}, {1, 0xffffffff, 6}),
            (U32s{0x7fffffff, 0x80000000, 11}));
  EXPECT_EQ(binary32("sub.sat.s32", {0x80000000, 0x7fffffff}, {1, 0xffffffff}),
            (U32s{0x80000000, 0x7fffffff}));
}

TEST(Integer, MultiplyGivesLowHighOrWholeProduct) {
  // 0x10001 * 0x10001 = 0x1_0002_0001.
  EXPECT_EQ(binary32("mul.lo.s32", {0x10001, 0xffffffff}, {0x10001, 3}),
            (U32s{0x00020001, 0xfffffffd}));
  EXPECT_EQ(binary32("mul.hi.u32", {0x10001, 0xffffffff}, {0x10001, 0xffffffff}),
            (U32s{1, 0xfffffffe}));
  // (-1) * 3 = -3: the high half is all ones. (-2^31) * (-2^31) = 2^62.
  EXPECT_EQ(binary32("mul.hi.s32", {0xffffffff, 0x80000000}, {3, 0x80000000}),
            (U32s{0xffffffff, 0x40000000}));
  // (2^64-1)^2 = 2^128 - 2^65 + 1: high half 2^64 - 2.
  EXPECT_EQ(binary64("mul.hi.u64", {~0ULL, 1ULL << 32}, {~0ULL, 1ULL << 33}), (U64s{~1ULL, 2}));
  // As signed numbers: (-1) * (-1) = 1, high half 0; (-1) * 5 = -5, high half -1.
  EXPECT_EQ(binary64("mul.hi.s64", {~0ULL, ~0ULL}, {~0ULL, 5}), (U64s{0, ~0ULL}));
  EXPECT_EQ(binary64("mul.lo.s64", {1ULL << 63, 7}, {2, 6}), (U64s{0, 42}));
}

TEST(Integer, WideMultiplyExtendsBySign) {
  const auto wide_signed =
      run_lanes<std::uint64_t>("mul.wide.s32 %out, %a0, %a1;", U32s{0xffffffff}, U32s{4});
  EXPECT_EQ(wide_signed[0], static_cast<std::uint64_t>(-4));
  const auto wide_unsigned =
      run_lanes<std::uint64_t>("mul.wide.u32 %out, %a0, %a1;", U32s{0xffffffff}, U32s{4});
  EXPECT_EQ(wide_unsigned[0], 0x3fffffffcULL);
  const auto mad = run_lanes<std::uint64_t>("mad.wide.s32 %out, %a0, %a1, %a2;", U32s{0xfffffffe},
                                            U32s{3}, U64s{10});
  EXPECT_EQ(mad[0], 4U);
  const auto half =
      run_lanes<std::uint32_t>("mul.wide.u16 %out, %a0, %a1;", U16s{0xffff}, U16s{0xffff});
  EXPECT_EQ(half[0], 0xfffe0001U);
}

TEST(Integer, MultiplyAddKeepsTheLowHalf) {
  EXPECT_EQ(run_lanes<std::uint32_t>("mad.lo.s32 %out, %a0, %a1, %a2;", U32s{0x10000},
                                     U32s{0x10000}, U32s{7})[0],
            7U);
}

TEST(Integer, DivisionTruncatesTowardsZero) {
  EXPECT_EQ(binary32("div.s32", {0xfffffff9, 7, 7}, {2, 0xfffffffe, 2}),  // -7/2, 7/-2, 7/2
            (U32s{0xfffffffd, 0xfffffffd, 3}));
  EXPECT_EQ(binary32("rem.s32", {0xfffffff9, 7, 7}, {2, 0xfffffffe, 2}), (U32s{0xffffffff, 1, 1}));
  EXPECT_EQ(binary32("div.u32", {0xfffffff9}, {2}), (U32s{0x7ffffffc}));
  EXPECT_EQ(binary64("div.s64", {static_cast<std::uint64_t>(-9)}, {2}),
            (U64s{static_cast<std::uint64_t>(-4)}));
}

TEST(Integer, DivisionWithoutAnAnswerDoesNotTrap) {
  // By zero: unspecified, all ones here. Most negative by -1: wraps.
  EXPECT_EQ(binary32("div.s32", {5, 0x80000000}, {0, 0xffffffff}), (U32s{0xffffffff, 0x80000000}));
  EXPECT_EQ(binary32("rem.s32", {5, 0x80000000}, {0, 0xffffffff}), (U32s{5, 0}));
  EXPECT_EQ(binary64("rem.u64", {5}, {0}), (U64s{5}));
}

TEST(Integer, MinimumAndMaximumFollowTheSign) {
  EXPECT_EQ(binary32("min.s32", {0xffffffff}, {1}), (U32s{0xffffffff}));
  EXPECT_EQ(binary32("min.u32", {0xffffffff}, {1}), (U32s{1}));
  EXPECT_EQ(binary32("max.s32", {0x80000000}, {0}), (U32s{0}));
  EXPECT_EQ(binary64("max.u64", {1ULL << 63}, {0}), (U64s{1ULL << 63}));
}

TEST(Integer, AbsoluteAndNegateWrapAtTheMostNegative) {
  EXPECT_EQ(first(run_lanes<std::uint32_t>("abs.s32 %out, %a0;", U32s{0xffffffff, 0x80000000}), 2),
            (U32s{1, 0x80000000}));
  EXPECT_EQ(first(run_lanes<std::uint32_t>("neg.s32 %out, %a0;", U32s{1, 0x80000000}), 2),
            (U32s{0xffffffff, 0x80000000}));
}

TEST(Integer, CountsBits) {
  EXPECT_EQ(first(run_lanes<std::uint32_t>("popc.b32 %out, %a0;", U32s{0, 0xf0f0f0f0, ~0U}), 3),
            (U32s{0, 16, 32}));
  EXPECT_EQ(run_lanes<std::uint32_t>("popc.b64 %out, %a0;", U64s{~0ULL})[0], 64U);
  EXPECT_EQ(first(run_lanes<std::uint32_t>("clz.b32 %out, %a0;", U32s{0, 1, 0x80000000}), 3),
            (U32s{32, 31, 0}));
  EXPECT_EQ(run_lanes<std::uint32_t>("clz.b64 %out, %a0;", U64s{1})[0], 63U);
  EXPECT_EQ(run_lanes<std::uint32_t>("brev.b32 %out, %a0;", U32s{0x00000003})[0], 0xc0000000U);
  EXPECT_EQ(run_lanes<std::uint64_t>("brev.b64 %out, %a0;", U64s{1})[0], 1ULL << 63);
}

/// Position in %a1, length in %a2.
U32s extract(const std::string& type, const U32s& a, const U32s& position, const U32s& length) {
  return first(
      run_lanes<std::uint32_t>("bfe." + type + " %out, %a0, %a1, %a2;", a, position, length),
      a.size());
}

TEST(Integer, ExtractsBitFields) {
  EXPECT_EQ(extract("u32", {0x12345678}, {8}, {8}), (U32s{0x56}));
  // Length 0 gives 0; beyond bit 31 come zeros; position 32 and above gives 0.
  EXPECT_EQ(extract("u32", {0xffffffff, 0xff000000, 0xffffffff}, {3, 24, 32}, {0, 16, 4}),
            (U32s{0, 0xff, 0}));
  EXPECT_EQ(extract("u32", {0x12345678}, {0}, {32}), (U32s{0x12345678}));
}

TEST(Integer, SignedExtractCopiesTheTopmostBitThatExists) {
  // Bits 4-7 of 0x80 are 8 = 1000b: negative. Beyond the word, bit 31 is the sign.
  EXPECT_EQ(
      extract("s32", {0x80, 0x80000000, 0x40000000, 0x80000000}, {4, 24, 24, 40}, {4, 16, 16, 8}),
      (U32s{0xfffffff8, 0xffffff80, 0x40, 0xffffffff}));
  EXPECT_EQ(extract("s32", {0xffffffff}, {5}, {0}), (U32s{0}));
}

TEST(Integer, InsertsBitFields) {
  const auto insert = [](std::uint32_t a, std::uint32_t b, std::uint32_t pos, std::uint32_t len) {
    return run_lanes<std::uint32_t>("bfi.b32 %out, %a0, %a1, %a2, %a3;", U32s{a}, U32s{b},
                                    U32s{pos}, U32s{len})[0];
  };
  EXPECT_EQ(insert(0xab, 0x11111111, 8, 8), 0x1111ab11U);
  EXPECT_EQ(insert(0xab, 0x11111111, 8, 0), 0x11111111U);
  EXPECT_EQ(insert(0xab, 0x11111111, 32, 8), 0x11111111U);
  EXPECT_EQ(insert(0xab, 0x11111111, 28, 8), 0xb1111111U);
  EXPECT_EQ(insert(0xab, 0x11111111, 0, 64), 0xabU);
}

TEST(Integer, InactiveLanesKeepTheirValues) {
  const auto got = run_lanes<std::uint32_t>(
      "mov.u32 %out, 7; setp.lt.u32 %p1, %r31, 5; @%p1 add.u32 %out, %a0, 1; "
      "setp.lt.u32 %p2, %r31, 31; @!%p2 mul.lo.u32 %out, %a0, %a0;",
      U32s{10});
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane < 5 ? 11U : lane == 31 ? 100U : 7U) << lane;
  }
}

}  // namespace
}  // namespace cpverify::sim
