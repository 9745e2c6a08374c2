// The launch's policy decides how mma.sync adds up. Rows of A are s s s 0 ..., B is s everywhere
// with s = 2^-12, C is 1: three products of 2^-24 and 1, see mma_accumulation_test.cpp.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/mma_accumulation.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

using testing::Each;

struct Form {
  const char* name;
  std::uint32_t scale;  ///< 2^-12 in the element type.
  bool is_k16;
};

std::vector<float> run_form(const Form& form, MmaAccumulation policy) {
  SimulatedDevice device;
  // Registers of A hold columns 2q and 2q + 1 for q = lane % 4, then those from 8 on.
  U32s a(32, 0);
  for (std::size_t lane = 0; lane < 32; lane += 4) {
    a[lane] = form.scale | (form.scale << 16);
    a[lane + 1] = form.scale;
  }
  const std::uint64_t input = device.upload(a);
  const std::uint64_t output = device.upload(U32s(128, 0));
  const std::string body = fmt::format(
      "mov.u32 %r31, %laneid; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r31, 4, %d1; "
      "ld.param.u64 %d2, [p1]; mad.wide.u32 %d2, %r31, 16, %d2;\n"
      "ld.global.u32 %r0, [%d1]; mov.u32 %r1, 0; mov.u32 %r2, {}; "
      "mov.u32 %r4, 0x3f800000; mov.u32 %r5, %r4; mov.u32 %r6, %r4; mov.u32 %r7, %r4;\n"
      "mma.sync.aligned.{} {{%r4, %r5, %r6, %r7}}, {}, {}, {{%r4, %r5, %r6, %r7}};\n"
      "st.global.u32 [%d2], %r4; st.global.u32 [%d2+4], %r5; st.global.u32 [%d2+8], %r6; "
      "st.global.u32 [%d2+12], %r7; ret;",
      form.scale | (form.scale << 16), form.name,
      form.is_k16 ? "{%r0, %r0, %r1, %r1}" : "{%r0, %r0}", form.is_k16 ? "{%r2, %r2}" : "{%r2}");
  device.load(kernel_text(2, body));
  LaunchRequest request = shape({1, 1, 1}, {32, 1, 1});
  request.mma_accumulation = policy;
  const LaunchResult result = device.run("k", request, Parameters{input, output});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  return device.download<float>(output, 128);
}

TEST(MmaPolicy, DecidesHowProductsAreAddedUp) {
  const std::vector<Form> forms{
      {"m16n8k16.row.col.f32.bf16.bf16.f32", 0x3980, true},
      {"m16n8k8.row.col.f32.bf16.bf16.f32", 0x3980, false},
      {"m16n8k16.row.col.f32.f16.f16.f32", 0x0c00, true},
      {"m16n8k8.row.col.f32.f16.f16.f32", 0x0c00, false},
  };
  for (const Form& form : forms) {
    EXPECT_THAT(run_form(form, MmaAccumulation::fma_chain), Each(1.0F)) << form.name;
    EXPECT_THAT(run_form(form, MmaAccumulation::pairwise), Each(1.0F + 0x1p-22F)) << form.name;
    EXPECT_THAT(run_form(form, MmaAccumulation::truncating), Each(1.0F + 0x1p-23F)) << form.name;
  }
}

}  // namespace
}  // namespace cpverify::sim
