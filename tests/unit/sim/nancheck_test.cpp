#include <cstdint>
#include <limits>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "sim/check/special_values.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// %d0 words that are given, %d1 as many for results, %d2 and %d3 the lane's words there, %r1 lane,
/// %f0 what the lane finds, %r9 the lane's word of shared memory.
constexpr const char* kPreamble =
    ".shared .align 16 .b8 s[512];\n"
    "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r1, %laneid;\n"
    "mad.wide.u32 %d2, %r1, 4, %d0; mad.wide.u32 %d3, %r1, 4, %d1;\n"
    "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9; ld.global.f32 %f0, [%d2];\n";

class NanRun {
 public:
  explicit NanRun(std::vector<float> given = std::vector<float>(32, 2.0F))
      : given_{device_.upload(given)}, results_{device_.upload(std::vector<float>(32, 0.0F))} {}

  /// Line 5 of the text is the first of `body`.
  std::vector<Fault> launch(const std::string& body) {
    device_.load(kernel_text(2, kPreamble + body + "\nret;"));
    LaunchRequest request = shape({1, 1, 1}, {32, 1, 1});
    request.special_values = &memory_;
    const LaunchResult result = device_.run("k", request, Parameters{given_, results_});
    EXPECT_EQ(result.status, LaunchStatus::completed) << describe(result.faults);
    return result.faults;
  }
  [[nodiscard]] std::uint64_t given() const { return given_; }
  [[nodiscard]] std::uint64_t results() const { return results_; }

 private:
  SimulatedDevice device_;
  SpecialValueMemory memory_;
  std::uint64_t given_;
  std::uint64_t results_;
};

/// One instruction that makes a special value in %f1 (or %h1), and the same with other operands.
struct Maker {
  std::string name;
  std::string defective;
  std::string clean;
  FaultKind kind = FaultKind::nan_produced;
  std::string text;
  std::string store = "st.global.f32 [%d3], %f1;";
};

std::ostream& operator<<(std::ostream& out, const Maker& maker) {
  return out << maker.name;
}

class NanMaker : public testing::TestWithParam<Maker> {};

TEST_P(NanMaker, IsNamedWithItsOperandsAndItsCleanTwinIsNot) {
  const std::vector<Fault> faults = NanRun{}.launch(GetParam().defective + "\n" + GetParam().store);
  ASSERT_EQ(faults.size(), 1U) << describe(faults);
  EXPECT_EQ(faults[0].kind, GetParam().kind);
  EXPECT_EQ(faults[0].count, 32U);
  EXPECT_THAT(faults[0].detail, HasSubstr(GetParam().text));
  EXPECT_THAT(faults[0].detail, HasSubstr("; stored, PTX line "));
  const std::vector<Fault> none = NanRun{}.launch(GetParam().clean + "\n" + GetParam().store);
  EXPECT_TRUE(none.empty()) << describe(none);
}

// 0f40000000 is 2, which is also what %f0 holds; 0fBF800000 -1; 0f7F800000 inf; 0f7F7FFFFF the
// greatest number; 0x0C00 a small half, 0x7BFF the greatest.
INSTANTIATE_TEST_SUITE_P(
    Makers, NanMaker,
    testing::Values(
        Maker{"zero_times_infinity", "mul.f32 %f1, 0f00000000, 0f7F800000;",
              "mul.f32 %f1, %f0, 0f00000000;", FaultKind::nan_produced,
              "mul of a = 0 (0x00000000), b = inf (0x7f800000) is NaN"},
        Maker{"infinity_minus_infinity", "sub.f32 %f1, 0fFF800000, 0fFF800000;",
              "sub.f32 %f1, 0fFF800000, %f0;", FaultKind::nan_produced,
              "sub of a = -inf (0xff800000), b = -inf (0xff800000) is NaN"},
        Maker{"number_by_zero", "div.rn.f32 %f1, %f0, 0f00000000;", "div.rn.f32 %f1, %f0, %f0;",
              FaultKind::infinity_produced,
              "div of a = 2 (0x40000000), b = 0 (0x00000000) is +inf"},
        Maker{"zero_by_zero", "div.rn.f32 %f1, 0f00000000, 0f00000000;",
              "div.rn.f32 %f1, 0f00000000, %f0;", FaultKind::nan_produced,
              "div of a = 0 (0x00000000), b = 0 (0x00000000) is NaN"},
        Maker{"root_of_a_negative", "sqrt.rn.f32 %f1, 0fBF800000;", "sqrt.rn.f32 %f1, %f0;",
              FaultKind::nan_produced, "sqrt of a = -1 (0xbf800000) is NaN"},
        Maker{"logarithm_of_a_negative", "lg2.approx.f32 %f1, 0fBF800000;",
              "lg2.approx.f32 %f1, %f0;", FaultKind::nan_produced,
              "lg2 of a = -1 (0xbf800000) is NaN"},
        Maker{"overflow", "fma.rn.f32 %f1, 0f7F7FFFFF, %f0, %f0;", "fma.rn.f32 %f1, %f0, %f0, %f0;",
              FaultKind::infinity_produced, "is +inf"},
        Maker{"half_overflow", "cvt.rn.f16.f32 %h1, 0f7F7FFFFF;", "cvt.rn.f16.f32 %h1, %f0;",
              FaultKind::infinity_produced, "is +inf", "st.global.b16 [%d3], %h1;"},
        Maker{"half_sum", "mov.b16 %h0, 0x7BFF; add.f16 %h1, %h0, %h0;",
              "mov.b16 %h0, 0x0C00; add.f16 %h1, %h0, %h0;", FaultKind::infinity_produced,
              "add of a = 65504 (0x7bff), b = 65504 (0x7bff) is +inf", "st.global.b16 [%d3], %h1;"},
        // Factors of -inf and 0: bf16 pairs 0xff80ff80 and 0.
        Maker{"matrix_product",
              "mov.b32 %r2, 0xff80ff80; mov.b32 %r3, 0; mov.f32 %f4, %f0;"
              "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f5}, {%r2,%r2}, "
              "{%r3}, {%f4,%f4,%f4,%f4};",
              "mov.b32 %r2, 0x3f803f80; mov.b32 %r3, 0; mov.f32 %f4, %f0;"
              "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f5}, {%r2,%r2}, "
              "{%r3}, {%f4,%f4,%f4,%f4};",
              FaultKind::nan_produced, "mma of products and c = 2 (0x40000000) is NaN"}),
    [](const auto& instance) { return instance.param.name; });

