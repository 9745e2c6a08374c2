#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

U32s binary(const std::string& op, const U32s& a, const U32s& b) {
  return first(run_lanes<std::uint32_t>(op + " %out, %a0, %a1;", a, b), a.size());
}

TEST(Logic, BitwiseOperations) {
  EXPECT_EQ(binary("and.b32", {0xff00ff00}, {0x0ff00ff0}), (U32s{0x0f000f00}));
  EXPECT_EQ(binary("or.b32", {0xff00ff00}, {0x0ff00ff0}), (U32s{0xfff0fff0}));
  EXPECT_EQ(binary("xor.b32", {0xff00ff00}, {0x0ff00ff0}), (U32s{0xf0f0f0f0}));
  EXPECT_EQ(run_lanes<std::uint64_t>("not.b64 %out, %a0;", U64s{1})[0], ~1ULL);
  EXPECT_EQ(run_lanes<std::uint16_t>("not.b16 %out, %a0;", U16s{1})[0], 0xfffe);
  EXPECT_EQ(first(run_lanes<std::uint32_t>("cnot.b32 %out, %a0;", U32s{0, 7}), 2), (U32s{1, 0}));
}

TEST(Logic, ShiftsPastTheWidthAreClamped) {
  EXPECT_EQ(binary("shl.b32", {1, 1, 1, 1}, {31, 32, 33, 0xffffffff}), (U32s{0x80000000, 0, 0, 0}));
  EXPECT_EQ(binary("shr.u32", {0x80000000, 0x80000000, 0x80000000}, {31, 32, 64}), (U32s{1, 0, 0}));
  EXPECT_EQ(binary("shr.s32", {0x80000000, 0x80000000, 0x7fffffff}, {31, 100, 100}),
            (U32s{0xffffffff, 0xffffffff, 0}));
  EXPECT_EQ(first(run_lanes<std::uint64_t>("shl.b64 %out, %a0, %a1;", U64s{1}, U32s{63, 64}), 2),
            (U64s{1ULL << 63, 0}));
  EXPECT_EQ(run_lanes<std::uint16_t>("shr.u16 %out, %a0, %a1;", U16s{0x8000}, U32s{15})[0], 1);
  EXPECT_EQ(run_lanes<std::uint16_t>("shl.b16 %out, %a0, %a1;", U16s{1}, U32s{16})[0], 0);
}

TEST(Logic, FunnelShiftTakesBitsFromBothWords) {
  // [b:a] = 0x11223344_AABBCCDD. Left by 8: the upper word is 223344AA. Right by 8: 44AABBCC.
  EXPECT_EQ(run_lanes<std::uint32_t>("shf.l.wrap.b32 %out, %a0, %a1, 8;", U32s{0xaabbccdd},
                                     U32s{0x11223344})[0],
            0x223344aaU);
  EXPECT_EQ(run_lanes<std::uint32_t>("shf.r.wrap.b32 %out, %a0, %a1, 8;", U32s{0xaabbccdd},
                                     U32s{0x11223344})[0],
            0x44aabbccU);
  // 40 wraps to 8 or is clamped to 32.
  EXPECT_EQ(run_lanes<std::uint32_t>("shf.l.wrap.b32 %out, %a0, %a1, 40;", U32s{0xaabbccdd},
                                     U32s{0x11223344})[0],
            0x223344aaU);
  EXPECT_EQ(run_lanes<std::uint32_t>("shf.l.clamp.b32 %out, %a0, %a1, 40;", U32s{0xaabbccdd},
                                     U32s{0x11223344})[0],
            0xaabbccddU);
  EXPECT_EQ(run_lanes<std::uint32_t>("shf.r.clamp.b32 %out, %a0, %a1, 40;", U32s{0xaabbccdd},
                                     U32s{0x11223344})[0],
            0x11223344U);
}

TEST(Logic, ThreeInputTableIsIndexedByABC) {
  // Tables of the manual: a & b & c = 0x80, a | b | c = 0xFE, a & b & ~c = 0x40, (a & b) | c =
  // 0xEA; a ^ b ^ c = 0x96.
  const std::uint32_t a = 0xf0f0f0f0;
  const std::uint32_t b = 0xcccccccc;
  const std::uint32_t c = 0xaaaaaaaa;
  const auto table = [&](const std::string& value) {
    return run_lanes<std::uint32_t>("lop3.b32 %out, %a0, %a1, %a2, " + value + ";", U32s{a},
                                    U32s{b}, U32s{c})[0];
  };
  EXPECT_EQ(table("0x80"), a & b & c);
  EXPECT_EQ(table("0xFE"), a | b | c);
  EXPECT_EQ(table("0x40"), a & b & ~c);
  EXPECT_EQ(table("0xEA"), (a & b) | c);
  EXPECT_EQ(table("0x96"), a ^ b ^ c);
}

