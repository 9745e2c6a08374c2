#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kNan = 0x7fc00000;
constexpr std::uint32_t kMinusZero = 0x80000000;
constexpr std::uint32_t kOne = 0x3f800000;
constexpr std::uint32_t kTwo = 0x40000000;

/// 1 where the comparison holds.
U32s compare(const std::string& form, const U32s& a, const U32s& b) {
  return first(
      run_lanes<std::uint32_t>("setp." + form + " %p1, %a0, %a1; selp.u32 %out, 1, 0, %p1;", a, b),
      a.size());
}

TEST(Compare, SignedAndUnsignedDiffer) {
  const U32s a{0xffffffff, 1, 1};
  const U32s b{1, 0xffffffff, 1};
  const std::vector<std::pair<std::string, U32s>> expected{
      {"eq.s32", {0, 0, 1}}, {"ne.s32", {1, 1, 0}}, {"lt.s32", {1, 0, 0}}, {"le.s32", {1, 0, 1}},
      {"gt.s32", {0, 1, 0}}, {"ge.s32", {0, 1, 1}}, {"lt.u32", {0, 1, 0}}, {"le.u32", {0, 1, 1}},
      {"gt.u32", {1, 0, 0}}, {"ge.u32", {1, 0, 1}}, {"lo.u32", {0, 1, 0}}, {"ls.u32", {0, 1, 1}},
      {"hi.u32", {1, 0, 0}}, {"hs.u32", {1, 0, 1}}, {"eq.b32", {0, 0, 1}}, {"ne.b32", {1, 1, 0}},
  };
  for (const auto& [form, want] : expected) EXPECT_EQ(compare(form, a, b), want) << form;
}

TEST(Compare, EveryWidthComparesAllItsBits) {
  EXPECT_EQ(run_lanes<std::uint32_t>("setp.lt.s64 %p1, %a0, %a1; selp.u32 %out, 1, 0, %p1;",
                                     U64s{1ULL << 63}, U64s{0})[0],
            1U);
  EXPECT_EQ(run_lanes<std::uint32_t>("setp.gt.u16 %p1, %a0, %a1; selp.u32 %out, 1, 0, %p1;",
                                     U16s{0x8000}, U16s{1})[0],
            1U);
  EXPECT_EQ(run_lanes<std::uint32_t>("setp.gt.s16 %p1, %a0, %a1; selp.u32 %out, 1, 0, %p1;",
                                     U16s{0x8000}, U16s{1})[0],
            0U);
}

TEST(Compare, OrderedComparisonsAreFalseForNanAndUnorderedOnesTrue) {
  // Lanes: 1<2, 2>1, 1=1, NaN with 1, 1 with NaN, -0 with +0.
  const U32s a{kOne, kTwo, kOne, kNan, kOne, kMinusZero};
  const U32s b{kTwo, kOne, kOne, kOne, kNan, 0};
  const std::vector<std::pair<std::string, U32s>> expected{
      {"eq.f32", {0, 0, 1, 0, 0, 1}},  {"ne.f32", {1, 1, 0, 0, 0, 0}},
      {"lt.f32", {1, 0, 0, 0, 0, 0}},  {"le.f32", {1, 0, 1, 0, 0, 1}},
      {"gt.f32", {0, 1, 0, 0, 0, 0}},  {"ge.f32", {0, 1, 1, 0, 0, 1}},
      {"equ.f32", {0, 0, 1, 1, 1, 1}}, {"neu.f32", {1, 1, 0, 1, 1, 0}},
      {"ltu.f32", {1, 0, 0, 1, 1, 0}}, {"leu.f32", {1, 0, 1, 1, 1, 1}},
      {"gtu.f32", {0, 1, 0, 1, 1, 0}}, {"geu.f32", {0, 1, 1, 1, 1, 1}},
      {"num.f32", {1, 1, 1, 0, 0, 1}}, {"nan.f32", {0, 0, 0, 1, 1, 0}},
  };
  for (const auto& [form, want] : expected) EXPECT_EQ(compare(form, a, b), want) << form;
}

TEST(Compare, FtzTreatsSubnormalsAsZero) {
  EXPECT_EQ(compare("gt.f32", {1}, {0}), (U32s{1}));
  EXPECT_EQ(compare("gt.ftz.f32", {1}, {0}), (U32s{0}));
  EXPECT_EQ(compare("eq.ftz.f32", {1}, {0x80000001}), (U32s{1}));
}

TEST(Compare, SecondPredicateIsTheOpposite) {
  EXPECT_EQ(first(run_lanes<std::uint32_t>("setp.lt.s32 %p1|%p2, %a0, 5; selp.u32 %r1, 1, 0, %p1; "
                                           "selp.u32 %r2, 2, 0, %p2; or.b32 %out, %r1, %r2;",
                                           U32s{4, 5}),
                  2),
            (U32s{1, 2}));
}

TEST(Compare, BoolCombinesWithAPredicate) {
  // c is true in lane 0 and 2. p = (a<5) op c; q = !(a<5) op c.
  const auto run = [](const std::string& op) {
    return first(run_lanes<std::uint32_t>("setp.ne.u32 %p3, %a1, 0; setp.lt." + op +
                                              ".s32 %p1|%p2, %a0, 5, %p3; selp.u32 %r1, 1, 0, %p1; "
                                              "selp.u32 %r2, 2, 0, %p2; or.b32 %out, %r1, %r2;",
                                          U32s{4, 4, 9, 9}, U32s{1, 0, 1, 0}),
                 4);
  };
  EXPECT_EQ(run("and"), (U32s{1, 0, 2, 0}));
  EXPECT_EQ(run("or"), (U32s{3, 1, 3, 2}));
  EXPECT_EQ(run("xor"), (U32s{2, 1, 1, 2}));
}

TEST(Compare, InactiveLanesKeepTheirPredicate) {
  const auto got = run_lanes<std::uint32_t>(
      "setp.ge.u32 %p1, %r31, 0; setp.lt.u32 %p2, %r31, 4; @%p2 setp.eq.u32 %p1, %r31, 2; "
      "selp.u32 %out, 1, 0, %p1;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane < 4 ? (lane == 2 ? 1U : 0U) : 1U) << lane;
  }
}

TEST(Compare, SelpChoosesPerLane) {
  EXPECT_EQ(first(run_lanes<std::uint64_t>("setp.eq.u32 %p1, %a0, 1; selp.b64 %out, %a1, 9, %p1;",
                                           U32s{1, 0}, U64s{1ULL << 40}),
                  2),
            (U64s{1ULL << 40, 9}));
}

}  // namespace
}  // namespace cpverify::sim
