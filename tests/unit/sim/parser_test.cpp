#include "sim/isa/parser.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/program.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// The message of the InputError that loading gives; "" when it loads.
std::string load_error(const std::string& ptx) {
  GlobalMemory memory;
  try {
    const Program program{ptx, "bad.ptx", memory, 0};
  } catch (const InputError& error) {
    EXPECT_EQ(memory.live_bytes(0), 0U) << "variables of a refused module stay allocated";
    return error.what();
  }
  return "";
}

TEST(Parser, SpacesBracesAndSeveralStatementsPerLine) {
  const auto got = run_lanes<std::uint32_t>(
      "ld.param.u64 %d1, [ p0 + 0 ] ; ld.global.b32 { %r1 }, [ %d1 + 0 ]; /* comment */ "
      "{ .reg .pred complete; .reg .b32 t; setp.eq.u32 complete, %r1, 0x2A;\n"
      " @!complete bra skip; add.u32 %r1, %r1, 0b101; skip: mov.u32 t, 017; "
      "add.u32 %r1, %r1, t; }\n"
      "{ .reg .b32 t; bra skip; trap; skip: mov.u32 t, 1U; add.u32 %out, %r1, t; } // end",
      U32s{42});
  EXPECT_EQ(got[0], 42U + 5 + 15 + 1);
}

TEST(Parser, InnerScopesHideOuterRegisters) {
  EXPECT_EQ(
      run_lanes<std::uint32_t>(".reg .b32 x; mov.u32 x, 1; { .reg .b32 x; mov.u32 x, 2; "
                               "mov.u32 %r1, x; } shl.b32 %r2, x, 8; or.b32 %out, %r1, %r2;")[0],
      0x102U);
}

TEST(Parser, FloatConstants) {
  EXPECT_EQ(run_lanes<std::uint32_t>("mov.f32 %f1, 0fBF800000; add.f32 %out, %f1, 2.5;")[0],
            bits_of({1.5F})[0]);
  EXPECT_EQ(run_lanes<std::uint64_t>("mov.b64 %out, 0d3FF0000000000000;")[0], 0x3ff0000000000000U);
}

TEST(Parser, DebugSectionsAndPragmasMeanNothing) {
  EXPECT_EQ(load_error(module_text(".file 1 \"a.cu\", 123, 45\n.pragma \"nounroll\";\n.entry k() { "
                                   ".pragma \"nounroll\"; ret; }\n.section .debug_str { $L: .b8 "
                                   "95,90 .b64 x }\n.section .debug_loc { }")),
            "");
}

TEST(Parser, InnermostLineIsReported) {
  SimulatedDevice device;
  device.load(
      module_text(".entry k() {\n.loc 1 10 3\n.loc 2 20 5, function_name $L__info_string0, "
                  "inlined_at 1 10 3\ntrap;\n}\n.file 1 \"a.cu\"\n.file 2 \"b.h\""));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].source_file, "b.h");
  EXPECT_EQ(result.faults[0].source_line, 20U);
  EXPECT_EQ(result.faults[0].ptx_line, 7U);
}

TEST(Parser, RefusalsNameThePlace) {
  const std::string unknown = load_error(module_text(".entry k() {\n  bogus.f32 %r1;\n}"));
  EXPECT_THAT(unknown, StartsWith("bad.ptx:5:3: instruction 'bogus.f32' is not supported"));
  const std::string form = load_error(module_text(".entry k() {\n  add.rs.f32 %f1, %f2, %f3;\n}"));
  EXPECT_THAT(form, StartsWith("bad.ptx:5:3: instruction form 'add.rs.f32' is not supported"));
  EXPECT_THAT(form, HasSubstr("floating-point-instructions-add"));
  EXPECT_THAT(load_error(kernel_text(0, "atom.global.add.s64 %d1, [%d2], %d3;")),
              HasSubstr("parallel-synchronization-and-communication-instructions-atom"));
}