TEST(Logic, PredicatesCombine) {
  // p1 = lanes 2, 3; p2 = lanes 1, 3.
  const std::string setup =
      "setp.ge.u32 %p1, %a0, 2; and.b32 %r1, %a0, 1; setp.eq.u32 %p2, %r1, 1; ";
  const auto run = [&](const std::string& op) {
    return first(
        run_lanes<std::uint32_t>(setup + op + " selp.u32 %out, 1, 0, %p3;", U32s{0, 1, 2, 3}), 4);
  };
  EXPECT_EQ(run("and.pred %p3, %p1, %p2;"), (U32s{0, 0, 0, 1}));
  EXPECT_EQ(run("or.pred %p3, %p1, %p2;"), (U32s{0, 1, 1, 1}));
  EXPECT_EQ(run("xor.pred %p3, %p1, %p2;"), (U32s{0, 1, 1, 0}));
  EXPECT_EQ(run("not.pred %p3, %p1;"), (U32s{1, 1, 0, 0}));
  EXPECT_EQ(run("mov.pred %p3, %p2;"), (U32s{0, 1, 0, 1}));
  EXPECT_EQ(run("mov.pred %p3, -1;"), (U32s{1, 1, 1, 1}));
  EXPECT_EQ(run("mov.pred %p3, 0;"), (U32s{0, 0, 0, 0}));
}

TEST(Move, PacksTheFirstElementIntoTheLowBits) {
  EXPECT_EQ(run_lanes<std::uint32_t>("mov.b32 %out, {%a0, %a1};", U16s{0x1111}, U16s{0x2222})[0],
            0x22221111U);
  EXPECT_EQ(run_lanes<std::uint64_t>("mov.b64 %out, {%a0, %a1};", U32s{1}, U32s{2})[0],
            0x200000001ULL);
  EXPECT_EQ(run_lanes<std::uint64_t>("mov.b64 %out, {%a0, %a1, %a0, %a1};", U16s{0x1111},
                                     U16s{0x2222})[0],
            0x2222111122221111ULL);
}

TEST(Move, UnpacksWhatItPacks) {
  EXPECT_EQ(run_lanes<std::uint32_t>("mov.b32 {%h1, %h2}, %a0; mov.b32 %out, {%h2, %h1};",
                                     U32s{0x22221111})[0],
            0x11112222U);
  EXPECT_EQ(run_lanes<std::uint64_t>("mov.b64 {%h1, %h2, %h3, %h4}, %a0; "
                                     "mov.b64 %out, {%h4, %h3, %h2, %h1};",
                                     U64s{0x4444333322221111})[0],
            0x1111222233334444ULL);
  EXPECT_EQ(run_lanes<std::uint32_t>("mov.b64 {_, %out}, %a0;", U64s{0x700000001})[0], 7U);
}

TEST(Move, PermutePicksBytesAndSigns) {
  // [b:a] = bytes 88 77 66 55 | 44 33 82 11 (high to low); nibble 1 is 0x82, its sign is FF.
  EXPECT_EQ(run_lanes<std::uint32_t>("prmt.b32 %out, %a0, %a1, 0x7610;", U32s{0x44338211},
                                     U32s{0x88776655})[0],
            0x88778211U);
  EXPECT_EQ(run_lanes<std::uint32_t>("prmt.b32 %out, %a0, %a1, 0x0981;", U32s{0x44338211},
                                     U32s{0x88776655})[0],
            0x11ff0082U);
}

TEST(Convert, IntegersCutAndExtendByTheSourceSign) {
  EXPECT_EQ(run_lanes<std::uint64_t>("cvt.s64.s32 %out, %a0;", U32s{0xfffffffe})[0], ~1ULL);
  EXPECT_EQ(run_lanes<std::uint64_t>("cvt.u64.u32 %out, %a0;", U32s{0xfffffffe})[0], 0xfffffffeULL);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.u32.u64 %out, %a0;", U64s{0x1234567890})[0], 0x34567890U);
  // The source is wider than its type, as nvcc writes it: only the low half counts.
  EXPECT_EQ(run_lanes<std::uint64_t>("cvt.s64.s32 %out, %a0;", U64s{0x12345678fffffff0})[0],
            static_cast<std::uint64_t>(-16));
  EXPECT_EQ(run_lanes<std::uint16_t>("cvt.s16.s8 %out, %a0;", U16s{0x1280})[0], 0xff80);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.u8.u32 %out, %a0;", U32s{0x1ff})[0], 0xffU);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.s8.s32 %out, %a0;", U32s{0x1ff})[0], 0xffffffffU);
}

