#include "cpverify/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/coverage_observer.hpp"
#include "sim/machine/explore.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

/// Runs a kernel on `count` words that are 0 and gives what they are then.
struct Outcome {
  LaunchResult result;
  U32s words;
};

Outcome run_on_zeros(const std::string& body, LaunchRequest request, std::size_t count,
                     const ScheduleSpec& schedule = {}) {
  SimulatedDevice device;
  const std::uint64_t words = device.upload(U32s(count, 0));
  device.load(kernel_text(
      1, "ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;\n" + body));
  request.schedule = schedule;
  Outcome outcome;
  outcome.result = device.run("k", request, Parameters{words});
  outcome.words = device.download<std::uint32_t>(words, count);
  return outcome;
}

std::vector<ScheduleSpec> schedules() {
  std::vector<ScheduleSpec> specs{
      {SchedulePolicy::round_robin}, {SchedulePolicy::reverse}, {SchedulePolicy::run_to_block}};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    specs.push_back({SchedulePolicy::random, seed});
    specs.push_back({SchedulePolicy::pct, seed});
  }
  return specs;
}

/// Every warp adds 1 with a load and a store, as if nobody else did.
constexpr const char* kLostUpdate =
    "ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, 1; st.global.u32 [%d1], %r3;";

/// CTA 0 waits until CTA 1 has set word 0, then copies word 1 to word 2.
constexpr const char* kFlag =
    "setp.eq.u32 %p1, %r2, 0; @%p1 bra WAIT; st.global.u32 [%d1+4], 7; membar.gl; "
    "st.global.u32 [%d1], 1; ret;\n"
    "WAIT: ld.volatile.global.u32 %r3, [%d1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT; "
    "ld.global.u32 %r4, [%d1+4]; st.global.u32 [%d1+8], %r4;";

/// One thread per CTA counts itself in word 0 and waits for all.
constexpr const char* kGridBarrier =
    "mov.u32 %r4, %nctaid.x; atom.global.add.u32 %r3, [%d1], 1;\n"
    "WAIT: ld.acquire.gpu.global.u32 %r3, [%d1]; setp.lt.u32 %p2, %r3, %r4; @%p2 bra WAIT;";

TEST(Schedules, LetCtasWaitForEachOther) {
  for (const ScheduleSpec& schedule : schedules()) {
    const Outcome flag = run_on_zeros(kFlag, shape({2, 1, 1}, {32, 1, 1}), 3, schedule);
    EXPECT_TRUE(flag.result.faults.empty()) << text(schedule) << describe(flag.result.faults);
    EXPECT_EQ(flag.words, (U32s{1, 7, 7})) << text(schedule);
    const Outcome barrier = run_on_zeros(kGridBarrier, shape({40, 1, 1}, {1, 1, 1}), 1, schedule);
    EXPECT_TRUE(barrier.result.faults.empty()) << text(schedule) << describe(barrier.result.faults);
    EXPECT_EQ(barrier.words[0], 40U);
  }
}

