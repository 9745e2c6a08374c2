#include "sim/inspect/instruction_page.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/isa/manual_section.hpp"

namespace cpverify::sim {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(InstructionPage, IsTheOneThatIsCommitted) {
  std::ifstream file{std::string{CPVERIFY_SOURCE_DIR} + "/docs/ptx.md", std::ios::binary};
  const std::string committed{std::istreambuf_iterator<char>{file},
                              std::istreambuf_iterator<char>{}};
  EXPECT_TRUE(committed == instruction_page())
      << "docs/ptx.md is out of date: cpverify kernel --instructions > docs/ptx.md";
}

TEST(InstructionPage, ListsAFormWithItsTypesAndSection) {
  EXPECT_THAT(instruction_page(),
              HasSubstr("| `popc.type` | b32 b64 | `d:u32,a` | [popc](https://docs.nvidia.com/cuda/"
                        "parallel-thread-execution/#integer-arithmetic-instructions-popc) |\n"));
}

TEST(InstructionPage, EscapesTheBarOfPredicatePairs) {
  EXPECT_THAT(instruction_page(), HasSubstr("`p\\|q,a,b`"));
}

TEST(InstructionPage, ListsWhatIsRefusedAndNotTheDecodersOwnForms) {
  EXPECT_THAT(instruction_page(), HasSubstr("[`tex.2d.v4.f32.s32`]("));
  EXPECT_THAT(instruction_page(), Not(HasSubstr("`/join`")));
}

TEST(ManualSection, IsOfTheFormThatIsSpelledMostLikeIt) {
  EXPECT_EQ(manual_section("cp.async.bulk.tensor.3d.shared::cluster.global"),
            "data-movement-and-conversion-instructions-cp-async-bulk-tensor");
  EXPECT_EQ(manual_section("cp.async.ca.shared.global"),
            "data-movement-and-conversion-instructions-cp-async");
  EXPECT_EQ(manual_section("add.f64"), "floating-point-instructions-add");
  EXPECT_EQ(manual_section("add.s32"), "integer-arithmetic-instructions-add");
}

TEST(ManualSection, OfAnUnknownWordIsEmpty) {
  EXPECT_EQ(manual_section("frobnicate.f32"), "");
  EXPECT_EQ(manual_section("ad"), "");
  EXPECT_EQ(manual_section(""), "");
}

}  // namespace
}  // namespace cpverify::sim