TEST(Nancheck, WhatIsNotStoredOrIsMeantIsNotReported) {
  for (const std::string body : {
           // Replaced before it is stored.
           "sqrt.rn.f32 %f1, 0fBF800000; max.f32 %f1, %f1, %f0; st.global.f32 [%d3], %f1;",
           "sqrt.rn.f32 %f1, 0fBF800000; setp.nan.f32 %p1, %f1, %f1; "
           "selp.f32 %f2, %f0, %f1, %p1; st.global.f32 [%d3], %f2;",
           // The mask, the maximum of nothing and the logarithm of nothing.
           "mov.f32 %f1, 0fFF800000; max.f32 %f1, %f1, 0fFF800000; st.global.f32 [%d3], %f1;",
           "lg2.approx.f32 %f1, 0f00000000; st.global.f32 [%d3], %f1;",
           "mov.f32 %f1, 0f7FFFFFFF; st.global.f32 [%d3], %f1;",
           "mov.b32 %r2, -1; st.global.u32 [%d3], %r2;",
       }) {
    EXPECT_THAT(NanRun{}.launch(body), IsEmpty()) << body;
  }
}

TEST(Nancheck, FollowsRegistersSharedMemoryAndShuffles) {
  const std::vector<Fault> faults = NanRun{}.launch(
      "setp.eq.u32 %p1, %r1, 5; mov.f32 %f1, %f0;\n"
      "@%p1 sqrt.rn.f32 %f1, 0fBF800000;\n"
      "st.shared.f32 [%r9], %f1; ld.shared.b32 %r2, [%r9];\n"
      "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1; mov.b32 %f2, %r3;\n"
      "add.f32 %f2, %f2, %f0; mul.f32 %f2, %f2, %f0;\n"
      "cvt.rn.bf16.f32 %h1, %f2;\n"
      "mov.b32 %r4, {%h1, %h1};\n"
      "st.global.b32 [%d3], %r4;");
  ASSERT_EQ(faults.size(), 1U) << describe(faults);
  EXPECT_EQ(faults[0].count, 1U);
  EXPECT_EQ(faults[0].thread[0], 5U);
  // Lane 4 receives and stores it; add and mul stand on one line, cvt two lines behind.
  const std::uint32_t line = faults[0].ptx_line;
  EXPECT_EQ(faults[0].detail, "sqrt of a = -1 (0xbf800000) is NaN, through PTX lines " +
                                  std::to_string(line + 3) + ", " + std::to_string(line + 3) +
                                  ", " + std::to_string(line + 4) + "; stored, PTX line " +
                                  std::to_string(line + 6));
}

TEST(Nancheck, InfinityThatTurnsIntoANanIsNamedWhereItOverflowed) {
  const std::vector<Fault> faults = NanRun{}.launch(
      "mul.f32 %f1, 0f7F7FFFFF, %f0;\nsub.f32 %f2, %f1, %f1;\nst.global.f32 [%d3], %f2;");
  ASSERT_EQ(faults.size(), 1U) << describe(faults);
  EXPECT_EQ(faults[0].kind, FaultKind::infinity_produced);
  EXPECT_THAT(faults[0].detail, HasSubstr("is +inf, through PTX line "));
}

