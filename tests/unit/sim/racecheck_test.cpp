#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/attention_problem.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// %r0 thread, %r1 warp, %r2 lane, %r3 CTA, %r6 own word of shared memory (by thread), %r7 that of
/// the same lane of the other warp, %r8 that of the lane, %r4 the first; %d2 own word of p0 by
/// thread, %d3 by thread and CTA, %d1 that of the lane; %d5 p1. %p1 warp 0, %p2 thread 0, %p3 CTA
/// 0.
constexpr const char* kPreamble =
    ".shared .align 16 .b8 s[1024];\n"
    "mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, %ctaid.x;\n"
    "mov.u32 %r4, s; shl.b32 %r5, %r0, 2; add.u32 %r6, %r4, %r5; xor.b32 %r7, %r5, 128;\n"
    "add.u32 %r7, %r4, %r7; shl.b32 %r8, %r2, 2; cvt.u64.u32 %d1, %r8; add.u32 %r8, %r4, %r8;\n"
    "ld.param.u64 %d0, [p0]; cvt.u64.u32 %d2, %r5; add.u64 %d2, %d0, %d2; add.u64 %d1, %d0, %d1;\n"
    "mov.u32 %r9, %ntid.x; mad.lo.u32 %r9, %r3, %r9, %r0; mul.wide.u32 %d3, %r9, 4;\n"
    "add.u64 %d3, %d0, %d3; ld.param.u64 %d5, [p1];\n"
    "setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r0, 0; setp.eq.u32 %p3, %r3, 0;\n";

struct Outcome {
  LaunchResult result;
  std::vector<Fault> races;
};

Outcome run_body(const std::string& body, std::uint32_t ctas, std::uint32_t threads,
                 SchedulePolicy policy = SchedulePolicy::round_robin) {
  SimulatedDevice device;
  device.load(kernel_text(2, kPreamble + body + "\nret;"));
  const std::uint64_t words = device.upload(std::vector<std::uint32_t>(1024, 5));
  const std::uint64_t flag = device.upload(std::vector<std::uint32_t>(16, 0));
  LaunchRequest request = shape({ctas, 1, 1}, {threads, 1, 1});
  request.is_race_checked = true;
  request.schedule.policy = policy;
  Outcome outcome;
  outcome.result = device.run("k", request, Parameters{words, flag});
  EXPECT_EQ(outcome.result.status, LaunchStatus::completed) << describe(outcome.result.faults);
  for (const Fault& fault : outcome.result.faults) {
    if (fault.kind == FaultKind::race) outcome.races.push_back(fault);
  }
  return outcome;
}

/// A kernel with one race, and its twin in which the accesses are in order.
struct RacePair {
  const char* name;
  std::uint32_t ctas;
  std::uint32_t threads;
  const char* racy;
  const char* clean;
  MemorySpace space;
  const char* detail;  ///< Contained in that of the race.
};

constexpr MemorySpace kShared = MemorySpace::shared;
constexpr MemorySpace kGlobal = MemorySpace::global;

