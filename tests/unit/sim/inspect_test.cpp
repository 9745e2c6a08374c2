#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "sim/inspect/module_facts.hpp"
#include "sim/isa/kernel_info.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

std::string module(std::string_view body, std::string_view before = "") {
  return std::string{".version 7.5\n.target sm_80\n.address_size 64\n"} + std::string{before} +
         "\n.visible .entry k()\n{\n" + std::string{body} + "\n}\n";
}

std::string refusal(const std::string& ptx) {
  try {
    (void)inspect_module(ptx, "bad.ptx");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

// a at 0; b needs 8-byte alignment, so it is at 8; c at 16 to 19. The array of 3 floats takes 12
// bytes of shared memory, rounded up to 16; the two bytes of local memory likewise.
TEST(InspectModule, TellsParametersMemoryAndThreads) {
  const ModuleFacts facts = inspect_module(
      ".version 7.5\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u32 a, .param .u64 b, .param .b8 c[3])\n.maxntid 8, 4, 1\n"
      "{ .reg .b32 %r<2>; .shared .align 4 .b32 tile[3]; .local .b8 frame[2];\n"
      " mov.u32 %r1, tile; mov.u32 %r1, frame; ret; }",
      "a.ptx");
  ASSERT_THAT(facts.entries, SizeIs(1));
  const KernelInfo& info = facts.entries[0].info;
  EXPECT_EQ(info.name, "k");
  EXPECT_EQ(info.static_shared_bytes, 16U);
  EXPECT_EQ(info.local_bytes, 16U);
  EXPECT_EQ(info.max_threads, 32U);
  ASSERT_THAT(info.parameters, SizeIs(3));
  EXPECT_EQ(info.parameters[0].offset_bytes, 0U);
  EXPECT_EQ(info.parameters[1].offset_bytes, 8U);
  EXPECT_EQ(info.parameters[2].offset_bytes, 16U);
  EXPECT_EQ(info.parameters[2].size_bytes, 3U);
  EXPECT_EQ(info.parameter_bytes, 19U);
}

// Two calls of a function of two instructions: 2 call.uni, 2 add, 2 ret of f, 1 ret of k.
TEST(InspectModule, CountsInstructionsWhereFunctionsAreCalled) {
  const ModuleFacts facts =
      inspect_module(module("call.uni f, (); call.uni f, (); ret;",
                            ".func f() { .reg .b32 %r<2>; add.s32 %r1, %r1, 1; ret; }"),
                     "a.ptx");
  ASSERT_THAT(facts.entries, SizeIs(1));
  EXPECT_EQ(facts.entries[0].instructions, 7U);
  EXPECT_EQ(facts.entries[0].opcodes.at("call.uni"), 2U);
  EXPECT_EQ(facts.entries[0].opcodes.at("add.s32"), 2U);
  EXPECT_EQ(facts.entries[0].opcodes.at("ret"), 3U);
}

// Lines: 5 is the brace, 6 the first of the body.
TEST(InspectModule, ListsEveryUnsupportedInstructionByPlace) {
  const ModuleFacts facts = inspect_module(module(".reg .b32 %r<4>; .reg .f32 %d<4>;\n"
                                                  "add.s32 %r1, %r1, 1;\n"
                                                  "  add.rs.f32 %d1, %d2,\n\t%d3;\n"
                                                  "pmevent 1; add.rs.f32 %d1, %d1, %d1;\n"
                                                  "mov.u32 %r1, %pm0;\n"
                                                  "ret;"),
                                           "a.ptx");
  ASSERT_THAT(facts.unsupported, SizeIs(4));
  EXPECT_EQ(facts.unsupported[0].line, 9U);
  EXPECT_EQ(facts.unsupported[0].column, 3U);
  EXPECT_EQ(facts.unsupported[0].text, "add.rs.f32 %d1, %d2, %d3;");
  EXPECT_EQ(facts.unsupported[0].section, "floating-point-instructions-add");
  EXPECT_EQ(facts.unsupported[1].text, "pmevent 1;");
  EXPECT_EQ(facts.unsupported[1].section, "miscellaneous-instructions-pmevent");
  EXPECT_THAT(facts.unsupported[1].message, StartsWith("a.ptx:11:1: "));
  // The same form again is refused again.
  EXPECT_EQ(facts.unsupported[2].column, 12U);
  EXPECT_THAT(facts.unsupported[3].message, HasSubstr("'%pm0'"));
}

TEST(InspectModule, ListsAnInstructionOfAFunctionThatIsCalledTwiceOnce) {
  EXPECT_THAT(
      inspect_module(
          module("call.uni f, (); call.uni f, (); ret;", ".func f() { pmevent 1; ret; }"), "a.ptx")
          .unsupported,
      SizeIs(1));
}

TEST(InspectModule, ListsSuffixesThatARowDoesNotCombine) {
  const ModuleFacts facts = inspect_module(
      module(".reg .b32 %r<2>; .reg .b64 %a<2>; add.sat.u32 %r1, %r1, 1; ret;"), "a.ptx");
  ASSERT_THAT(facts.unsupported, SizeIs(1));
  EXPECT_EQ(facts.unsupported[0].text, "add.sat.u32 %r1, %r1, 1;");
  EXPECT_EQ(facts.unsupported[0].section, "integer-arithmetic-instructions-add");
}

TEST(InspectModule, ShortensLongText) {
  std::string operands = "1";
  for (int i = 0; i < 100; ++i) operands += ", 1";
  const ModuleFacts facts = inspect_module(module("pmevent " + operands + "; ret;"), "a.ptx");
  ASSERT_THAT(facts.unsupported, SizeIs(1));
  EXPECT_EQ(facts.unsupported[0].text.size(), 103U);  // 100 and "...".
}

TEST(InspectModule, RefusesTextWithoutKernel) {
  EXPECT_EQ(refusal(""), "bad.ptx: holds no .entry with a body");
  EXPECT_THAT(refusal(".version 7.5\n.target sm_80\n.func f() { ret; }"), HasSubstr("no .entry"));
  EXPECT_THAT(refusal(std::string{"\x7f\x45LF\0\0", 6}), StartsWith("bad.ptx:1:1: "));
}

TEST(InspectModule, RefusesEveryTruncationOfAKernelWithItsPlace) {
  const std::string whole = read_ptx("kv_scatter.nvcc.ptx");
  const std::size_t end = whole.rfind('}');
  for (std::size_t size = whole.find(".entry"); size < end; size += 7) {
    EXPECT_THAT(refusal(whole.substr(0, size)), StartsWith("bad.ptx:")) << size << " bytes";
  }
}

// Function i calls i + 1 twice: 2^30 bodies without one instruction that is executed.
TEST(InspectModule, RefusesCallsThatDoubleThirtyTimes) {
  std::string functions = ".func f30() { }\n";
  for (int i = 29; i >= 0; --i) {
    functions +=
        fmt::format(".func f{0}() {{ call.uni f{1}, (); call.uni f{1}, (); }}\n", i, i + 1);
  }
  EXPECT_THAT(refusal(module("call.uni f0, (); ret;", functions)), HasSubstr("four million"));
}

TEST(InspectModule, RefusesVariablesThatDoNotLoad) {
  EXPECT_THAT(refusal(module("ret;", ".global .b8 big[2000000000];")), HasSubstr("1 GiB"));
}

TEST(InspectModule, KnowsEveryKernelOfTheTests) {
  std::vector<std::string> names;
  const std::filesystem::path folder{CPVERIFY_SOURCE_DIR "/tests/data/ptx"};
  for (const auto& file : std::filesystem::directory_iterator{folder}) {
    names.push_back(file.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  EXPECT_GE(names.size(), 20U);
  for (const std::string& name : names) {
    const ModuleFacts facts = inspect_module(read_ptx(name), name);
    EXPECT_THAT(facts.unsupported, IsEmpty()) << name;
    for (const EntryFacts& entry : facts.entries) EXPECT_GT(entry.instructions, 10U) << name;
  }
}

}  // namespace
}  // namespace cpverify::sim
