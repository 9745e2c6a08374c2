#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// ldmatrix of four matrices has a way of its own for rows with which nothing is wrong: these have
/// one row of 32 with which something is.
namespace cpverify::sim {
namespace {

/// 32 rows of 16 bytes are all of shared memory. Lanes with %p1 write theirs; `change` is made to
/// their addresses %r2, then the last of four registers is used. %r1 is the lane.
LaunchResult run_rows(const std::string& written, const std::string& change,
                      const std::string& form) {
  SimulatedDevice device;
  device.load(
      kernel_text(1,
                  ".shared .align 16 .b8 s[512];\nld.param.u64 %d0, [p0]; mov.u32 %r1, %laneid;\n"
                  "mad.wide.u32 %d1, %r1, 4, %d0; mov.u32 %r2, s; mad.lo.u32 %r2, %r1, 16, %r2;\n" +
                      written + " @%p1 st.shared.v4.u32 [%r2], {%r1, %r1, %r1, %r1};\n" + change +
                      "\nldmatrix.sync.aligned.m8n8.x4" + form +
                      ".shared.b16 {%r4, %r5, %r6, %r7}, [%r2];\nst.global.u32 [%d1], %r7;\nret;"));
  const std::uint64_t out = device.upload(std::vector<std::uint32_t>(32, 0));
  return device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{out});
}

constexpr const char* kAll = "setp.lt.u32 %p1, %r1, 32;";
constexpr const char* kNotLast = "setp.lt.u32 %p1, %r1, 31;";

TEST(LdmatrixRows, ThatAreAllWrittenAreFine) {
  for (const char* const form : {"", ".trans"}) {
    const LaunchResult result = run_rows(kAll, "", form);
    EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  }
}

// Row 31 is row 7 of matrix 3: its words are those of lanes 28 to 31, and with .trans its halves
// are in column 7, which lanes l with l % 4 == 3 hold.
TEST(LdmatrixRows, ThatAreNotWrittenAreReportedWhereTheyAreUsed) {
  const LaunchResult straight = run_rows(kNotLast, "", "");
  ASSERT_EQ(straight.faults.size(), 1U) << describe(straight.faults);
  EXPECT_EQ(straight.faults[0].kind, FaultKind::uninitialised_read);
  EXPECT_EQ(straight.faults[0].count, 4U);
  EXPECT_EQ(straight.faults[0].thread[0], 28U);
  EXPECT_EQ(straight.faults[0].address, 496U);
  const LaunchResult turned = run_rows(kNotLast, "", ".trans");
  ASSERT_EQ(turned.faults.size(), 1U) << describe(turned.faults);
  EXPECT_EQ(turned.faults[0].count, 8U);
  EXPECT_EQ(turned.faults[0].thread[0], 3U);
}

FaultKind kind_with(const std::string& change) {
  const LaunchResult result = run_rows(kAll, change, "");
  EXPECT_EQ(result.faults.size(), 1U) << describe(result.faults);
  EXPECT_EQ(result.status, LaunchStatus::aborted);
  return result.faults.empty() ? FaultKind::uninitialised_read : result.faults[0].kind;
}

TEST(LdmatrixRows, ThatBeginOutsideAreFound) {
  EXPECT_EQ(kind_with("setp.eq.u32 %p2, %r1, 31; @%p2 add.u32 %r2, %r2, 16;"),
            FaultKind::out_of_bounds_read);
  // Lane 0 is at 0: below it wraps to 2^32 - 16.
  EXPECT_EQ(kind_with("setp.eq.u32 %p2, %r1, 0; @%p2 sub.u32 %r2, %r2, 16;"),
            FaultKind::out_of_bounds_read);
}

TEST(LdmatrixRows, ThatBeginBetweenMultiplesOf16AreFound) {
  EXPECT_EQ(kind_with("setp.eq.u32 %p2, %r1, 5; @%p2 add.u32 %r2, %r2, 8;"), FaultKind::misaligned);
}

}  // namespace
}  // namespace cpverify::sim