std::vector<RacePair> warp_pairs() {
  return {
      {"ReadAfterWrite", 1, 64, "st.shared.u32 [%r6], %r0; @!%p1 ld.shared.u32 %r10, [%r7];",
       "st.shared.u32 [%r6], %r0; bar.sync 0; @!%p1 ld.shared.u32 %r10, [%r7];", kShared,
       "this read and the write by cta (0,0,0) thread (0,0,0), PTX line"},
      {"WriteAfterRead", 1, 64,
       "st.shared.u32 [%r6], %r0; bar.sync 0; ld.shared.u32 %r10, [%r7]; st.shared.u32 [%r6], %r2;",
       "st.shared.u32 [%r6], %r0; bar.sync 0; ld.shared.u32 %r10, [%r7]; bar.sync 0; "
       "st.shared.u32 [%r6], %r2;",
       kShared, "by cta (0,0,0) thread (0,0,0)"},
      {"WriteAfterWrite", 1, 64, "st.shared.u32 [%r8], %r0;",
       "@%p1 st.shared.u32 [%r8], %r0; bar.sync 0; @!%p1 st.shared.u32 [%r8], %r0;", kShared,
       "this write and the write by cta (0,0,0) thread (0,0,0)"},
      {"LanesOfOneStore", 1, 32, "st.shared.u32 [%r4], %r2;",
       "mov.u32 %r2, 3; st.shared.u32 [%r4], %r2;", kShared,
       "two lanes of one instruction store different values: thread (0,0,0) and thread (1,0,0)"},
      {"AtomicAndWrite", 1, 64, "@%p1 st.shared.u32 [%r8], %r0; @!%p1 red.shared.add.u32 [%r8], 1;",
       "@%p1 st.shared.u32 [%r8], %r0; bar.sync 0; red.shared.add.u32 [%r8], 1;", kShared,
       "this atomic and the write"},
      {"NamedBarrierOfOtherWarps", 1, 96,
       "setp.eq.u32 %p4, %r1, 2; @%p1 st.shared.u32 [%r8], %r0; @!%p4 bar.sync 1, 64; "
       "@%p4 ld.shared.u32 %r10, [%r8];",
       "setp.eq.u32 %p4, %r1, 1; setp.eq.u32 %p5, %r1, 2; @%p1 st.shared.u32 [%r8], %r0; "
       "@!%p5 bar.sync 1, 64; @%p4 ld.shared.u32 %r10, [%r8];",
       kShared, "this read and the write"},
      {"WarpsInGlobalMemory", 1, 64,
       "@%p1 st.global.u32 [%d1], %r0; @!%p1 ld.global.u32 %r10, [%d1];",
       "@%p1 st.global.u32 [%d1], %r0; bar.sync 0; @!%p1 ld.global.u32 %r10, [%d1];", kGlobal,
       "this read and the write by cta (0,0,0) thread (0,0,0)"},
      {"HalvesOfAWord", 1, 64, "cvt.u16.u32 %h1, %r0; st.shared.u16 [%r8], %h1;",
       "cvt.u16.u32 %h1, %r0; shl.b32 %r10, %r1, 1; add.u32 %r8, %r8, %r10; "
       "st.shared.u16 [%r8], %h1;",
       kShared, "this write and the write"},
      {"BytesOfTwoWarpsInAWord", 1, 96,
       "setp.eq.u32 %p4, %r1, 2; add.u32 %r10, %r8, %r1; @!%p4 st.shared.u8 [%r10], %r0; "
       "@%p4 ld.shared.u32 %r11, [%r8];",
       "setp.eq.u32 %p4, %r1, 2; add.u32 %r10, %r8, %r1; @!%p4 st.shared.u8 [%r10], %r0; "
       "bar.sync 0; @%p4 ld.shared.u32 %r11, [%r8];",
       kShared, "this read and the write by cta (0,0,0) thread (0,0,0)"},
      {"PlainStoreBehindAnAtomic", 1, 64,
       "@%p1 st.shared.u32 [%r8], %r0; bar.sync 0; @%p1 red.shared.add.u32 [%r8], 1; "
       "@%p1 st.shared.u32 [%r8], %r2; @!%p1 red.shared.add.u32 [%r8], 1;",
       "@%p1 st.shared.u32 [%r8], %r0; bar.sync 0; @%p1 red.shared.add.u32 [%r8], 1; "
       "@%p1 st.shared.u32 [%r8], %r2; bar.sync 0; @!%p1 red.shared.add.u32 [%r8], 1;",
       kShared, "this atomic and the write by cta (0,0,0) thread (0,0,0)"},
      {"VolatileAndPlain", 1, 64,
       "@%p1 st.volatile.shared.u32 [%r8], %r0; @!%p1 st.shared.u32 [%r8], %r0;",
       "st.volatile.shared.u32 [%r8], %r0;", kShared, "this write and the write"},
  };
}

std::vector<RacePair> copy_pairs() {
  return {
      {"RefillBeforeOthersHaveRead", 1, 64,
       "st.shared.u32 [%r6], %r0; bar.sync 0; ld.shared.u32 %r10, [%r7]; "
       "@!%p1 cp.async.ca.shared.global [%r6], [%d2], 4; cp.async.commit_group; "
       "cp.async.wait_group 0;",
       "st.shared.u32 [%r6], %r0; bar.sync 0; ld.shared.u32 %r10, [%r7]; bar.sync 0; "
       "@!%p1 cp.async.ca.shared.global [%r6], [%d2], 4; cp.async.commit_group; "
       "cp.async.wait_group 0;",
       kShared, "this asynchronous write and the read by cta (0,0,0) thread (0,0,0)"},
      {"StoreOverPendingCopy", 1, 32,
       "cp.async.ca.shared.global [%r6], [%d2], 4; st.shared.u32 [%r6], %r0; cp.async.wait_all;",
       "cp.async.ca.shared.global [%r6], [%d2], 4; cp.async.wait_all; st.shared.u32 [%r6], %r0;",
       kShared, "this write and the asynchronous write"},
      {"SourceOverwritten", 1, 32,
       "cp.async.ca.shared.global [%r6], [%d2], 4; st.global.u32 [%d2], %r0; cp.async.wait_all;",
       "cp.async.ca.shared.global [%r6], [%d2], 4; cp.async.wait_all; st.global.u32 [%d2], %r0;",
       kGlobal, "this write and the asynchronous read"},
      {"CopyPendingOverABarrier", 1, 64,
       "@%p1 cp.async.ca.shared.global [%r8], [%d2], 4; bar.sync 0; "
       "@!%p1 st.shared.u32 [%r8], %r0; cp.async.wait_all;",
       "@%p1 cp.async.ca.shared.global [%r8], [%d2], 4; cp.async.wait_all; bar.sync 0; "
       "@!%p1 st.shared.u32 [%r8], %r0;",
       kShared, "this write and the asynchronous write by cta (0,0,0) thread (0,0,0)"},
      {"WaitWithoutBarrier", 1, 64,
       "@%p1 cp.async.ca.shared.global [%r8], [%d2], 4; cp.async.wait_all; "
       "@!%p1 ld.shared.u32 %r10, [%r8];",
       "@%p1 cp.async.ca.shared.global [%r8], [%d2], 4; cp.async.wait_all; bar.sync 0; "
       "@!%p1 ld.shared.u32 %r10, [%r8];",
       kShared, "this read and the asynchronous write"},
  };
}

