#include "sim/machine/fresh_registers.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "sim/machine/kernel.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// A warp of a later CTA runs in the registers of an earlier one, and must not see its values.
namespace cpverify::sim {
namespace {

/// What CTA 0, 1 and 2 of `body` leave in %r1 of lane 0.
std::vector<std::uint32_t> run_ctas(const std::string& body) {
  SimulatedDevice device;
  device.load(kernel_text(1, "mov.u32 %r9, %ctaid.x; setp.eq.u32 %p1, %r9, 1;\n" + body +
                                 "\nld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r9, 4, %d1; "
                                 "st.global.u32 [%d1], %r1; ret;"));
  const std::uint64_t out = device.upload(std::vector<std::uint32_t>(3));
  const LaunchResult result = device.run("k", shape({3, 1, 1}, {1, 1, 1}), Parameters{out});
  // That a fresh register is stored is reported, which is not what is looked at here.
  for (const Fault& fault : result.faults) EXPECT_EQ(fault.kind, FaultKind::uninitialised_read);
  return device.download<std::uint32_t>(out, 3);
}

using Words = std::vector<std::uint32_t>;
constexpr std::uint32_t kFresh = 0xffffffffU;

TEST(FreshRegisters, ARegisterWrittenOnOnePathIsFreshOnTheOther) {
  EXPECT_EQ(run_ctas("@%p1 bra SKIP; mov.u32 %r1, 7; SKIP:"), (Words{7, kFresh, 7}));
}

TEST(FreshRegisters, AGuardedWriteLeavesAFreshRegister) {
  EXPECT_EQ(run_ctas("@!%p1 mov.u32 %r1, 7;"), (Words{7, kFresh, 7}));
}

TEST(FreshRegisters, ALoopThatReadsBeforeItWritesBeginsFresh) {
  // All ones + 1 is 0, then 1: a value left by the CTA before would count on.
  EXPECT_EQ(run_ctas("mov.u32 %r2, 0; LOOP: add.u32 %r1, %r1, 1; add.u32 %r2, %r2, 1; "
                     "setp.lt.u32 %p2, %r2, 2; @%p2 bra LOOP;"),
            (Words{1, 1, 1}));
}

TEST(FreshRegisters, ABranchIntoTheMiddleOfARunMeetsWhatBothPathsWrote) {
  // The path that falls through has written %r1, the one that jumps has not.
  EXPECT_EQ(run_ctas("@%p1 bra MIDDLE; mov.u32 %r1, 3; MIDDLE: mov.u32 %r3, 1; "
                     "add.u32 %r1, %r1, 0;"),
            (Words{3, kFresh, 3}));
}

TEST(FreshRegisters, APredicateThatIsNotWrittenIsFresh) {
  EXPECT_EQ(run_ctas("@%p1 bra SKIP; setp.ne.u32 %p3, %r9, %r9; SKIP: selp.u32 %r1, 1, 0, %p3;"),
            (Words{0, 1, 0}));
}

TEST(FreshRegisters, WhatIsAlwaysWrittenFirstIsLeftAlone) {
  GlobalMemory memory;
  const Program program{kernel_text(0, "mov.u32 %r1, %laneid; add.u32 %r2, %r1, 1; ret;"), "k.ptx",
                        memory, 0};
  EXPECT_TRUE(registers_to_refresh(program.find("k")->code).empty());
}

}  // namespace
}  // namespace cpverify::sim