TEST(Convert, SaturationClampsToTheTarget) {
  EXPECT_EQ(
      first(run_lanes<std::uint32_t>("cvt.sat.u8.s32 %out, %a0;", U32s{0xffffffff, 300, 200}), 3),
      (U32s{0, 255, 200}));
  EXPECT_EQ(first(run_lanes<std::uint32_t>("cvt.sat.s8.s32 %out, %a0;",
                                           U32s{static_cast<std::uint32_t>(-300), 300}),
                  2),
            (U32s{0xffffff80, 127}));
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.sat.s32.u32 %out, %a0;", U32s{0xffffffff})[0],
            0x7fffffffU);
}

TEST(Convert, IntegersToFloatRoundToNearestEven) {
  // 2^24 + 1 lies halfway between floats and goes to the even 2^24; 2^24 + 3 to 2^24 + 4.
  EXPECT_EQ(first(run_lanes<std::uint32_t>("cvt.rn.f32.s32 %out, %a0;",
                                           U32s{16777217, 16777219, 0xffffffff}),
                  3),
            bits_of({16777216.0F, 16777220.0F, -1.0F}));
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.rn.f32.u32 %out, %a0;", U32s{0xffffffff})[0],
            bits_of({4294967296.0F})[0]);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.rn.f32.u64 %out, %a0;", U64s{~0ULL})[0],
            bits_of({18446744073709551616.0F})[0]);
}

TEST(Convert, FloatsToIntegersRoundAsAsked) {
  const auto convert = [](const std::string& form, const std::vector<float>& values) {
    return first(run_lanes<std::uint32_t>("cvt." + form + ".s32.f32 %out, %a0;", bits_of(values)),
                 values.size());
  };
  const auto ints = [](const std::vector<std::int32_t>& values) {
    U32s bits;
    for (const std::int32_t value : values) bits.push_back(static_cast<std::uint32_t>(value));
    return bits;
  };
  const std::vector<float> values{2.5F, -2.5F, 3.5F, -0.7F, 1e20F, -1e20F, NAN};
  constexpr std::int32_t most = 2147483647;
  constexpr std::int32_t least = -2147483647 - 1;
  EXPECT_EQ(convert("rni", values), ints({2, -2, 4, -1, most, least, 0}));
  EXPECT_EQ(convert("rzi", values), ints({2, -2, 3, 0, most, least, 0}));
  EXPECT_EQ(convert("rmi", values), ints({2, -3, 3, -1, most, least, 0}));
  EXPECT_EQ(convert("rpi", values), ints({3, -2, 4, 0, most, least, 0}));
  EXPECT_EQ(first(run_lanes<std::uint32_t>("cvt.rzi.u32.f32 %out, %a0;",
                                           bits_of({-1.0F, 4294967040.0F, 5e9F})),
                  3),
            (U32s{0, 4294967040U, 0xffffffff}));
}

TEST(Convert, FloatsRoundToIntegralFloats) {
  EXPECT_EQ(first(run_lanes<std::uint32_t>("cvt.rmi.f32.f32 %out, %a0;",
                                           bits_of({-0.5F, 2.7F, 16777216.0F, -0.0F})),
                  4),
            bits_of({-1.0F, 2.0F, 16777216.0F, -0.0F}));
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.sat.f32.f32 %out, %a0;", bits_of({7.0F}))[0],
            bits_of({1.0F})[0]);
}

TEST(Convert, SixteenBitFloats) {
  // 1 + 2^-8 is halfway between the bf16 1 and 1 + 2^-7: to even. Upper half comes first.
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.rn.bf16x2.f32 %out, %a0, %a1;", bits_of({2.0F}),
                                     bits_of({1.00390625F}))[0],
            0x40003f80U);
  EXPECT_EQ(run_lanes<std::uint16_t>("cvt.rn.f16.f32 %out, %a0;", bits_of({1.5F}))[0], 0x3e00);
  EXPECT_EQ(run_lanes<std::uint16_t>("cvt.rn.bf16.f32 %out, %a0;", U32s{0xffc12345})[0], 0x7fff);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.f32.f16 %out, %a0;", U16s{0x3e00})[0],
            bits_of({1.5F})[0]);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.f32.bf16 %out, %a0;", U16s{0xc000})[0],
            bits_of({-2.0F})[0]);
  EXPECT_EQ(run_lanes<std::uint32_t>("cvt.rn.f16x2.f32 %out, %a0, %a1;", bits_of({2.0F}),
                                     bits_of({65520.0F}))[0],
            0x40007c00U);
}

}  // namespace
}  // namespace cpverify::sim