std::vector<RacePair> cta_pairs() {
  return {
      {"CtasWriteOnePlace", 2, 32, "st.global.u32 [%d2], %r3;", "st.global.u32 [%d3], %r3;",
       kGlobal, "this write and the write by cta (0,0,0) thread (0,0,0)"},
      {"CtaReadsWhatAnotherWrites", 2, 32,
       "@%p3 st.global.u32 [%d2], %r0; @!%p3 ld.global.u32 %r10, [%d2];",
       "@%p3 st.global.u32 [%d2], %r0; @%p3 ld.global.u32 %r10, [%d2];", kGlobal,
       "this read and the write by cta (0,0,0)"},
      {"CtaWritesWhatAnotherRead", 2, 32,
       "@%p3 ld.global.u32 %r10, [%d2]; @!%p3 st.global.u32 [%d2], %r0;",
       "ld.global.u32 %r10, [%d2];", kGlobal, "this write and the read by cta (0,0,0)"},
      {"FlagWithoutFence", 2, 32,
       "@%p3 st.global.u32 [%d2], %r0; @%p2 atom.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       "@%p3 st.global.u32 [%d2], %r0; membar.gl; @%p2 atom.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       kGlobal, "this read and the write by cta (0,0,0)"},
      {"FenceOfTheCtaOnly", 2, 32,
       "@%p3 st.global.u32 [%d2], %r0; membar.cta; @%p2 atom.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       "@%p3 st.global.u32 [%d2], %r0; fence.acq_rel.gpu; @%p2 atom.global.add.u32 %r11, [%d5], "
       "1; @!%p3 ld.global.u32 %r10, [%d2];",
       kGlobal, "this read and the write by cta (0,0,0)"},
      {"StoreBehindTheFence", 2, 32,
       "membar.gl; @%p3 st.global.u32 [%d2], %r0; @%p2 atom.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       "@%p3 st.global.u32 [%d2], %r0; @%p2 atom.acq_rel.gpu.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       kGlobal, "this read and the write by cta (0,0,0)"},
      {"ReleaseAndAcquireOfTheCtasScope", 2, 32,
       "@%p3 st.global.u32 [%d2], %r0; @%p2 atom.acq_rel.cta.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       "@%p3 st.global.u32 [%d2], %r0; @%p2 atom.acq_rel.sys.global.add.u32 %r11, [%d5], 1; "
       "@!%p3 ld.global.u32 %r10, [%d2];",
       kGlobal, "this atomic and the atomic by cta (0,0,0)"},
      {"AtomicsOfTheCtasScope", 2, 32, "red.relaxed.cta.global.add.u32 [%d2], 1;",
       "red.relaxed.cta.global.add.u32 [%d3], 1;", kGlobal,
       "this atomic and the atomic by cta (0,0,0)"},
      {"AtomicOfOneScopeMeetsAnother", 2, 32,
       "@%p3 red.relaxed.cta.global.add.u32 [%d2], 1; @!%p3 red.global.add.u32 [%d2], 1;",
       "red.relaxed.gpu.global.add.u32 [%d2], 1;", kGlobal,
       "this atomic and the atomic by cta (0,0,0)"},
      {"StrongAccessesOfTheCtasScope", 2, 32,
       "@%p3 st.relaxed.cta.global.u32 [%d2], %r0; @!%p3 ld.relaxed.cta.global.u32 %r10, [%d2];",
       "@%p3 st.relaxed.gpu.global.u32 [%d2], %r0; @!%p3 ld.relaxed.gpu.global.u32 %r10, [%d2];",
       kGlobal, "this read and the write by cta (0,0,0)"},
      {"AtomicOfOneCtaWriteOfAnother", 2, 32,
       "@%p3 red.global.add.u32 [%d2], 1; @!%p3 st.global.u32 [%d2], %r0;",
       "red.global.add.u32 [%d2], 1;", kGlobal, "this write and the atomic by cta (0,0,0)"},
  };
}