TEST(Nancheck, MinusInfinityOfAnEmptyRowIsNamedBesideTheNan) {
  const std::vector<Fault> faults = NanRun{}.launch(
      "lg2.approx.f32 %f1, 0f00000000;\nsub.f32 %f2, %f1, %f1;\nst.global.f32 [%d3], %f2;");
  ASSERT_EQ(faults.size(), 1U) << describe(faults);
  EXPECT_EQ(faults[0].kind, FaultKind::nan_produced);
  EXPECT_THAT(faults[0].detail, HasSubstr("sub of a = -inf (0xff800000)"));
  EXPECT_THAT(faults[0].detail, HasSubstr("with an infinity since "));
}

TEST(Nancheck, NanOfAnEarlierLaunchIsTracedToIt) {
  NanRun run;
  const std::vector<Fault> first =
      run.launch("\n\nsqrt.rn.f32 %f1, 0fBF800000; st.global.f32 [%d2], %f1;");
  ASSERT_EQ(first.size(), 1U);
  const std::vector<Fault> second = run.launch("add.f32 %f1, %f0, %f0; st.global.f32 [%d3], %f1;");
  ASSERT_EQ(second.size(), 1U) << describe(second);
  EXPECT_EQ(second[0].kind, FaultKind::nan_produced);
  EXPECT_EQ(second[0].ptx_line, first[0].ptx_line);
  EXPECT_THAT(second[0].detail, HasSubstr("sqrt of a = -1"));
  EXPECT_EQ(second[0].address, run.results());
}

TEST(Nancheck, NanThatTheHostHasWrittenIsNamedByItsPlaceWhenItIsComputedWith) {
  std::vector<float> given(32, 1.0F);
  given[9] = kNan;
  NanRun run{given};
  EXPECT_THAT(run.launch("st.global.f32 [%d3], %f0;"), IsEmpty());
  NanRun other{given};
  const std::vector<Fault> faults =
      other.launch("add.f32 %f1, %f0, %f0; st.global.f32 [%d3], %f1;");
  ASSERT_EQ(faults.size(), 1U) << describe(faults);
  EXPECT_EQ(faults[0].kind, FaultKind::nan_read);
  EXPECT_EQ(faults[0].address, other.given() + 36);
  EXPECT_EQ(faults[0].allocation, other.given());
  EXPECT_EQ(faults[0].count, 1U);
}

/// The upper half of an infinity in f32, 0x7f80, would be a NaN in f16.
TEST(Nancheck, InfinityThatTheHostHasWrittenIsNoNan) {
  std::vector<float> given(32, 1.0F);
  given[9] = std::numeric_limits<float>::infinity();
  given[10] = -given[9];
  NanRun run{given};
  EXPECT_THAT(run.launch("add.f32 %f1, %f0, %f0; st.global.f32 [%d3], %f1;"), IsEmpty());
  NanRun other{given};
  const std::vector<Fault> faults =
      other.launch("sub.f32 %f1, %f0, %f0; st.global.f32 [%d3], %f1;");
  ASSERT_EQ(faults.size(), 1U) << describe(faults);
  EXPECT_EQ(faults[0].kind, FaultKind::nan_produced);
  EXPECT_EQ(faults[0].count, 2U);
}

TEST(SpecialValues, AreToldApartInEveryFormat) {
  EXPECT_EQ(classify(Type::f32, 0x7f7fffff), FloatClass::finite);
  EXPECT_EQ(classify(Type::f32, 0x7f800000), FloatClass::positive_infinity);
  EXPECT_EQ(classify(Type::f32, 0xff800001), FloatClass::nan);
  EXPECT_EQ(classify(Type::f16, 0x7bff), FloatClass::finite);
  EXPECT_EQ(classify(Type::f16, 0xfc00), FloatClass::negative_infinity);
  EXPECT_EQ(classify(Type::bf16, 0x7f80), FloatClass::positive_infinity);
  EXPECT_EQ(classify(Type::bf16, 0x7c01), FloatClass::finite);
  EXPECT_EQ(classify(Type::f64, 0x7ff0000000000000), FloatClass::positive_infinity);
  EXPECT_EQ(classify(Type::f64, 0xfff8000000000000), FloatClass::nan);
}

TEST(SpecialValues, MemoryForgetsWhatIsOverwrittenAndCopiesTheRest) {
  SpecialValueMemory memory;
  const auto origin = std::make_shared<const SpecialOrigin>();
  memory.set(0x100, origin);
  memory.set(0x102, origin);
  memory.copy(0x200, 0x100, 4);
  EXPECT_EQ(memory.find(0x202), origin);
  memory.forget(0x202, 1);
  EXPECT_EQ(memory.find(0x202), nullptr);
  EXPECT_EQ(memory.find(0x200), origin);
  memory.forget(0x100, 0);
  EXPECT_EQ(memory.find(0x100), origin);
}

}  // namespace
}  // namespace cpverify::sim
