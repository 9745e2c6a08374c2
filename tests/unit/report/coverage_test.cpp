#include "cpverify/coverage.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "report/report.hpp"

namespace cpverify::report {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

/// Two instructions of line 5, a branch of line 6 in two places, one instruction of line 9.
Coverage::Kernel kernel(const std::string& name) {
  return {name,
          {{"a.cu", 5, 10, 1, false},
           {"a.cu", 5, 11, 1, false},
           {"a.cu", 6, 12, 1, true},
           {"a.cu", 6, 13, 1, true},
           {"b.cuh", 9, 14, 1, false}}};
}

Coverage example() {
  Coverage coverage;
  coverage.add(kernel("k"), {1, {{32, 0}, {30, 2}, {0, 32}, {0, 0}, {0, 0}}});
  return coverage;
}

// The branch of ptx line 12 was only passed, that of line 13 never reached; line 6 was reached by
// 32 threads although no thread branched there.
TEST(Lcov, WritesARecordForEachSourceFile) {
  EXPECT_EQ(lcov_text(example()),
            "TN:\nSF:a.cu\nFN:5,k\nFNDA:1,k\nFNF:1\nFNH:1\n"
            "BRDA:6,0,0,0\nBRDA:6,0,1,32\nBRDA:6,1,0,-\nBRDA:6,1,1,-\nBRF:4\nBRH:1\n"
            "DA:5,32\nDA:6,32\nLF:2\nLH:2\nend_of_record\n"
            "TN:\nSF:b.cuh\nFNF:0\nFNH:0\nBRF:0\nBRH:0\nDA:9,0\nLF:1\nLH:0\nend_of_record\n");
}

TEST(Lcov, AddsTheLinesOfTwoKernels) {
  Coverage coverage = example();
  coverage.add(kernel("l"), {2, {{8, 0}, {8, 0}, {8, 0}, {0, 0}, {4, 0}}});
  const std::string text = lcov_text(coverage);
  EXPECT_THAT(text, HasSubstr("DA:5,40\nDA:6,40\n"));
  EXPECT_THAT(text, HasSubstr("DA:9,4\n"));
  EXPECT_THAT(text, HasSubstr("FNDA:1,k\nFNDA:2,l\nFNF:2\n"));
  EXPECT_THAT(text, HasSubstr("BRDA:6,2,0,8\nBRDA:6,2,1,0\n"));
}

TEST(Lcov, OfNothingIsEmpty) {
  EXPECT_EQ(lcov_text({}), "");
}

TEST(Lcov, LeavesInstructionsWithoutLineTableOut) {
  Coverage coverage;
  coverage.add({"k", {{"", 0, 10, 1, false}, {"a.cu", 0, 11, 1, false}}}, {1, {{32, 0}, {0, 0}}});
  EXPECT_EQ(lcov_text(coverage), "");
  EXPECT_THAT(coverage_text(coverage), HasSubstr("1/2        0/0"));
}

// Executed: lines 10, 11 and the branch at 12 of 5 instructions; 2 of 3 lines; no branch both ways.
TEST(CoverageText, CountsWhatWasExecuted) {
  EXPECT_EQ(coverage_text(example()),
            "\ncoverage\n"
            "  kernel  launches  instructions      lines  branches both ways\n"
            "  k              1           3/5        2/3                 0/2\n");
}

TEST(Coverage, MergesInAnyOrder) {
  Coverage other;
  other.add(kernel("k"), {1, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}});
  other.add(kernel("j"), {1, {{1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}});
  Coverage a = example();
  a.merge(other);
  Coverage b = other;
  b.merge(example());
  EXPECT_EQ(lcov_text(a), lcov_text(b));
  ASSERT_THAT(a.kernels, SizeIs(2));
  EXPECT_EQ(a.kernels.at(kernel("k")).launches, 2U);
  EXPECT_EQ(a.kernels.at(kernel("k")).instructions[2].skipped, 33U);
}

// A wrong variant of a kernel has its name, and other instructions.
TEST(Coverage, KeepsTwoBuildsOfOneNameApart) {
  Coverage coverage = example();
  coverage.add({"k", {{"a.cu", 5, 10, 1, false}}}, {1, {{32, 0}}});
  EXPECT_THAT(coverage.kernels, SizeIs(2));
}

}  // namespace
}  // namespace cpverify::report