/// The loop counts, so that its state does not repeat.
TEST(Schedules, LetCtasWaitInALoopThatCounts) {
  const Outcome counted = run_on_zeros(
      "setp.eq.u32 %p1, %r2, 0; @%p1 bra INIT; st.global.u32 [%d1], 1; ret;\n"
      "INIT: mov.u32 %r5, 0; WAIT: add.u32 %r5, %r5, 1; ld.relaxed.gpu.global.u32 %r3, [%d1]; "
      "setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT; st.global.u32 [%d1+4], 9;",
      shape({2, 1, 1}, {1, 1, 1}), 2);
  EXPECT_TRUE(counted.result.faults.empty()) << describe(counted.result.faults);
  EXPECT_EQ(counted.words, (U32s{1, 9}));
  EXPECT_LT(counted.result.warp_instructions, 200'000U);
}

TEST(Schedules, AWarpThatTakesALockLetsItsHolderGoOn) {
  // 4 warps x 3 rounds; lane 0 of each takes the lock (word 0) and adds 1 to word 1.
  for (const ScheduleSpec& schedule : schedules()) {
    const Outcome outcome = run_on_zeros(
        "and.b32 %r3, %r1, 31; setp.ne.u32 %p1, %r3, 0; @%p1 ret; mov.u32 %r4, 0;\n"
        "NEXT: atom.global.cas.b32 %r5, [%d1], 0, 1; setp.ne.u32 %p2, %r5, 0; @%p2 bra NEXT; "
        "ld.global.u32 %r6, [%d1+4]; add.u32 %r6, %r6, 1; st.global.u32 [%d1+4], %r6; "
        "atom.global.exch.b32 %r7, [%d1], 0; add.u32 %r4, %r4, 1; setp.lt.u32 %p3, %r4, 3; "
        "@%p3 bra NEXT;",
        shape({1, 1, 1}, {128, 1, 1}), 2, schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words, (U32s{0, 12})) << text(schedule);
  }
}

TEST(Schedules, KeepArrivalsAndReductions) {
  // Warp 1 writes, arrives and polls what warp 0 writes behind the barrier; then all vote.
  for (const ScheduleSpec& schedule : schedules()) {
    const Outcome outcome = run_on_zeros(
        "setp.ge.u32 %p1, %r1, 32; @%p1 bra PRODUCE; bar.sync 1, 64; ld.global.u32 %r3, [%d1]; "
        "st.volatile.global.u32 [%d1+4], %r3; bra.uni VOTE;\n"
        "PRODUCE: st.global.u32 [%d1], 7; bar.arrive 1, 64;\n"
        "WAIT: ld.volatile.global.u32 %r3, [%d1+4]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;\n"
        "VOTE: setp.lt.u32 %p3, %r1, 40; bar.red.popc.u32 %r4, 0, %p3; "
        "st.global.u32 [%d1+8], %r4;",
        shape({1, 1, 1}, {64, 1, 1}), 3, schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words, (U32s{7, 7, 40})) << text(schedule);
  }
}

TEST(Schedules, DoNotChangeWhatIsCounted) {
  // 2 CTAs of 64 threads, no branch: every instruction is executed by 128.
  for (const ScheduleSpec& schedule : schedules()) {
    SimulatedDevice device;
    const std::uint64_t words = device.upload(U32s(1, 0));
    device.load(kernel_text(1,
                            "ld.param.u64 %d1, [p0]; red.global.add.u32 [%d1], 1; bar.sync 0; "
                            "red.global.add.u32 [%d1], 1; ret;"));
    LaunchRequest request = shape({2, 1, 1}, {64, 1, 1});
    request.schedule = schedule;
    CoverageObserver counter;
    Observer* const observer = &counter;
    const LaunchResult result =
        device.run("k", request, Parameters{words}, std::span{&observer, 1});
    EXPECT_TRUE(result.faults.empty()) << text(schedule) << describe(result.faults);
    const Coverage coverage = counter.take();
    ASSERT_EQ(coverage.kernels.size(), 1U);
    ASSERT_EQ(coverage.kernels.begin()->second.instructions.size(), 5U);
    for (const InstructionCount& count : coverage.kernels.begin()->second.instructions) {
      EXPECT_EQ(count.executed, 128U) << text(schedule);
    }
  }
}

TEST(Schedules, KeepOneCtaUnderRacecheck) {
  LaunchRequest request = shape({3, 1, 1}, {1, 1, 1});
  request.is_race_checked = true;
  for (const ScheduleSpec& schedule : schedules()) {
    const Outcome outcome = run_on_zeros(kGridBarrier, request, 1, schedule);
    ASSERT_EQ(outcome.result.faults.size(), 1U) << text(schedule);
    EXPECT_EQ(outcome.result.faults[0].detail,
              "no warp can go on, nobody writes what they wait for: warp 0 loops for ever at PTX "
              "line 8; 2 CTAs have not started: with racecheck one runs at a time");
    EXPECT_EQ(outcome.words[0], 1U);
  }
}

TEST(Deadlock, AWarpThatWaitsForTheClockIsNone) {
  // The upper half of the clock changes after 2^32 ticks, 64 per read: long after the budget. Until
  // then no register does.
  LaunchRequest request = shape({1, 1, 1}, {32, 1, 1});
  request.instruction_budget = 300'000;
  const Outcome outcome = run_on_zeros(
      "WAIT: mov.u32 %r3, %clock_hi; setp.eq.u32 %p1, %r3, 0; @%p1 bra WAIT;", request, 1);
  ASSERT_EQ(outcome.result.faults.size(), 1U);
  EXPECT_EQ(outcome.result.faults[0].detail, "the launch has used up its instruction budget");
}

TEST(Deadlock, AWarpThatArrivesAtABarrierIsNone) {
  // Warp 0 waits three times for all 32 warps; warp 1 arrives for them, a slice full of times
  // before each opening and without a register that changes, until warp 0 has set word 0.
  const Outcome outcome = run_on_zeros(
      "setp.ge.u32 %p3, %r1, 64; @%p3 ret; setp.ge.u32 %p1, %r1, 32; @%p1 bra ARRIVE; "
      "bar.sync 1, 1024; bar.sync 1, 1024; bar.sync 1, 1024; st.volatile.global.u32 [%d1], 1; "
      "ret;\n"
      "ARRIVE: ld.volatile.global.u32 %r3, [%d1]; setp.ne.u32 %p2, %r3, 0; @%p2 ret; "
      "bar.arrive 1, 1024; bra ARRIVE;",
      shape({1, 1, 1}, {1024, 1, 1}), 1);
  // At its end it may arrive once more than anybody waits for.
  for (const Fault& fault : outcome.result.faults) {
    EXPECT_EQ(fault.kind, FaultKind::barrier_mismatch) << describe(outcome.result.faults);
  }
  EXPECT_EQ(outcome.words[0], 1U);
}

TEST(Deadlock, ASpinThatNobodyEndsIsReportedSoon) {
  for (const ScheduleSpec& schedule : schedules()) {
    const Outcome outcome = run_on_zeros(
        "WAIT: ld.volatile.global.u32 %r3, [%d1]; setp.eq.u32 %p2, %r3, 0; @%p2 bra WAIT;",
        shape({1, 1, 1}, {64, 1, 1}), 1, schedule);
    ASSERT_EQ(outcome.result.faults.size(), 1U) << text(schedule);
    EXPECT_EQ(outcome.result.faults[0].kind, FaultKind::deadlock);
    EXPECT_EQ(outcome.result.faults[0].detail.find("no warp can go on, nobody writes what they "
                                                   "wait for: warp"),
              0U)
        << outcome.result.faults[0].detail;
    EXPECT_LT(outcome.result.warp_instructions, 1'000'000U) << text(schedule);
  }
}

TEST(Deadlock, AStoreThatTheSpinNeverReachesDoesNotHideIt) {
  const Outcome outcome = run_on_zeros(
      "WAIT: atom.global.cas.b32 %r3, [%d1], 1, 2; setp.eq.u32 %p2, %r3, 1; "
      "@%p2 st.global.u32 [%d1+4], 1; @!%p2 bra WAIT;",
      shape({1, 1, 1}, {32, 1, 1}), 2);
  ASSERT_EQ(outcome.result.faults.size(), 1U);
  EXPECT_EQ(
      outcome.result.faults[0].detail,
      "no warp can go on, nobody writes what they wait for: warp 0 loops for ever at PTX line "
      "7");
  EXPECT_LT(outcome.result.warp_instructions, 100'000U);
}

TEST(Deadlock, SaysWhoLoopsAndWhoWaitsAtABarrier) {
  const Outcome outcome = run_on_zeros(
      "setp.ge.u32 %p1, %r1, 32; @%p1 bra WAIT;\n.loc 1 12 3\nbar.sync 0; ret;\n"
      ".loc 1 15 3\nWAIT: ld.volatile.global.u32 %r3, [%d1]; setp.eq.u32 %p2, %r3, 0;\n"
      "@%p2 bra WAIT; bar.sync 0;",
      shape({1, 1, 1}, {128, 1, 1}), 1);
  ASSERT_EQ(outcome.result.faults.size(), 1U);
  EXPECT_EQ(outcome.result.faults[0].detail,
            "no warp can go on, nobody writes what they wait for: warps 1-3 loop for ever at :15; "
            "barrier 0 has 1 of 4 warps: warp 0 at :12");
  EXPECT_EQ(outcome.result.faults[0].source_line, 15U);
}

TEST(Deadlock, OfCtasThatHaveNoRoomIsReported) {
  // 300 CTAs wait for each other, 256 of them fit.
  const Outcome outcome = run_on_zeros(kGridBarrier, shape({300, 1, 1}, {1, 1, 1}), 1);
  ASSERT_EQ(outcome.result.faults.size(), 1U);
  const std::string& detail = outcome.result.faults[0].detail;
  EXPECT_NE(detail.find("cta (0,0,0) warp 0 loops for ever at PTX line 8"), std::string::npos)
      << detail;
  EXPECT_NE(detail.find("; and 250 more; 44 CTAs have no room to start"), std::string::npos)
      << detail;
}

TEST(Deadlock, APingPongOfWarpsIsNone) {
  // Two warps hand word 0 to each other 20 times; at each time both may be seen spinning.
  for (const ScheduleSpec& schedule : schedules()) {
    const Outcome outcome = run_on_zeros(
        "shr.u32 %r3, %r1, 5;\n"
        "WAIT: ld.volatile.global.u32 %r4, [%d1]; setp.ge.u32 %p1, %r4, 20; @%p1 ret; "
        "and.b32 %r5, %r4, 1; setp.ne.u32 %p2, %r5, %r3; @%p2 bra WAIT; add.u32 %r4, %r4, 1; "
        "st.volatile.global.u32 [%d1], %r4; bra WAIT;",
        shape({1, 1, 1}, {64, 1, 1}), 1, schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words[0], 20U);
  }
}

TEST(Race, ShowsUnderSomeSeedAndIsTheSameForTheSame) {
  for (const SchedulePolicy policy : {SchedulePolicy::random, SchedulePolicy::pct}) {
    std::set<std::uint32_t> results;
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const auto run = [&] {
        return run_on_zeros(kLostUpdate, shape({2, 1, 1}, {128, 1, 1}), 1, {policy, seed}).words[0];
      };
      const std::uint32_t result = run();
      EXPECT_EQ(run(), result) << name(policy) << " " << seed;
      results.insert(result);
    }
    EXPECT_GT(results.size(), 1U) << name(policy);
  }
  // 8 warps one after the other lose nothing.
  EXPECT_EQ(run_on_zeros(kLostUpdate, shape({2, 1, 1}, {128, 1, 1}), 1).words[0], 8U);
}

TEST(Race, AMissingBarrierShowsUnderReverse) {
  // Warp 0 writes 5 over the 0 in shared memory; warp 1 reads it. The barrier between is missing.
  const std::string body =
      ".shared .align 4 .u32 tile; setp.ge.u32 %p1, %r1, 32; @!%p1 st.shared.u32 [tile], 0; "
      "bar.sync 0; @!%p1 st.shared.u32 [tile], 5; {} ld.shared.u32 %r3, [tile]; "
      "@%p1 st.global.u32 [%d1], %r3;";
  const auto with = [&](const std::string& middle, const ScheduleSpec& schedule) {
    std::string text = body;
    text.replace(text.find("{}"), 2, middle);
    return run_on_zeros(text, shape({1, 1, 1}, {64, 1, 1}), 1, schedule).words[0];
  };
  EXPECT_EQ(with("", {SchedulePolicy::round_robin}), 5U);
  EXPECT_EQ(with("", {SchedulePolicy::reverse}), 0U);
  for (const ScheduleSpec& schedule : schedules()) {
    EXPECT_EQ(with("bar.sync 0;", schedule), 5U) << text(schedule);
  }
}

/// Values of word 0 and how many interleavings lead to each.
std::map<std::uint32_t, int> explore_all(const std::string& body, const LaunchRequest& request,
                                         Exploration& exploration,
                                         const ExploreBounds& bounds = {}) {
  std::map<std::uint32_t, int> results;
  exploration = explore(
      [&](Schedule& schedule) {
        SimulatedDevice device;
        const std::uint64_t words = device.upload(U32s(4, 0));
        device.load(kernel_text(1, "ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x;\n" + body));
        const Parameters parameters{words};
        LaunchRequest full = request;
        full.parameters = parameters.bytes();
        const LaunchResult result =
            launch(device.memory(), *device.program().find("k"), full, schedule);
        EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
        ++results[device.download<std::uint32_t>(words, 1)[0]];
      },
      bounds);
  return results;
}

TEST(Explore, RunsEveryInterleavingOnce) {
  // Load and store of two warps: C(4, 2) = 6 orders. Two are serial, the other four lose one.
  Exploration exploration;
  const auto warps = explore_all(kLostUpdate, shape({1, 1, 1}, {64, 1, 1}), exploration);
  EXPECT_TRUE(exploration.is_complete);
  EXPECT_EQ(exploration.runs, 6U);
  EXPECT_EQ(warps, (std::map<std::uint32_t, int>{{1, 4}, {2, 2}}));
  // The same between two CTAs.
  EXPECT_EQ(explore_all(kLostUpdate, shape({2, 1, 1}, {32, 1, 1}), exploration), warps);
  // One atomic each of three warps: 3! orders, one result (96 lanes).
  const auto atomics =
      explore_all("red.global.add.u32 [%d1], 1;", shape({1, 1, 1}, {96, 1, 1}), exploration);
  EXPECT_EQ(exploration.runs, 6U);
  EXPECT_EQ(atomics, (std::map<std::uint32_t, int>{{96, 6}}));
}

TEST(Explore, SaysWhenABoundCutItShort) {
  Exploration exploration;
  (void)explore_all(kLostUpdate, shape({1, 1, 1}, {64, 1, 1}), exploration, {5, 4, 64});
  EXPECT_FALSE(exploration.is_complete);
  EXPECT_EQ(exploration.runs, 5U);
  (void)explore_all(kLostUpdate, shape({1, 1, 1}, {160, 1, 1}), exploration);
  EXPECT_FALSE(exploration.is_complete);
  EXPECT_EQ(exploration.runs, 1U);
  (void)explore_all(kLostUpdate, shape({1, 1, 1}, {64, 1, 1}), exploration, {100, 4, 1});
  EXPECT_FALSE(exploration.is_complete);
  EXPECT_EQ(exploration.runs, 2U);
}

}  // namespace
}  // namespace cpverify::sim
