#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

/// Values of f16: 0x3c00 is 1, 0x4000 2, 0x7bff 65504 (the largest), 0x0400 2^-14 (the smallest
/// normal), 1 2^-24, 0x7c00 an infinity. Of bf16: 0x3f80 is 1.
namespace cpverify::sim {
namespace {

constexpr std::uint16_t kNan = 0x7fff;

U16s unary(const std::string& op, const U16s& a) {
  return first(run_lanes<std::uint16_t>(op + " %out, %a0;", a), a.size());
}
U16s binary(const std::string& op, const U16s& a, const U16s& b) {
  return first(run_lanes<std::uint16_t>(op + " %out, %a0, %a1;", a, b), a.size());
}
U16s ternary(const std::string& op, const U16s& a, const U16s& b, const U16s& c) {
  return first(run_lanes<std::uint16_t>(op + " %out, %a0, %a1, %a2;", a, b, c), a.size());
}

TEST(Half, SumsRoundToNearestEven) {
  // 1 + 2^-11 is half way to 1 + 2^-10: even is 1. 1 + 2^-10 + 2^-11: even is 1 + 2^-9.
  // 65504 + 16 is half way to 2^16, an infinity; 65504 + 15.992 is not.
  EXPECT_EQ(binary("add.f16", {0x3c00, 0x3c01, 0x7bff, 0x7bff}, {0x1000, 0x1000, 0x4c00, 0x4bff}),
            (U16s{0x3c00, 0x3c02, 0x7c00, 0x7bff}));
  // -0 + -0 = -0, 1 - 1 = +0, inf - inf = NaN.
  EXPECT_EQ(binary("add.rn.f16", {0x8000}, {0x8000}), (U16s{0x8000}));
  EXPECT_EQ(binary("sub.f16", {0x3c00, 0x7c00}, {0x3c00, 0x7c00}), (U16s{0, kNan}));
}

TEST(Half, FtzAndSatChangeTheEnds) {
  // 2^-24 + 2^-24 = 2^-23; flushed, 0. 2^-14 * 0.5 is subnormal.
  EXPECT_EQ(binary("add.f16", {1}, {1}), (U16s{2}));
  EXPECT_EQ(binary("add.ftz.f16", {1, 0x8001}, {1, 0x8001}), (U16s{0, 0x8000}));
  EXPECT_EQ(binary("mul.f16", {0x0400}, {0x3800}), (U16s{0x0200}));
  EXPECT_EQ(binary("mul.ftz.f16", {0x0400}, {0x3800}), (U16s{0}));
  // 2 + 1 clamps to 1, -1 + 0 to 0, NaN becomes 0.
  EXPECT_EQ(binary("add.sat.f16", {0x4000, 0xbc00, kNan}, {0x3c00, 0, 0}), (U16s{0x3c00, 0, 0}));
}

TEST(Half, FmaRoundsOnce) {
  // 1.5 * 683/1024 = 1 + 2^-11, half way between two values; 2^-24 more decides. In f32 the sum
  // would round to the half way point first, and from there down to 1.
  EXPECT_EQ(ternary("fma.rn.f16", {0x3e00, 0x3e00, 0x3e00}, {0x3956, 0x3956, 0x3956},
                    {0x0001, 0x0000, 0x8001}),
            (U16s{0x3c01, 0x3c00, 0x3c00}));
  // bf16: 3 * 129/128 = 193.5/64; even is 194/64 = 0x4042; 2^-60 less is 193/64 = 0x4041.
  EXPECT_EQ(ternary("fma.rn.bf16", {0x4040, 0x4040, 0x4040}, {0x3f81, 0x3f81, 0x3f81},
                    {0x2180, 0x0000, 0xa180}),
            (U16s{0x4042, 0x4042, 0x4041}));
  // .relu: -1 becomes +0, NaN (inf * 0) stays.
  EXPECT_EQ(ternary("fma.rn.relu.f16", {0xbc00, 0x7c00}, {0x3c00, 0}, {0, 0}), (U16s{0, kNan}));
}

TEST(Half, MinAndMaxTreatNanAndZerosAsTheManualSays) {
  EXPECT_EQ(binary("min.f16", {kNan, 0x0000, 0x3c00}, {0x3c00, 0x8000, 0x4000}),
            (U16s{0x3c00, 0x8000, 0x3c00}));
  EXPECT_EQ(binary("max.bf16", {0x7fc1, 0x0000, 0x3f80}, {0x3f80, 0x8000, 0x4000}),
            (U16s{0x3f80, 0x0000, 0x4000}));
  EXPECT_EQ(binary("max.NaN.f16", {0xfe01, 0x3c00}, {0x3c00, 0x3c00}), (U16s{kNan, 0x3c00}));
}

TEST(Half, SignOperationsKeepTheRest) {
  EXPECT_EQ(unary("neg.f16", {0x0000, 0x3c00}), (U16s{0x8000, 0xbc00}));
  EXPECT_EQ(unary("abs.ftz.f16", {0x8001, 0xbc00}), (U16s{0, 0x3c00}));
  EXPECT_EQ(unary("neg.bf16", {0xbf80}), (U16s{0x3f80}));
}

TEST(Half, ApproximationsAreExactWhereTheyMustBe) {
  // 2^-24 is the smallest subnormal, 2^16 overflows; tanh(inf) = 1, tanh(-0) = -0.
  EXPECT_EQ(unary("ex2.approx.f16", {0x4000, 0xce00, 0x4c00}), (U16s{0x4400, 0x0001, 0x7c00}));
  EXPECT_EQ(unary("tanh.approx.bf16", {0x7f80, 0x8000, 0xff80}), (U16s{0x3f80, 0x8000, 0xbf80}));
}

TEST(Half, PairsAreTwoOperations) {
  const auto run = [](const std::string& op, std::uint32_t a, std::uint32_t b) {
    return run_lanes<std::uint32_t>(op + " %out, %a0, %a1;", U32s{a}, U32s{b})[0];
  };
  // (1, 2) + (2, 1) = (3, 3); NaN in one half only.
  EXPECT_EQ(run("add.f16x2", 0x3c004000, 0x40003c00), 0x42004200U);
  EXPECT_EQ(run("mul.bf16x2", 0x7f803f80, 0x00004000), 0x7fff4000U);
}

TEST(Half, InactiveLanesKeepTheirValue) {
  const auto got = run_lanes<std::uint16_t>(
      "setp.lt.u32 %p1, %r31, 9; mov.b16 %out, 7; @%p1 add.f16 %out, %a0, %a0;", U16s{0x3c00});
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane < 9 ? 0x4000 : 7) << lane;
  }
}

