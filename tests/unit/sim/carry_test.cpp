#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kMax = 0xffffffff;

/// Writes the flag with `first`, which has inputs %a0 and %a1, and reads it with `second`.
U32s carried(const std::string& first_text, const std::string& second_text, const U32s& a,
             const U32s& b) {
  return first(run_lanes<std::uint32_t>(first_text + "\n" + second_text, a, b), a.size());
}

const char* const kCarryOut = "addc.u32 %out, 0, 0;";
const char* const kBorrowOut = "subc.u32 %out, 0, 0;";  // 0 - (0 + flag): 0 or all ones.

TEST(Carry, AdditionsCarryOutOfTheTopBitOnly) {
  // 1 + (2^32 - 1) = 2^32; 2^31 + 2^31 = 2^32; 2^31 - 1 + 1 = 2^31, an overflow of signed words.
  EXPECT_EQ(carried("add.cc.u32 %r1, %a0, %a1;", kCarryOut, {1, 0x80000000, 0x7fffffff, 0},
                    {kMax, 0x80000000, 1, 0}),
            (U32s{1, 1, 0, 0}));
  EXPECT_EQ(carried("add.cc.s32 %r1, %a0, %a1;", kCarryOut, {kMax, 0x7fffffff}, {1, 1}),
            (U32s{1, 0}));
}

TEST(Carry, ACarryInCanBeWhatCarriesOut) {
  // The first sum carries, so that the second is 2^32 - 1 + 0 + 1; and the largest: 2^33 - 1.
  const std::string twice = "add.cc.u32 %r1, -1, 1; addc.cc.u32 %r1, %a0, %a1;";
  EXPECT_EQ(carried(twice, kCarryOut, {kMax, kMax, 0, kMax - 1}, {0, kMax, 0, 0}),
            (U32s{1, 1, 0, 0}));
  EXPECT_EQ(carried(twice, "mov.u32 %out, %r1;", {kMax, kMax, 0}, {0, kMax, 0}),
            (U32s{0, kMax, 1}));
}

TEST(Carry, SubtractionsBorrow) {
  EXPECT_EQ(carried("sub.cc.u32 %r1, %a0, %a1;", kBorrowOut, {0, 5, 7, kMax}, {1, 5, 5, kMax}),
            (U32s{kMax, 0, 0, 0}));
  // 5 - (5 + 1) and 0 - (2^32 - 1 + 1) borrow; 6 - (5 + 1) does not.
  const std::string twice = "sub.cc.u32 %r1, 0, 1; subc.cc.u32 %r1, %a0, %a1;";
  EXPECT_EQ(carried(twice, kBorrowOut, {5, 0, 6}, {5, kMax, 5}), (U32s{kMax, kMax, 0}));
  EXPECT_EQ(carried(twice, "mov.u32 %out, %r1;", {5, 0, 6}, {5, kMax, 5}), (U32s{kMax, 0, 0}));
}

TEST(Carry, ProductsAddHalvesAndCarry) {
  // (2^32 - 1)^2 = 2^64 - 2^33 + 1: low half 1, high half 2^32 - 2.
  EXPECT_EQ(carried("mad.lo.cc.u32 %r1, %a0, %a0, %a1;", kCarryOut, {kMax, kMax}, {kMax, 0}),
            (U32s{1, 0}));
  EXPECT_EQ(carried("mad.hi.cc.u32 %r1, %a0, %a0, %a1;", kCarryOut, {kMax, kMax}, {2, 1}),
            (U32s{1, 0}));
  // As signed words -1 * -1 = 1: high half 0.
  EXPECT_EQ(carried("mad.hi.cc.s32 %r1, %a0, %a0, %a1;", "mov.u32 %out, %r1;", {kMax}, {3}),
            (U32s{3}));
  const std::string set = "add.cc.u32 %r1, -1, 1; ";
  EXPECT_EQ(carried(set + "madc.lo.u32 %out, %a0, %a1, 4;", "", {3}, {5}), (U32s{20}));
  EXPECT_EQ(carried(set + "madc.hi.u32 %out, %a0, %a1, 4;", "", {0x80000000}, {2}), (U32s{6}));
  EXPECT_EQ(carried(set + "madc.lo.cc.u32 %r1, %a0, %a1, -16;", kCarryOut, {3}, {5}), (U32s{1}));
  EXPECT_EQ(carried(set + "madc.hi.cc.u32 %r1, %a0, %a1, -2;", kCarryOut, {0x80000000}, {2}),
            (U32s{1}));
}

TEST(Carry, WordsOf64BitsToo) {
  const auto out = run_lanes<std::uint64_t>("add.cc.u64 %d1, %a0, %a1; addc.u64 %out, %d1, 0;",
                                            U64s{~0ULL, 1}, U64s{2, 2});
  EXPECT_EQ(out[0], 2U);  // 2^64 + 1: low word 1, plus the carry.
  EXPECT_EQ(out[1], 3U);
  // (2^63)^2 = 2^126: high half 2^62.
  const auto high =
      run_lanes<std::uint64_t>("mad.hi.cc.u64 %out, %a0, %a0, %a1;", U64s{1ULL << 63}, U64s{1});
  EXPECT_EQ(high[0], (1ULL << 62) + 1);
}

TEST(Carry, OfALaneThatDoesNotExecuteStays) {
  // All lanes set the flag; those below 16 clear it.
  const auto out = run_lanes<std::uint32_t>(
      "add.cc.u32 %r1, -1, 1; setp.lt.u32 %p1, %a0, 16; @%p1 add.cc.u32 %r1, 0, 0; "
      "addc.u32 %out, 0, 0;",
      U32s{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17});
  EXPECT_EQ(out[0], 0U);
  EXPECT_EQ(out[15], 0U);
  EXPECT_EQ(out[16], 1U);
  EXPECT_EQ(out[31], 1U);
}

/// The manual's example: 64 bits times 64 bits in words of 32.
TEST(Carry, ChainsMakeLongProducts) {
  const std::string text =
      "mov.b64 {%r4, %r5}, %a0; mov.b64 {%r6, %r7}, %a1;"
      "mul.lo.u32 %r0, %r4, %r6; mul.hi.u32 %r1, %r4, %r6;"
      "mad.lo.cc.u32 %r1, %r5, %r6, %r1; madc.hi.u32 %r2, %r5, %r6, 0;"
      "mad.lo.cc.u32 %r1, %r4, %r7, %r1; madc.hi.cc.u32 %r2, %r4, %r7, %r2; addc.u32 %r3, 0, 0;"
      "mad.lo.cc.u32 %r2, %r5, %r7, %r2; madc.hi.u32 %r3, %r5, %r7, %r3;";
  // (2^64 - 1)^2 = 2^128 - 2^65 + 1.
  const U64s a{~0ULL, 0x123456789abcdef0};
  const U64s b{~0ULL, 0x10};
  const auto low = run_lanes<std::uint64_t>(text + "mov.b64 %out, {%r0, %r1};", a, b);
  const auto high = run_lanes<std::uint64_t>(text + "mov.b64 %out, {%r2, %r3};", a, b);
  EXPECT_EQ(low[0], 1U);
  EXPECT_EQ(high[0], ~0ULL - 1);
  EXPECT_EQ(low[1], 0x23456789abcdef00U);
  EXPECT_EQ(high[1], 1U);
}

}  // namespace
}  // namespace cpverify::sim
