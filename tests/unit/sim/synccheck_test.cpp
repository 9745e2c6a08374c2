#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

/// One CTA runs `body`, which begins on line 7 of the PTX; %r9 is the thread, %r8 its warp.
LaunchResult run_cta(const std::string& body, std::uint32_t threads,
                     ThreadScheduling scheduling = ThreadScheduling::converged) {
  SimulatedDevice device;
  device.load(kernel_text(0, "mov.u32 %r9, %tid.x; shr.u32 %r8, %r9, 5;\n" + body));
  LaunchRequest request = shape({1, 1, 1}, {threads, 1, 1});
  request.schedule.threads = scheduling;
  return device.run("k", request, Parameters{});
}

/// The only fault of `defective`, in both ways of scheduling threads; `clean`, which differs from
/// it by the defect only, has none.
Fault expect_fault(FaultKind kind, const std::string& defective, const std::string& clean,
                   std::uint32_t threads) {
  Fault fault;
  for (const ThreadScheduling scheduling : kThreadSchedulings) {
    const LaunchResult bad = run_cta(defective, threads, scheduling);
    EXPECT_EQ(bad.status, LaunchStatus::aborted) << name(scheduling);
    EXPECT_EQ(bad.faults.size(), 1U) << name(scheduling) << describe(bad.faults);
    if (bad.faults.empty()) return fault;
    EXPECT_EQ(bad.faults[0].kind, kind) << name(scheduling) << describe(bad.faults);
    const LaunchResult good = run_cta(clean, threads, scheduling);
    EXPECT_TRUE(good.faults.empty()) << name(scheduling) << describe(good.faults);
    if (scheduling == ThreadScheduling::converged) fault = bad.faults[0];
  }
  return fault;
}

TEST(Synccheck, ABarrierByPartOfAWarp) {
  const Fault fault = expect_fault(
      FaultKind::barrier_divergence,
      "setp.lt.u32 %p1, %r9, 7;\n@!%p1 bra ELSE;\nbar.sync 0;\nELSE: bar.sync 0; ret;",
      "setp.lt.u32 %p1, %r8, 1;\n@!%p1 bra ELSE;\nbar.sync 1, 32;\nELSE: bar.sync 0; ret;", 64);
  EXPECT_EQ(fault.ptx_line, 9U);
  EXPECT_EQ(fault.count, 7U);
  EXPECT_EQ(fault.detail,
            "lanes 0-6 of the warp wait for all of it at barrier 0 in divergent code; lanes 7-31 "
            "are done and waiting at PTX line 10");
}

TEST(Synccheck, ABarrierNumberThatThereIsNot) {
  const Fault fault = expect_fault(FaultKind::invalid_barrier, "mov.u32 %r1, 16; bar.sync %r1;",
                                   "mov.u32 %r1, 15; bar.sync %r1;", 64);
  EXPECT_EQ(fault.detail, "barrier 16, a CTA has barriers 0 to 15");
}

TEST(Synccheck, ABarrierForAnOddNumberOfThreads) {
  const Fault fault =
      expect_fault(FaultKind::invalid_barrier, "bar.sync 1, 48;", "bar.sync 1, 64;", 64);
  EXPECT_EQ(fault.detail, "barrier 1 for 48 threads, not a multiple of 32");
  expect_fault(FaultKind::invalid_barrier, "bar.sync 1, 0;", "bar.sync 1;", 64);
}

TEST(Synccheck, ABarrierForMoreThreadsThanTheCtaHas) {
  // 40 threads are two warps.
  const Fault fault =
      expect_fault(FaultKind::invalid_barrier, "bar.sync 1, 96;", "bar.sync 1, 64;", 40);
  EXPECT_EQ(fault.detail, "barrier 1 for 96 threads, the CTA has 64");
}

TEST(Synccheck, ABarrierThatLanesNameDifferently) {
  expect_fault(FaultKind::invalid_barrier, "and.b32 %r1, %r9, 1; bar.sync %r1;",
               "and.b32 %r1, %r8, 0; bar.sync %r1;", 64);
}

TEST(Synccheck, WarpsThatNameDifferentCountsForOneBarrier) {
  // 96 and no count are the same in a CTA of 96 threads.
  const std::string body = "setp.eq.u32 %p1, %r8, 0; @%p1 bra A; bar.sync 1; ret;\n";
  const Fault fault = expect_fault(FaultKind::barrier_mismatch, body + "A: bar.sync 1, 64; ret;",
                                   body + "A: bar.sync 1, 96; ret;", 96);
  EXPECT_EQ(fault.detail, "barrier 1 for 96 threads, but warp 0 waits there for 64 at PTX line 8");
}

