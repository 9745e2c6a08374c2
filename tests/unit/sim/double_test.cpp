#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint64_t kNan = 0x7fffffffffffffff;
constexpr std::uint64_t kMinusZero = 0x8000000000000000;

U64s bits64(const std::vector<double>& values) {
  U64s bits;
  for (const double value : values) bits.push_back(std::bit_cast<std::uint64_t>(value));
  return bits;
}
U64s binary(const std::string& op, const std::vector<double>& a, const std::vector<double>& b) {
  return first(run_lanes<std::uint64_t>(op + " %out, %a0, %a1;", bits64(a), bits64(b)), a.size());
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Double, ArithmeticIsIeee) {
  // 0.1 + 0.2 is 0.30000000000000004, one unit above 0.3 = 0x3fd3333333333333.
  EXPECT_EQ(binary("add.f64", {0.1, -0.0, kInfinity}, {0.2, -0.0, -kInfinity}),
            (U64s{0x3fd3333333333334, kMinusZero, kNan}));
  EXPECT_EQ(binary("sub.rn.f64", {1.0}, {1.0}), (U64s{0}));
  EXPECT_EQ(binary("mul.f64", {0x1p-1074, 0.0}, {0.5, kInfinity}), (U64s{0, kNan}));
  EXPECT_EQ(binary("div.rn.f64", {1.0, 1.0, 0.0}, {3.0, -0.0, 0.0}),
            (U64s{0x3fd5555555555555, 0xfff0000000000000, kNan}));
  // (1 + 2^-52)^2 - (1 + 2^-51) = 2^-104: the exponent field is 1023 - 104 = 0x397.
  const auto fused = run_lanes<std::uint64_t>("fma.rn.f64 %out, %a0, %a0, %a1;",
                                              bits64({1.0 + 0x1p-52}), bits64({-(1.0 + 0x1p-51)}));
  EXPECT_EQ(fused[0], 0x3970000000000000U);
}

// 1 + 2^-60 lies between 1 = 0x3ff0000000000000 and its neighbour above, 1 - 2^-60 between 1 and
// its neighbour below. The largest number times 2 is beyond all. 2^-1074 / 2 lies between 0 and
// 2^-1074.
TEST(Double, RoundsTowardsZeroAndTheInfinities) {
  const std::vector<double> a{1.0, 1.0, -1.0, 3.0};
  const std::vector<double> b{0x1p-60, -0x1p-60, -0x1p-60, -3.0};
  EXPECT_EQ(binary("add.rz.f64", a, b),
            (U64s{0x3ff0000000000000, 0x3fefffffffffffff, 0xbff0000000000000, 0}));
  EXPECT_EQ(binary("add.rm.f64", a, b),
            (U64s{0x3ff0000000000000, 0x3fefffffffffffff, 0xbff0000000000001, kMinusZero}));
  EXPECT_EQ(binary("add.rp.f64", a, b),
            (U64s{0x3ff0000000000001, 0x3ff0000000000000, 0xbff0000000000000, 0}));
  EXPECT_EQ(binary("sub.rp.f64", {1.0}, {0x1p-60}), (U64s{0x3ff0000000000000}));
  const double max = std::numeric_limits<double>::max();
  EXPECT_EQ(binary("mul.rz.f64", {max, 0x1p-1074}, {2.0, 0.5}), (U64s{0x7fefffffffffffff, 0}));
  EXPECT_EQ(binary("mul.rp.f64", {max, 0x1p-1074}, {2.0, 0.5}), (U64s{0x7ff0000000000000, 1}));
  // (1 + 2^-52)^2 = 1 + 2^-51 + 2^-104: towards zero and below the same as without the last term.
  const U64s factor = bits64({1.0 + 0x1p-52});
  const U64s zero = bits64({0.0});
  EXPECT_EQ(run_lanes<std::uint64_t>("fma.rz.f64 %out, %a0, %a0, %a1;", factor, zero)[0],
            0x3ff0000000000002U);
  EXPECT_EQ(run_lanes<std::uint64_t>("mad.rp.f64 %out, %a0, %a0, %a1;", factor, zero)[0],
            0x3ff0000000000003U);
}