class RacePairs : public testing::TestWithParam<RacePair> {};

TEST_P(RacePairs, TheRacyOneIsReported) {
  const RacePair& pair = GetParam();
  const Outcome outcome = run_body(pair.racy, pair.ctas, pair.threads);
  ASSERT_FALSE(outcome.races.empty());
  const Fault& race = outcome.races.front();
  EXPECT_EQ(race.space, pair.space);
  EXPECT_THAT(race.detail, HasSubstr(pair.detail));
}

TEST_P(RacePairs, TheCleanOneIsNot) {
  const RacePair& pair = GetParam();
  const Outcome outcome = run_body(pair.clean, pair.ctas, pair.threads);
  EXPECT_THAT(outcome.result.faults, IsEmpty()) << describe(outcome.result.faults);
}

std::string pair_name(const testing::TestParamInfo<RacePair>& test) {
  return test.param.name;
}
INSTANTIATE_TEST_SUITE_P(Warps, RacePairs, testing::ValuesIn(warp_pairs()), pair_name);
INSTANTIATE_TEST_SUITE_P(Copies, RacePairs, testing::ValuesIn(copy_pairs()), pair_name);
INSTANTIATE_TEST_SUITE_P(Ctas, RacePairs, testing::ValuesIn(cta_pairs()), pair_name);

/// What is before what does not depend on which warp comes first.
TEST(Racecheck, FindsTheSameUnderEveryOrderOfWarps) {
  std::vector<RacePair> pairs = warp_pairs();
  for (const RacePair& pair : copy_pairs()) pairs.push_back(pair);
  for (const SchedulePolicy policy : {SchedulePolicy::reverse, SchedulePolicy::run_to_block}) {
    for (const RacePair& pair : pairs) {
      EXPECT_FALSE(run_body(pair.racy, pair.ctas, pair.threads, policy).races.empty())
          << pair.name << " " << name(policy);
      const Outcome clean = run_body(pair.clean, pair.ctas, pair.threads, policy);
      EXPECT_THAT(clean.result.faults, IsEmpty())
          << pair.name << " " << name(policy) << describe(clean.result.faults);
    }
  }
}

TEST(Racecheck, TheCtasScopeIsEnoughBetweenItsWarps) {
  const Outcome atomics = run_body("red.relaxed.cta.global.add.u32 [%d0], 1;", 1, 64);
  EXPECT_THAT(atomics.result.faults, IsEmpty()) << describe(atomics.result.faults);
  const Outcome strong = run_body(
      "@%p1 st.relaxed.cta.global.u32 [%d0], 9; @!%p1 ld.relaxed.cta.global.u32 %r10, [%d0];", 1,
      64);
  EXPECT_THAT(strong.result.faults, IsEmpty()) << describe(strong.result.faults);
}

TEST(Racecheck, NamesBothAccesses) {
  const Outcome outcome =
      run_body("\n@%p1 st.shared.u32 [%r8], %r0;\n@!%p1 st.shared.u32 [%r8], %r0;", 1, 64);
  ASSERT_EQ(outcome.races.size(), 1U);
  const Fault& race = outcome.races[0];
  // kernel_text has 5 lines before the body, the preamble 8; the stores follow an empty line.
  EXPECT_EQ(race.ptx_line, 16U);
  EXPECT_THAT(race.detail, HasSubstr("thread (0,0,0), PTX line 15"));
  EXPECT_EQ(race.thread, (std::array<std::uint32_t, 3>{32, 0, 0}));
  EXPECT_EQ(race.count, 32U);
  EXPECT_EQ(race.address, 0U);
}

TEST(Racecheck, CountsStoresOfTheSameValueAndDoesNotReportThem) {
  // 31 lanes of each warp repeat lane 0; the second warp's 32 lanes repeat the first warp.
  const Outcome outcome = run_body("mov.u32 %r10, 7; st.shared.u32 [%r4], %r10;", 1, 64);
  EXPECT_THAT(outcome.races, IsEmpty());
  EXPECT_GE(outcome.result.same_value_stores, 62U);
}