TEST(Parser, BadTextIsAnInputError) {
  const std::vector<std::string> bodies{
      "add.s32 %r1, %r2;",                           // An operand is missing.
      "add.s32 %r1, %r2, %r3, %r4;",                 // One too many.
      "add.s32 %r1, %r2, %nosuch;",                  // Not declared.
      "add.s32 %r1, %r2, %r32;",                     // Beyond the declared range.
      "add.s32 %r1, %r2, %r01;",                     // Not how registers are numbered.
      "add.s32 5, %r2, %r3;",                        // Target is a constant.
      "add.s32 %r1, %h2, %r3;",                      // Source too narrow.
      "add.s32 %d1, %r2, %r3;",                      // Target too wide for an addition.
      "add.s32 %r1, %r2, 0f3F800000 %r3;",           // No comma.
      "add.f32 %f1, %f2, 1;",                        // Integer where a float belongs.
      "mov.b64 %d1, 0f3F800000;",                    // Single where 64 bits belong.
      "@%r1 mov.u32 %r1, 0;",                        // Guard is no predicate.
      "setp.eq.s32 %r1, %r2, %r3;",                  // Target must be a predicate.
      "setp.lt.b32 %p1, %r2, %r3;",                  // Bits have no order.
      "bra NOWHERE;",                                // No such label.
      "A: A: ret;",                                  // Twice.
      "{ X: ret; } bra X;",                          // Out of reach.
      "ld.global.u32 %r1, [%r2];",                   // Global address of 32 bits.
      "ld.shared.u32 %r1, [nosuch];",                // Not declared.
      "ld.global.v2.u32 {%r1}, [%d1];",              // One register for two.
      "ld.global.v4.u64 {%d1,%d2,%d3,%d4}, [%d1];",  // 32 bytes.
      "ld.global.u32 %r1, %d1;",                     // No brackets.
      "ld.param.u32 %r1, [p9];",                     // No such parameter.
      "mov.u32 %r1, %smid;",                         // Not deterministic.
      "call nosuch;",                                // Not defined.
      "st.const.u32 [%d1], %r1;",                    // Constant.
      ".reg .b32 %q<0>;",                            // Empty range.
      ".reg .nosuch %q;",                            // No such type.
      ".shared .align 3 .b8 x[4];",                  // Not a power of two.
      ".shared .b8 x[99999999999];",                 // Too large.
      ".local .b8 x[1000000]; mov.u64 %d1, x;",      // More than a thread may have.
      ".branchtargets A;",                           // Not supported.
      "mov.u32 %r1, 0xfffffffffffffffff;",           // More than 64 bits.
      "mov.f32 %f1, 0f3F8;",                         // Too few digits.
      "mov.u32 %r1, %r2",                            // No semicolon.
      "} }",                                         // One brace too many.
      "{",                                           // One too few.
      "mov.u32 %r1, \"x\";",                         // A string.
      "/* never ends",                               //
      "\x01",                                        // Not PTX at all.
  };
  for (const std::string& body : bodies) {
    EXPECT_THAT(load_error(kernel_text(1, body)), StartsWith("bad.ptx:")) << body;
  }
  EXPECT_THAT(load_error(module_text(".address_size 32")), StartsWith("bad.ptx:"));
  EXPECT_THAT(load_error(module_text(".entry k(.param .u32 a")), StartsWith("bad.ptx:"));
  EXPECT_THAT(load_error("hello"), StartsWith("bad.ptx:1:1: "));
  EXPECT_THAT(load_error(module_text(".global .b8 x[];")), StartsWith("bad.ptx:"));
  EXPECT_THAT(load_error(module_text(".global .u32 x = {1, 2};")), StartsWith("bad.ptx:"));
}

TEST(Parser, RefusesTwoFunctionsOfOneName) {
  EXPECT_THAT(load_error(module_text(".entry k() { ret; }\n.entry k() { ret; }")),
              HasSubstr("function 'k' is defined twice"));
  EXPECT_THAT(load_error(module_text(".func k();\n.func k() { ret; }\n.entry e() { ret; }")),
              testing::IsEmpty());
}

TEST(Parser, EveryPrefixOfARealKernelIsAcceptedOrRefused) {
  const std::string ptx = read_ptx("lse_merge.nvcc.ptx");
  for (std::size_t size = 0; size < ptx.size(); size += 97) {
    const std::string error = load_error(ptx.substr(0, size));
    EXPECT_TRUE(error.empty() || error.starts_with("bad.ptx:")) << size;
  }
}

TEST(Parser, HostileNestingEndsInAnError) {
  EXPECT_THAT(load_error(kernel_text(0, std::string(100000, '{'))), HasSubstr("nested too deeply"));
  // Each function calls the next twice: 2^40 copies if nothing stopped it.
  std::string calls = ".func f40() { ret; }\n";
  for (int i = 39; i >= 0; --i) {
    calls += ".func f" + std::to_string(i) + "() { call.uni f" + std::to_string(i + 1) +
             "; call.uni f" + std::to_string(i + 1) + "; ret; }\n";
  }
  EXPECT_THAT(load_error(module_text(calls + ".entry k() { call.uni f10; ret; }")),
              StartsWith("bad.ptx:"));
  EXPECT_THAT(load_error(module_text(".func f() { call.uni f; ret; }\n.entry k() { call.uni f; }")),
              HasSubstr("recursive"));
}

