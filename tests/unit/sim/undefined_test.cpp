#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// Initcheck by propagation: undefined values may be moved and computed with, and are reported
/// where something depends on them.
namespace cpverify::sim {
namespace {

using testing::HasSubstr;

/// %d0 512 written bytes (words of 1), %d1 512 unwritten ones, %d2 and %d3 the lane's words there,
/// %r1 lane, %r2 an undefined word, %r3 the word 1, %r9 a free place in shared memory.
constexpr const char* kPreamble =
    ".shared .align 16 .b8 s[512];\n"
    "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r1, %laneid;\n"
    "mad.wide.u32 %d2, %r1, 4, %d0; mad.wide.u32 %d3, %r1, 4, %d1;\n"
    "mov.u32 %r9, s; mad.lo.u32 %r9, %r1, 4, %r9;\n"
    "ld.global.u32 %r2, [%d3+128]; ld.global.u32 %r3, [%d2+128];\n";

struct Outcome {
  LaunchResult result;
  std::uint64_t unwritten = 0;
};

Outcome run_body(const std::string& body, std::uint32_t threads = 32) {
  SimulatedDevice device;
  device.load(kernel_text(2, kPreamble + body + "\nret;"));
  const std::uint64_t words = device.upload(std::vector<std::uint32_t>(128, 1));
  Outcome outcome;
  outcome.unwritten = device.allocate(512);
  outcome.result =
      device.run("k", shape({1, 1, 1}, {threads, 1, 1}), Parameters{words, outcome.unwritten});
  return outcome;
}

constexpr const char* kStore = "st.global.u32 [%d2], %r4;";
constexpr const char* kMma =
    "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3}, {%r4,%r3}, {%r3}, "
    "{%f4,%f4,%f4,%f4};";

/// A use of %r4, and what the report calls it.
struct Use {
  std::string name;
  std::string code;
  std::string text;
};

std::ostream& operator<<(std::ostream& out, const Use& use) {
  return out << use.name;
}

class UndefinedUse : public testing::TestWithParam<Use> {};

TEST_P(UndefinedUse, IsReportedAndItsDefinedTwinIsNot) {
  const std::string prepare = "mov.f32 %f4, 0f00000000; and.b32 %r8, %r1, 0;";
  const Outcome bad = run_body(prepare + "add.u32 %r4, %r2, 1;" + GetParam().code);
  ASSERT_FALSE(bad.result.faults.empty());
  const Fault& fault = bad.result.faults[0];
  EXPECT_EQ(fault.kind, FaultKind::uninitialised_read) << describe(bad.result.faults);
  EXPECT_EQ(fault.space, MemorySpace::global);
  EXPECT_EQ(fault.address, bad.unwritten + 128);
  EXPECT_EQ(fault.allocation, bad.unwritten);
  EXPECT_EQ(fault.allocation_bytes, 512U);
  EXPECT_EQ(fault.size_bytes, 4U);
  EXPECT_THAT(fault.detail, HasSubstr("used as " + GetParam().text));
  // The line of the load: the text begins with two lines of the module and the registers.
  EXPECT_THAT(fault.detail, HasSubstr("; loaded, PTX line "));
  const Outcome good = run_body(prepare + "add.u32 %r4, %r3, 1;" + GetParam().code);
  EXPECT_TRUE(good.result.faults.empty()) << describe(good.result.faults);
}

INSTANTIATE_TEST_SUITE_P(
    Uses, UndefinedUse,
    testing::Values(
        Use{"address",
            "and.b32 %r4, %r4, 2; mad.wide.u32 %d5, %r4, 4, %d0; ld.global.u32 %r5, [%d5];",
            "an address"},
        Use{"branch", "setp.gt.u32 %p1, %r4, 9; @%p1 bra OUT; st.global.u32 [%d2], %r1; OUT:",
            "the condition of a branch"},
        Use{"guard", "setp.gt.u32 %p1, %r4, 9; @%p1 st.global.u32 [%d2], %r1;", "a guard"},
        Use{"store", kStore, "a value stored to global memory"},
        Use{"atomic", "red.global.add.u32 [%d2], %r4;", "an operand of an atomic"},
        Use{"matrix", kMma, "an input of a matrix product"},
        Use{"shuffle", "min.u32 %r4, %r4, 3; shfl.sync.idx.b32 %r5, %r1, %r4, 31, -1;",
            "an operand that says which lanes"},
        Use{"barrier",
            "and.b32 %r4, %r4, 1; and.b32 %r4, %r4, 2; add.u32 %r4, %r4, 0; bar.sync %r4;",
            "an operand that says which lanes"}),
    [](const auto& instance) { return instance.param.name; });

/// Code that makes %r4 from the undefined %r2 (and the defined %r3), which is then stored.
struct Flow {
  std::string name;
  std::string code;
  std::uint64_t undefined_lanes;  ///< In which %r4 is undefined.
};

std::ostream& operator<<(std::ostream& out, const Flow& flow) {
  return out << flow.name;
}

class UndefinedFlowThrough : public testing::TestWithParam<Flow> {};

TEST_P(UndefinedFlowThrough, MarksTheLanesThatDependOnIt) {
  const Outcome run = run_body(GetParam().code + kStore);
  std::uint64_t count = 0;
  for (const Fault& fault : run.result.faults) {
    EXPECT_EQ(fault.kind, FaultKind::uninitialised_read);
    count += fault.count;
  }
  EXPECT_EQ(count, GetParam().undefined_lanes) << describe(run.result.faults);
}

INSTANTIATE_TEST_SUITE_P(
    Instructions, UndefinedFlowThrough,
    testing::Values(
        Flow{"copy", "mov.u32 %r4, %r2;", 32},
        Flow{"overwritten", "mov.u32 %r4, %r2; mov.u32 %r4, %r3;", 0},
        Flow{"sum", "add.u32 %r4, %r3, %r2;", 32},
        Flow{"chosen_side", "setp.lt.u32 %p1, %r1, 5; selp.u32 %r4, %r2, %r3, %p1;", 5},
        Flow{"side_by_undefined_predicate", "setp.lt.u32 %p1, %r2, 5; selp.u32 %r4, %r3, %r3, %p1;",
             32},
        Flow{"guarded_move", "setp.lt.u32 %p1, %r1, 5; mov.u32 %r4, %r2; @%p1 mov.u32 %r4, %r3;",
             27},
        Flow{"move_with_undefined_guard",
             "mov.u32 %r4, 0; setp.lt.u32 %p1, %r2, 5; @%p1 mov.u32 %r4, %r3;", 32},
        Flow{"and_with_zero", "and.b32 %r4, %r2, 0;", 0},
        Flow{"and_with_a_mask", "and.b32 %r4, %r2, 255;", 32},
        Flow{"or_with_ones", "or.b32 %r4, -1, %r2;", 0},
        Flow{"or_with_zero", "or.b32 %r4, 0, %r2;", 32},
        Flow{"xor_with_itself", "xor.b32 %r4, %r2, %r2;", 0},
        Flow{"difference_with_itself", "sub.u32 %r4, %r2, %r2;", 0},
        Flow{"product_with_zero", "mul.lo.u32 %r4, %r2, 0;", 0},
        Flow{"product", "mul.lo.u32 %r4, %r2, %r3;", 32},
        Flow{"permuted_away", "prmt.b32 %r4, %r2, %r3, 0x7654;", 0},
        Flow{"permuted", "prmt.b32 %r4, %r2, %r3, 0x7650;", 32},
        Flow{"shifted_out", "shl.b32 %r5, %r2, 16; shr.u32 %r5, %r5, 16; shr.u32 %r4, %r5, 16;", 0},
        Flow{"field_beside", "prmt.b32 %r5, %r2, %r3, 0x1054; bfe.u32 %r4, %r5, 4, 8;", 0},
        Flow{"field", "prmt.b32 %r5, %r2, %r3, 0x1054; bfe.u32 %r4, %r5, 9, 8;", 32},
        Flow{"packed_and_unpacked", "mov.b64 %d9, {%r2, %r3}; mov.b64 {%r5, %r4}, %d9;", 0},
        Flow{"low_half_of_a_pair", "mov.b64 %d9, {%r2, %r3}; mov.b64 {%r4, %r5}, %d9;", 32},
        Flow{"narrowed", "mov.b64 %d9, {%r3, %r2}; cvt.u32.u64 %r4, %d9;", 0},
        Flow{"shared_memory", "st.shared.u32 [%r9], %r2; ld.shared.u32 %r4, [%r9];", 32},
        Flow{"written_again",
             "st.shared.u32 [%r9], %r2; st.shared.u32 [%r9], %r3; ld.shared.u32 %r4, [%r9];", 0},
        Flow{"one_byte_in_memory",
             "st.shared.u32 [%r9], %r3; cvt.u16.u32 %h1, %r2; st.shared.u8 [%r9+1], %h1; "
             "ld.shared.u8 %h2, [%r9]; cvt.u32.u16 %r4, %h2;",
             0},
        Flow{"from_the_lane_above",
             "shl.b32 %r5, %r1, 2; setp.eq.u32 %p1, %r1, 7; "
             "selp.u32 %r5, %r2, %r3, %p1; shfl.sync.down.b32 %r4, %r5, 1, 31, -1;",
             1},
        Flow{"vote_over_one_undefined_lane",
             "setp.eq.u32 %p1, %r1, 7; "
             "selp.u32 %r5, %r2, %r3, %p1; setp.gt.u32 %p2, %r5, 0; "
             "vote.sync.ballot.b32 %r4, %p2, -1;",
             32},
        Flow{"transposed",
             "setp.eq.u32 %p1, %r1, 4; selp.u32 %r5, %r2, %r3, %p1; "
             // Lane 4 holds elements 0 and 1 of row 1, that is column 1 of rows 0 and 1.
             "movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;",
             2},
        Flow{"halves_apart",
             "prmt.b32 %r5, %r2, %r3, 0x1054; add.f16x2 %r5, %r5, %r3; "
             "and.b32 %r4, %r5, 65535;",
             0}),
    [](const auto& instance) { return instance.param.name; });

TEST(Undefined, RegisterThatWasNeverWrittenIsNamed) {
  const Outcome run = run_body("add.u32 %r4, %r30, 1; st.global.u32 [%d2], %r4;");
  ASSERT_EQ(run.result.faults.size(), 1U);
  EXPECT_EQ(run.result.faults[0].space, MemorySpace::registers);
  EXPECT_EQ(run.result.faults[0].count, 32U);
  EXPECT_EQ(run.result.faults[0].detail,
            "used as a value stored to global memory; register %r30 has never been written");
}

TEST(Undefined, GuardThatWasNeverWrittenIsReportedEvenWhenItKeepsAllLanesOut) {
  for (const std::string guard : {"@%p9 ", "@!%p9 "}) {
    const Outcome run = run_body(guard + "st.global.u32 [%d2], %r3;");
    ASSERT_EQ(run.result.faults.size(), 1U);
    EXPECT_EQ(run.result.faults[0].detail, "used as a guard; register %p9 has never been written");
  }
}

TEST(Undefined, RegisterWrittenOnOneSideOfABranchIsUndefinedOnTheOther) {
  const std::string code =
      "setp.lt.u32 %p1, %r1, 12; @%p1 bra ELSE; mov.u32 %r30, 4; ELSE:"
      "add.u32 %r4, %r30, 1;";
  const Outcome all = run_body(code + "st.global.u32 [%d2], %r4;");
  ASSERT_EQ(all.result.faults.size(), 1U);
  EXPECT_EQ(all.result.faults[0].count, 12U);
  // Only those that wrote it use it.
  const Outcome some = run_body(code + "@!%p1 st.global.u32 [%d2], %r4;");
  EXPECT_TRUE(some.result.faults.empty()) << describe(some.result.faults);
}

TEST(Undefined, PaddingMayBeCopiedAround) {
  // A lane's word has two written bytes; it goes through a register and shared memory as a whole,
  // and only the written half is used.
  const Outcome run = run_body(
      "cvt.u16.u32 %h1, %r3; st.global.u16 [%d3], %h1; ld.global.u32 %r5, [%d3]; "
      "st.shared.u32 [%r9], %r5; ld.shared.u16 %h2, [%r9]; st.global.u16 [%d2], %h2;");
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
}

TEST(Undefined, MatrixLoadsAreExactToTheByte) {
  // Rows of 16 bytes by lanes 0 to 7; the row of lane 3 is not written. Its words are those of
  // lanes 12 to 15, and with .trans halves 3 of all lanes l with l % 4 == 1.
  const std::string fill =
      "mul.lo.u32 %r5, %r1, 16; mov.u32 %r6, s; and.b32 %r5, %r5, 127; add.u32 %r6, %r6, %r5; "
      "setp.ne.u32 %p1, %r1, 3; setp.lt.and.u32 %p1, %r1, 8, %p1; "
      "@%p1 st.shared.v4.u32 [%r6], {%r3, %r3, %r3, %r3};";
  const Outcome straight =
      run_body(fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r6];" + kStore);
  ASSERT_EQ(straight.result.faults.size(), 1U);
  EXPECT_EQ(straight.result.faults[0].count, 4U);
  EXPECT_EQ(straight.result.faults[0].thread[0], 12U);
  EXPECT_EQ(straight.result.faults[0].address, 48U);
  const Outcome turned =
      run_body(fill + "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r4}, [%r6];" + kStore);
  ASSERT_EQ(turned.result.faults.size(), 1U);
  EXPECT_EQ(turned.result.faults[0].count, 8U);
  EXPECT_EQ(turned.result.faults[0].thread[0], 1U);
}

TEST(Undefined, OneUseIsOneReportPerInstruction) {
  const Outcome run = run_body(
      "mov.u32 %r6, 0; LOOP: ld.global.u32 %r4, [%d3+256]; setp.gt.u32 %p1, %r4, 7; "
      "@%p1 add.u32 %r6, %r6, 1; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r3, 0; @%p2 bra LOOP; "
      "st.global.u32 [%d2], %r6; st.global.u32 [%d2], %r6;");
  ASSERT_EQ(run.result.faults.size(), 2U) << describe(run.result.faults);
  EXPECT_EQ(run.result.faults[0].count, 32U);
}

TEST(Undefined, CountsAndBytesAreThoseOfAnUnfollowedRun) {
  // The same instructions; in one run the first load meets unwritten bytes that nobody uses.
  const std::string body = "ld.global.u32 %r5, [%d3]; mov.u32 %r5, %r3; st.global.u32 [%d2], %r5;";
  const Outcome followed = run_body(body);
  SimulatedDevice device;
  device.load(kernel_text(2, kPreamble + body + "\nret;"));
  const std::uint64_t words = device.upload(std::vector<std::uint32_t>(128, 1));
  const std::uint64_t others = device.upload(std::vector<std::uint32_t>(128, 1));
  const LaunchResult plain =
      device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{words, others});
  EXPECT_TRUE(followed.result.faults.empty());
  EXPECT_EQ(followed.result.warp_instructions, plain.warp_instructions);
  EXPECT_EQ(followed.result.thread_instructions, plain.thread_instructions);
}

}  // namespace
}  // namespace cpverify::sim