TEST(Racecheck, IsOffUnlessAskedFor) {
  SimulatedDevice device;
  device.load(kernel_text(2, std::string{kPreamble} + "st.shared.u32 [%r8], %r0;\nret;"));
  const std::uint64_t words = device.upload(std::vector<std::uint32_t>(1024, 5));
  const LaunchResult result =
      device.run("k", shape({1, 1, 1}, {64, 1, 1}), Parameters{words, words});
  EXPECT_THAT(result.faults, IsEmpty());
}

TEST(Racecheck, SharedMemoryOfTwoCtasIsNotTheSame) {
  const Outcome outcome = run_body("st.shared.u32 [%r6], %r3;", 4, 32);
  EXPECT_THAT(outcome.result.faults, IsEmpty());
}

TEST(Racecheck, ReleaseChainsAreTransitive) {
  // CTA 0 releases at the flag's first word, CTA 1 takes it there and releases at the second, CTA 2
  // takes that and reads what CTA 0 wrote.
  const Outcome outcome = run_body(
      "setp.eq.u32 %p4, %r3, 1; setp.eq.u32 %p5, %r3, 2; @%p3 st.global.u32 [%d2], %r0; membar.gl; "
      "@!%p5 atom.global.add.u32 %r10, [%d5], 1; membar.gl; "
      "@!%p3 atom.global.add.u32 %r10, [%d5+4], 1; @%p5 ld.global.u32 %r11, [%d2];",
      3, 32);
  EXPECT_THAT(outcome.result.faults, IsEmpty()) << describe(outcome.result.faults);
}

TEST(Racecheck, NothingIsReportedForTheRealKernels) {
  const AttentionProblem mma{64, {70, 3}, {150, 40}};
  for (const char* ptx : {"mma_attn.nvcc.ptx", "mma_attn.clang14.ptx", "mma_attn.clang14_O0.ptx"}) {
    const AttentionRun run{mma, read_ptx(ptx), true, true};
    EXPECT_THAT(run.result.faults, IsEmpty()) << ptx << describe(run.result.faults);
  }
  const AttentionProblem paged{128, {5, 3}, {20, 40}};
  for (const char* ptx :
       {"paged_attn.nvcc.ptx", "paged_attn.clang14.ptx", "paged_attn.nvcc_O0.ptx"}) {
    const AttentionRun run{paged, read_ptx(ptx), false, true};
    EXPECT_THAT(run.result.faults, IsEmpty()) << ptx << describe(run.result.faults);
  }
}

TEST(Racecheck, ReadsThatCoverEarlierReadsInPartAreTheReadersOwn) {
  // Words 8-31 of the row once had warp 1 as their reader, before a barrier of all. Then warp 0
  // reads words 0-7, all words after a barrier with warp 1 only, and writes them: nobody else has a
  // part in it. The same with 16 bytes by each lane.
  const std::string begin =
      "setp.eq.u32 %p4, %r1, 1; setp.eq.u32 %p5, %r1, 2; shl.b32 %r10, %r2, 4; "
      "add.u32 %r10, %r4, %r10; @%p1 st.shared.v4.u32 [%r10], {%r0, %r0, %r0, %r0}; bar.sync 0; "
      "@%p4 ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r10]; bar.sync 0; @%p5 ret;\n";
  for (const std::string& all :
       {std::string{
            "@%p1 ld.shared.u32 %r11, [%r8]; bar.sync 1, 64; @%p1 st.shared.u32 [%r8], %r2;"},
        std::string{"@%p1 ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r10]; bar.sync 1, 64; "
                    "@%p1 st.shared.v4.u32 [%r10], {%r0, %r0, %r0, %r0};"}}) {
    const Outcome outcome = run_body(
        begin + "setp.lt.u32 %p6, %r0, 6; @%p6 ld.shared.u32 %r11, [%r8]; bar.sync 1, 64;\n" + all,
        1, 96);
    EXPECT_THAT(outcome.races, IsEmpty()) << describe(outcome.result.faults);
  }
}

TEST(Racecheck, TheMissingBarrierOfARealKernelIsReported) {
  const AttentionProblem problem{128, {5, 3}, {20, 40}};
  const AttentionRun run{problem, read_ptx("paged_attn.nobar.ptx"), false, true};
  EXPECT_TRUE(std::any_of(run.result.faults.begin(), run.result.faults.end(),
                          [](const Fault& fault) { return fault.kind == FaultKind::race; }))
      << describe(run.result.faults);
}

}  // namespace
}  // namespace cpverify::sim