TEST(Calls, PassArgumentsAndResultsThroughParam) {
  SimulatedDevice device;
  const std::uint64_t out = device.allocate(8);
  device.load(module_text(
      ".func (.param .b32 result) poly(.param .b32 x, .param .align 4 .b8 pair[8]);\n"
      ".func (.param .b32 result) poly(.param .b32 x, .param .align 4 .b8 pair[8]) {\n"
      ".reg .b32 %r<9>; .reg .pred %p<2>; ld.param.u32 %r1, [x]; ld.param.u32 %r2, [pair];\n"
      "ld.param.u32 %r3, [pair+4]; setp.eq.u32 %p1, %r1, 0; st.param.b32 [result], %r3;\n"
      "@%p1 ret; mad.lo.u32 %r4, %r1, %r2, %r3; st.param.b32 [result], %r4; ret; }\n"
      ".entry k(.param .u64 p0) { .reg .b32 %r<9>; .reg .b64 %d<9>; ld.param.u64 %d1, [p0];\n"
      "mov.u32 %r1, %tid.x;\n"
      "{ .param .b32 a; .param .align 4 .b8 b[8]; .param .b32 c; st.param.b32 [a], %r1;\n"
      "st.param.b32 [b], 10; st.param.b32 [b+4], 7; call.uni (c), poly, (a, b);\n"
      "ld.param.b32 %r2, [c]; }\n"
      "mad.wide.u32 %d2, %r1, 4, %d1; st.global.u32 [%d2], %r2; }"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {2, 1, 1}), Parameters{out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::uint32_t>(out, 2), (U32s{7, 17}));
}

TEST(DynamicShared, BeginsBehindTheStaticVariables) {
  SimulatedDevice device;
  const std::uint64_t out = device.allocate(8);
  device.load(
      module_text(".extern .shared .align 128 .b8 dynamic[];\n.shared .align 4 .b8 unused[1000];\n"
                  ".entry k(.param .u64 p0) { .reg .b32 %r<9>; .reg .b64 %d<9>; .shared .align 4 "
                  ".b8 fixed[20];\n"
                  "ld.param.u64 %d1, [p0]; mov.u32 %r1, dynamic; mov.u32 %r2, fixed; st.shared.u8 "
                  "[%r2+19], %r1;\n"
                  "st.shared.u32 [dynamic+60], %r1; st.global.v2.u32 [%d1], {%r1, %r2}; }"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}, 64), Parameters{out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::uint32_t>(out, 2), (U32s{128, 0}));
  const LaunchResult small = device.run("k", shape({1, 1, 1}, {1, 1, 1}, 60), Parameters{out});
  EXPECT_EQ(small.faults.size(), 1U);
}

TEST(InstructionTable, NamesMatchTheirRows) {
  const SourceLocation where{"t", 1, 1};
  EXPECT_EQ(match_syntax("add.s32", where).op, Op::add_int);
  EXPECT_EQ(match_syntax("add.rn.ftz.f32", where).op, Op::add_f32);
  EXPECT_EQ(match_syntax("mov.pred", where).op, Op::mov_pred);
  EXPECT_EQ(match_syntax("setp.lt.and.f32", where).modifiers.bool_op, BoolOp::and_op);
  const Form load = match_syntax("ld.global.nc.L1::no_allocate.L2::128B.v4.f32", where);
  EXPECT_EQ(load.op, Op::ld);
  EXPECT_EQ(load.modifiers.vector, 4);
  EXPECT_EQ(load.modifiers.type, Type::f32);
  EXPECT_EQ(match_syntax("ld.acquire.gpu.shared::cta.u32", where).modifiers.space, Space::shared);
  EXPECT_EQ(match_syntax("atom.relaxed.gpu.global.cas.b64", where).op, Op::atom_cas);
  const Form convert = match_syntax("cvt.rn.bf16x2.f32", where);
  EXPECT_EQ(convert.op, Op::cvt_bf16x2);
  EXPECT_THROW((void)match_syntax("add", where), InputError);
  EXPECT_THROW((void)match_syntax("add.s32.s32", where), InputError);
  EXPECT_THROW((void)match_syntax("", where), InputError);
  EXPECT_THROW((void)match_syntax("mov.b32/pack", where), InputError);
}

TEST(Parser, RefusesBranchTargetsWithoutNameOrLabels) {
  EXPECT_THAT(load_error(kernel_text(0, ".branchtargets A; A: ret;")),
              HasSubstr("'.branchtargets' needs a label before it"));
  EXPECT_THAT(load_error(kernel_text(0, "L: .branchtargets A; brx.idx %r1, L; ret;")),
              HasSubstr("label 'A' is not in reach"));
  EXPECT_THAT(load_error(kernel_text(0, "A: brx.idx %r1, A; ret;")),
              HasSubstr("'A' is no .branchtargets that is in reach"));
  EXPECT_THAT(load_error(kernel_text(0, "A: L: .branchtargets A; L: brx.idx %r1, L; ret;")),
              HasSubstr("'L' "));
  EXPECT_THAT(load_error(kernel_text(0, "L: .branchtargets ; ret;")), HasSubstr("expected"));
  EXPECT_THAT(load_error(kernel_text(0, "A: L: .branchtargets A; brx.idx L; ret;")),
              HasSubstr("brx.idx takes an index and the name"));
}

}  // namespace
}  // namespace cpverify::sim