TEST(Double, MinMaxAndSignsFollowTheManual) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(binary("min.f64", {nan, -0.0, nan}, {1.0, 0.0, nan}),
            (U64s{0x3ff0000000000000, kMinusZero, kNan}));
  EXPECT_EQ(binary("max.f64", {-0.0}, {0.0}), (U64s{0}));
  const auto root =
      first(run_lanes<std::uint64_t>("sqrt.rn.f64 %out, %a0;", bits64({4.0, -1.0, -0.0})), 3);
  EXPECT_EQ(root, (U64s{0x4000000000000000, kNan, kMinusZero}));
}

TEST(Double, ConstantsAndComparisonsWork) {
  const auto got = run_lanes<std::uint32_t>(
      "setp.lt.f64 %p1, %a0, 0d4000000000000000; selp.u32 %r1, 1, 0, %p1; "
      "setp.nan.and.f64 %p2, %a0, %a0, !%p1; selp.u32 %r2, 2, 0, %p2; add.u32 %out, %r1, %r2;",
      bits64({1.0, 2.0, std::numeric_limits<double>::quiet_NaN()}));
  EXPECT_EQ(first(got, 3), (U32s{1, 0, 2}));
}

TEST(Double, RoundsToFloatInAllFourWays) {
  // 1 + 2^-24 + 2^-52 lies above the middle of 1 and 1 + 2^-23; 2^-150 is half of the smallest f32.
  const std::vector<double> values{1.0 + 0x1p-24 + 0x1p-52, -(1.0 + 0x1p-52), 0x1p-150, 0x1p200};
  const auto run = [&](const std::string& form) {
    return first(run_lanes<std::uint32_t>("cvt." + form + ".f32.f64 %out, %a0;", bits64(values)),
                 values.size());
  };
  EXPECT_EQ(run("rn"), (U32s{0x3f800001, 0xbf800000, 0, 0x7f800000}));
  EXPECT_EQ(run("rz"), (U32s{0x3f800000, 0xbf800000, 0, 0x7f7fffff}));
  EXPECT_EQ(run("rm"), (U32s{0x3f800000, 0xbf800001, 0, 0x7f7fffff}));
  EXPECT_EQ(run("rp"), (U32s{0x3f800001, 0xbf800000, 1, 0x7f800000}));
  EXPECT_EQ(run("rn.sat"), (U32s{0x3f800000, 0, 0, 0x3f800000}));
}

TEST(Double, ConvertsToAndFromIntegers) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto run = [](const std::string& form, const std::vector<double>& values) {
    return first(run_lanes<std::uint32_t>("cvt." + form + ".f64 %out, %a0;", bits64(values)),
                 values.size());
  };
  EXPECT_EQ(run("rzi.s32", {-2.9, 3e9, nan, -3e9}), (U32s{0xfffffffe, 0x7fffffff, 0, 0x80000000}));
  EXPECT_EQ(run("rni.u32", {2.5, 3.5, -1.0, 4294967295.5}), (U32s{2, 4, 0, 0xffffffff}));
  EXPECT_EQ(run("rmi.s32", {-0.5, 0.5}), (U32s{0xffffffff, 0}));
  EXPECT_EQ(run("rpi.s32", {-0.5, 0.5}), (U32s{0, 1}));
  // 2^64 - 1 rounds to 2^64.
  EXPECT_EQ(run_lanes<std::uint64_t>("cvt.rn.f64.u64 %out, %a0;", U64s{~0ULL})[0],
            0x43f0000000000000U);
  EXPECT_EQ(run_lanes<std::uint64_t>("cvt.rn.f64.s32 %out, %a0;", U32s{0xffffffff})[0],
            0xbff0000000000000U);
  EXPECT_EQ(run_lanes<std::uint64_t>("cvt.f64.f16 %out, %a0;", U16s{0x0001})[0],
            std::bit_cast<std::uint64_t>(0x1p-24));
}

}  // namespace
}  // namespace cpverify::sim