TEST(Synccheck, AnArrivalForAnotherCountThanTheWait) {
  const std::string begin = "setp.eq.u32 %p1, %r8, 0; @%p1 bra A; bar.sync 1, 96; ret; A: ";
  const Fault fault = expect_fault(FaultKind::barrier_mismatch, begin + "bar.arrive 1, 64; ret;",
                                   begin + "bar.arrive 1, 96; ret;", 96);
  EXPECT_EQ(fault.detail, "barrier 1 for 96 threads, but a bar.arrive there was for 64");
}

TEST(Synccheck, ABarrierThatIsHalfFullWhenTheCtaEnds) {
  const Fault fault = expect_fault(
      FaultKind::barrier_mismatch,
      "setp.eq.u32 %p1, %r8, 0; @%p1 bra A; ret;\nA: bar.arrive 3, 64; ret;",
      "setp.eq.u32 %p1, %r8, 0; @%p1 bra A; bar.sync 3, 64; ret;\nA: bar.arrive 3, 64; ret;", 64);
  EXPECT_EQ(fault.ptx_line, 8U);
  EXPECT_EQ(
      fault.detail,
      "the CTA ends and barrier 3 has 32 of 64 threads, by bar.arrive: a bar.sync is missing");
}

TEST(Synccheck, AWarpThatExitedAndIsCounted) {
  const std::string begin = "setp.eq.u32 %p1, %r8, 0; @%p1 ret; ";
  const Fault fault = expect_fault(FaultKind::deadlock, begin + "bar.sync 1, 64; ret;",
                                   begin + "bar.sync 1, 32; ret;", 64);
  EXPECT_EQ(fault.detail,
            "warps wait for barriers that will not complete: barrier 1 has 1 of 2 warps: warp 1 at "
            "PTX line 7, warp 0 exited");
}

TEST(Synccheck, AMembermaskWithoutTheLaneItself) {
  const Fault fault = expect_fault(FaultKind::invalid_membermask,
                                   "shfl.sync.idx.b32 %r1, %r9, 0, 31, 0xfffffffe; ret;",
                                   "shfl.sync.idx.b32 %r1, %r9, 0, 31, 0xffffffff; ret;", 32);
  EXPECT_EQ(fault.count, 1U);
  EXPECT_EQ(fault.detail, "membermask 0xfffffffe of lane 0 does not name it");
}

TEST(Synccheck, AFullMembermaskInDivergentCode) {
  const std::string begin = "setp.lt.u32 %p1, %r9, 16;\n@!%p1 bra ELSE;\n";
  const Fault fault = expect_fault(
      FaultKind::warp_divergence,
      begin + "shfl.sync.bfly.b32 %r1, %r9, 1, 31, -1;\nELSE: bar.warp.sync -1; ret;",
      begin + "shfl.sync.bfly.b32 %r1, %r9, 1, 31, 0xffff;\nELSE: bar.warp.sync -1; ret;", 32);
  EXPECT_EQ(fault.ptx_line, 9U);
  EXPECT_EQ(fault.detail,
            "membermask 0xffffffff names lanes 16-31, and only lanes 0-15 execute: lanes 16-31 are "
            "done and waiting at PTX line 10");
}

TEST(Synccheck, AMatrixInstructionByPartOfAWarp) {
  const std::string matrix =
      "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r9;\nELSE: bar.warp.sync -1; ret;";
  const Fault fault = expect_fault(FaultKind::warp_divergence,
                                   "setp.lt.u32 %p1, %r9, 31;\n@!%p1 bra ELSE;\n" + matrix,
                                   "setp.lt.u32 %p1, %r9, 32;\n@!%p1 bra ELSE;\n" + matrix, 32);
  EXPECT_EQ(fault.ptx_line, 9U);
}

TEST(Synccheck, DifferentMembermasksInOneInstructionAreGroups) {
  // Even and odd lanes vote apart: 16 bits each.
  const std::vector<std::uint32_t> lanes = run_lanes<std::uint32_t>(
      "mov.u32 %r1, %laneid; and.b32 %r2, %r1, 1; mov.u32 %r3, 0x55555555; shl.b32 %r4, %r3, %r2; "
      "setp.ge.u32 %p1, %r1, 0; vote.sync.ballot.b32 %out, %p1, %r4;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(lanes[lane], lane % 2 == 0 ? 0x55555555U : 0xaaaaaaaaU) << lane;
  }
}

}  // namespace
}  // namespace cpverify::sim
