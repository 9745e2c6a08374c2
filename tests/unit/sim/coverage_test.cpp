#include "cpverify/coverage.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/observer.hpp"
#include "sim/check/coverage_observer.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

/// Threads below `limit` go to BELOW.
constexpr const char* kBranching =
    ".version 7.5\n.target sm_80\n.address_size 64\n.file 1 \"branch.cu\"\n"
    ".visible .entry k(.param .u32 limit)\n{\n"
    ".reg .pred %p<2>; .reg .b32 %r<4>;\n"
    ".loc 1 10 0\nld.param.u32 %r1, [limit];\nmov.u32 %r2, %tid.x;\n"
    "setp.lt.u32 %p1, %r2, %r1;\n"
    ".loc 1 11 0\n@%p1 bra BELOW;\n"
    ".loc 1 12 0\nmov.u32 %r3, 1;\nbra.uni END;\n"
    "BELOW:\n.loc 1 13 0\nmov.u32 %r3, 2;\n"
    "END:\n.loc 1 14 0\nret;\n}\n";

/// (source line, executed, skipped) of each instruction.
using Row = std::vector<std::uint64_t>;

std::vector<Row> rows(const Coverage& coverage) {
  std::vector<Row> result;
  for (const auto& [kernel, counts] : coverage.kernels) {
    for (std::size_t i = 0; i < kernel.second.size(); ++i) {
      const InstructionCount& count = counts.instructions[i];
      result.push_back({kernel.second[i].source_line, count.executed, count.skipped});
    }
  }
  return result;
}

class CoverageOfLaunches : public ::testing::Test {
 protected:
  CoverageOfLaunches() { device_.load(kBranching); }

  void run(std::uint32_t threads, std::uint32_t limit) {
    Observer* const observer = &observer_;
    const LaunchResult result = device_.run("k", shape({2, 1, 1}, {threads, 1, 1}),
                                            Parameters{limit}, std::span{&observer, 1});
    EXPECT_THAT(result.faults, IsEmpty());
    thread_instructions_ += result.thread_instructions;
  }

  SimulatedDevice device_;
  CoverageObserver observer_;
  std::uint64_t thread_instructions_ = 0;
};

// 2 CTAs of 40 threads, none below 0: the branch is reached by 80 and taken by none.
TEST_F(CoverageOfLaunches, ShowsABranchThatIsNeverTaken) {
  run(40, 0);
  const Coverage coverage = observer_.take();
  ASSERT_THAT(coverage.kernels, SizeIs(1));
  EXPECT_EQ(coverage.kernels.begin()->first.first, "k");
  EXPECT_EQ(coverage.kernels.begin()->second.launches, 1U);
  EXPECT_THAT(rows(coverage),
              ElementsAre(Row{10, 80, 0}, Row{10, 80, 0}, Row{10, 80, 0}, Row{11, 0, 80},
                          Row{12, 80, 0}, Row{12, 80, 0}, Row{13, 0, 0}, Row{14, 80, 0}));
  const InstructionPlace& branch = coverage.kernels.begin()->first.second[3];
  EXPECT_EQ(branch.source_file, "branch.cu");
  EXPECT_TRUE(branch.is_branch);
  EXPECT_EQ(branch.ptx_line, 13U);
  EXPECT_EQ(branch.ptx_column, 6U);
}

// Of 2 x 32 threads 5 each take it; the unconditional branch is none that may go both ways.
TEST_F(CoverageOfLaunches, CountsBothSidesOfADivergentBranch) {
  run(32, 5);
  const Coverage coverage = observer_.take();
  EXPECT_THAT(rows(coverage)[3], ElementsAre(11, 10, 54));
  EXPECT_THAT(rows(coverage)[4], ElementsAre(12, 54, 0));
  EXPECT_THAT(rows(coverage)[6], ElementsAre(13, 10, 0));
  EXPECT_FALSE(coverage.kernels.begin()->first.second[5].is_branch);
}

TEST_F(CoverageOfLaunches, AddsUpAndStartsAgainWhenTaken) {
  run(32, 0);
  run(32, 32);
  const Coverage coverage = observer_.take();
  EXPECT_EQ(coverage.kernels.begin()->second.launches, 2U);
  EXPECT_THAT(rows(coverage)[3], ElementsAre(11, 64, 64));
  EXPECT_THAT(observer_.take().kernels, IsEmpty());
}

// What the decoder adds is executed but not listed, so the list may be short of the total only.
TEST_F(CoverageOfLaunches, SeesNoMoreThanTheMachineExecuted) {
  run(64, 7);
  std::uint64_t sum = 0;
  for (const Row& row : rows(observer_.take())) sum += row[1];
  EXPECT_LE(sum, thread_instructions_);
  EXPECT_GE(sum, 2 * 64 * 6U);
}

TEST(CoverageObserver, CountingChangesNoResult) {
  const std::string ptx = read_ptx("saxpy.nvcc.ptx");
  std::vector<std::vector<float>> results;
  for (const bool is_counting : {false, true}) {
    SimulatedDevice device;
    device.load(ptx);
    const std::uint64_t x = device.upload(std::vector<float>(100, 2.0F));
    const std::uint64_t y = device.upload(std::vector<float>(100, 1.0F));
    CoverageObserver counter;
    Observer* const observer = &counter;
    (void)device.run("saxpy", shape({1, 1, 1}, {128, 1, 1}), Parameters{100, 3.0F, x, y},
                     std::span{&observer, is_counting ? std::size_t{1} : std::size_t{0}});
    results.push_back(device.download<float>(y, 100));
    EXPECT_THAT(counter.take().kernels, SizeIs(is_counting ? 1 : 0));
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0][99], 7.0F);  // 3 * 2 + 1.
}

}  // namespace
}  // namespace cpverify::sim