TEST(Half, ComparisonsOfNanAreUnordered) {
  const auto run = [](const std::string& compare, const U16s& a, const U16s& b) {
    return first(run_lanes<std::uint32_t>("setp." + compare +
                                              " %p1|%p2, %a0, %a1; selp.u32 %r1, 1, 0, %p1; "
                                              "selp.u32 %r2, 2, 0, %p2; add.u32 %out, %r1, %r2;",
                                          a, b),
                 a.size());
  };
  // 1 for p, 2 for its opposite q.
  EXPECT_EQ(run("lt.f16", {0x3c00, 0x4000, kNan}, {0x4000, 0x3c00, 0}), (U32s{1, 2, 2}));
  EXPECT_EQ(run("ltu.f16", {0x3c00, kNan}, {0x3c00, 0}), (U32s{2, 1}));
  EXPECT_EQ(run("ne.bf16", {0x3f80, 0x7fc0}, {0x4000, 0}), (U32s{1, 2}));
  EXPECT_EQ(run("eq.f16", {0x8000, 1}, {0x0000, 0}), (U32s{1, 2}));
  EXPECT_EQ(run("eq.ftz.f16", {1}, {0}), (U32s{1}));
  // p is the lower half, q the upper one: 1 < 2 and not 2 < 1.
  const auto pair = run_lanes<std::uint32_t>(
      "setp.lt.f16x2 %p1|%p2, %a0, %a1; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; "
      "add.u32 %out, %r1, %r2;",
      U32s{0x40003c00}, U32s{0x3c004000});
  EXPECT_EQ(pair[0], 1U);
}

}  // namespace
}  // namespace cpverify::sim
