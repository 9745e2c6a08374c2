#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "cpverify/schedule.hpp"
#include "sim/machine/explore.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

constexpr ThreadScheduling kIndependent = ThreadScheduling::independent;

std::vector<ScheduleSpec> independent_schedules() {
  std::vector<ScheduleSpec> specs{{SchedulePolicy::round_robin, 0, 3, kIndependent},
                                  {SchedulePolicy::reverse, 0, 3, kIndependent},
                                  {SchedulePolicy::run_to_block, 0, 3, kIndependent}};
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    specs.push_back({SchedulePolicy::random, seed, 3, kIndependent});
    specs.push_back({SchedulePolicy::pct, seed, 3, kIndependent});
  }
  return specs;
}

struct Outcome {
  LaunchResult result;
  U32s words;
};

/// One CTA runs `body`, which begins on line 7 of the PTX, with %r1 = the thread and %d2 = the
/// address of its word; `buf` is a word of shared memory for each of 64 threads, %r10 the address
/// of the thread's own.
Outcome run_threads(const std::string& body, const ScheduleSpec& schedule,
                    std::uint32_t threads = 32, bool is_race_checked = true) {
  SimulatedDevice device;
  const std::uint64_t words = device.upload(U32s(threads, 0));
  device.load(kernel_text(1,
                          ".shared .align 4 .b8 buf[256]; ld.param.u64 %d1, [p0]; "
                          "mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 4, %d1; mov.u32 %r10, buf; "
                          "mad.lo.u32 %r10, %r1, 4, %r10;\n" +
                              body));
  LaunchRequest request = shape({1, 1, 1}, {threads, 1, 1});
  request.is_race_checked = is_race_checked;
  request.schedule = schedule;
  Outcome outcome;
  outcome.result = device.run("k", request, Parameters{words});
  outcome.words = device.download<std::uint32_t>(words, threads);
  return outcome;
}

/// The two halves of a warp store on two sides of a branch; each thread then adds what the thread
/// of the other half has stored. `between` should make the halves meet.
std::string exchange_halves(const std::string& between) {
  return "st.shared.u32 [%r10], 0; bar.warp.sync -1; setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;\n"
         "mul.lo.u32 %r2, %r1, 5; st.shared.u32 [%r10], %r2; bra.uni MEET;\n"
         "LOW: mul.lo.u32 %r2, %r1, 3; st.shared.u32 [%r10], %r2;\n"
         "MEET: " +
         between +
         "\nxor.b32 %r11, %r10, 64; ld.shared.u32 %r3, [%r11];\n"
         "add.u32 %r2, %r2, %r3; st.global.u32 [%d2], %r2; ret;";
}

U32s exchanged_halves() {
  U32s words;
  for (std::uint32_t i = 0; i < 32; ++i) {
    words.push_back(i < 16 ? 3 * i + 5 * (i + 16) : 5 * i + 3 * (i - 16));
  }
  return words;
}

TEST(IndependentThreads, AMissingSyncwarpShowsInTheResultAndAsARace) {
  std::size_t wrong = 0;
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(exchange_halves(""), schedule);
    if (outcome.words != exchanged_halves()) ++wrong;
    ASSERT_FALSE(outcome.result.faults.empty()) << text(schedule);
    for (const Fault& fault : outcome.result.faults) {
      EXPECT_EQ(fault.kind, FaultKind::race) << text(schedule);
      // The load on line 11 and the stores on lines 8 and 9, whichever comes second.
      EXPECT_NE(fault.detail.find("of the same warp, PTX line"), std::string::npos) << fault.detail;
      EXPECT_NE(fault.detail.find("no bar.warp.sync (__syncwarp)"), std::string::npos);
    }
    const Fault& last = outcome.result.faults.back();
    EXPECT_EQ(last.ptx_line, 11U) << text(schedule) << describe(outcome.result.faults);
  }
  EXPECT_GT(wrong, 0U);
}

TEST(IndependentThreads, ASyncwarpOrdersThem) {
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(exchange_halves("bar.warp.sync -1;"), schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words, exchanged_halves()) << text(schedule);
  }
}

TEST(IndependentThreads, ABarrierOrdersThemToo) {
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(exchange_halves("bar.sync 0;"), schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words, exchanged_halves()) << text(schedule);
  }
}

TEST(IndependentThreads, AShuffleMeetsButOrdersNoMemory) {
  // The halves meet, so the result is right; the manual promises no order of memory.
  const Outcome outcome = run_threads(exchange_halves("shfl.sync.idx.b32 %r4, %r1, 0, 31, -1;"),
                                      independent_schedules()[0]);
  EXPECT_EQ(outcome.words, exchanged_halves());
  ASSERT_EQ(outcome.result.faults.size(), 1U) << describe(outcome.result.faults);
  EXPECT_EQ(outcome.result.faults[0].ptx_line, 11U);
  EXPECT_EQ(outcome.result.faults[0].count, 32U);
}

TEST(IndependentThreads, ASyncwarpOfAFewOrdersThoseOnly) {
  // Pairs (0, 16), (1, 17), ... meet in groups of 8: lanes 0-3 and 16-19, 4-7 and 20-23, ...
  const std::string groups =
      "and.b32 %r5, %r1, 12; mov.u32 %r6, 0x000f000f; shl.b32 %r6, %r6, %r5; bar.warp.sync %r6;";
  const std::string halves =
      "mov.u32 %r6, 0xffff; and.b32 %r5, %r1, 16; shl.b32 %r6, %r6, %r5; "
      "bar.warp.sync %r6;";
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome right = run_threads(exchange_halves(groups), schedule);
    EXPECT_TRUE(right.result.faults.empty()) << text(schedule) << describe(right.result.faults);
    EXPECT_EQ(right.words, exchanged_halves()) << text(schedule);
    EXPECT_FALSE(run_threads(exchange_halves(halves), schedule).result.faults.empty());
  }
}

TEST(IndependentThreads, ConvergedThreadsMeetWithoutASyncwarp) {
  const Outcome outcome = run_threads(exchange_halves(""), {});
  EXPECT_TRUE(outcome.result.faults.empty()) << describe(outcome.result.faults);
  EXPECT_EQ(outcome.words, exchanged_halves());
}

TEST(IndependentThreads, AReductionInLockstepWithoutSyncwarpIsARace) {
  // Nothing diverges before the race: the result is right, and still nobody promises it.
  const auto reduction = [](const std::string& sync) {
    std::string body = "mov.u32 %r3, 0; mov.u32 %r4, 0; st.shared.u32 [%r10], %r1; " + sync + "\n";
    for (const int step : {16, 8, 4, 2, 1}) {
      body += fmt::format(
          "setp.lt.u32 %p1, %r1, {0}; @%p1 ld.shared.u32 %r3, [%r10+{1}]; "
          "@%p1 ld.shared.u32 %r4, [%r10]; add.u32 %r4, %r4, %r3; @%p1 st.shared.u32 [%r10], %r4; "
          "{2}\n",
          step, 4 * step, sync);
    }
    return body + "st.global.u32 [%d2], %r4; ret;";
  };
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome racing = run_threads(reduction(""), schedule);
    ASSERT_FALSE(racing.result.faults.empty()) << text(schedule);
    EXPECT_EQ(racing.result.faults[0].ptx_line, 8U);
    EXPECT_NE(racing.result.faults[0].detail.find("this read and the write by thread (16,0,0) of "
                                                  "the same warp, PTX line 7"),
              std::string::npos)
        << racing.result.faults[0].detail;
    const Outcome ordered = run_threads(reduction("bar.warp.sync -1;"), schedule);
    EXPECT_TRUE(ordered.result.faults.empty()) << describe(ordered.result.faults);
    EXPECT_EQ(ordered.words[0], 31U * 32U / 2U);
  }
  EXPECT_TRUE(run_threads(reduction(""), {}).result.faults.empty());
}

/// Lane 0 produces what the other lanes of its warp wait for.
constexpr const char* kProducerLane =
    "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [buf], 0; bar.warp.sync -1; @!%p1 bra WAIT;\n"
    "st.global.u32 [%d1], 7; membar.gl; st.volatile.shared.u32 [buf], 1; ret;\n"
    "WAIT: ld.volatile.shared.u32 %r2, [buf]; setp.ne.u32 %p2, %r2, 1; @%p2 bra WAIT;\n"
    "ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, %r1; st.global.u32 [%d2], %r3; ret;";

TEST(IndependentThreads, ALaneMayWaitForAnother) {
  U32s expected(32);
  for (std::uint32_t i = 0; i < 32; ++i) expected[i] = 7 + i;
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(kProducerLane, schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words, expected) << text(schedule);
  }
}

TEST(IndependentThreads, ConvergedThreadsThatWaitForEachOtherAreALivelock) {
  const Outcome outcome = run_threads(kProducerLane, {});
  ASSERT_EQ(outcome.result.faults.size(), 1U);
  EXPECT_EQ(outcome.result.faults[0].kind, FaultKind::deadlock);
  EXPECT_EQ(outcome.result.faults[0].detail,
            "no warp can go on, nobody writes what they wait for: warp 0: lanes 1-31 loop for ever "
            "at PTX line 9 and lane 0 is at PTX line 8 until they are through");
}

TEST(IndependentThreads, ALoopThatNobodyEndsIsALivelock) {
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(
        "setp.lt.u32 %p1, %r1, 8; @!%p1 bra DONE; st.shared.u32 [%r10], 0;\n"
        "WAIT: ld.volatile.shared.u32 %r2, [%r10]; setp.eq.u32 %p2, %r2, 0;\n@%p2 bra WAIT;\n"
        "DONE: bar.warp.sync -1; ret;",
        schedule);
    ASSERT_EQ(outcome.result.faults.size(), 1U) << text(schedule);
    EXPECT_EQ(outcome.result.faults[0].kind, FaultKind::deadlock);
    const std::string& detail = outcome.result.faults[0].detail;
    EXPECT_NE(detail.find("warp 0: lanes 0-7 loop for ever at PTX line "), std::string::npos)
        << detail;
    EXPECT_NE(detail.find("lanes 8-31 wait for lanes 0-7 at PTX line 10"), std::string::npos)
        << detail;
  }
}

TEST(IndependentThreads, LanesMeetAtOneInstructionInSeveralPlaces) {
  // Both sides shuffle with a full mask: each lane gets the value of the other side.
  const std::string sides =
      "setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW;\n"
      "add.u32 %r3, %r1, 100; {0}; bra.uni END;\nLOW: mov.u32 %r5, %r1; {1};\nEND: "
      "st.global.u32 [%d2], %r2; ret;";
  const auto run = [&](const std::string& high, const std::string& low,
                       const ScheduleSpec& schedule) {
    std::string body = sides;
    body.replace(body.find("{0}"), 3, high);
    body.replace(body.find("{1}"), 3, low);
    const Outcome outcome = run_threads(body, schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    return outcome.words;
  };
  for (const ScheduleSpec& schedule : independent_schedules()) {
    // Lane i gets (i + 16) + 100 or i - 16. The target of one side is the source of the other.
    const U32s shuffled =
        run("shfl.sync.bfly.b32 %r2, %r3, 16, 31, -1",
            "shfl.sync.bfly.b32 %r3, %r5, 16, 31, -1; mov.u32 %r2, %r3", schedule);
    // Values 0-15 and 116-131: their sum is 120 + 1976 = 2096.
    const U32s sums =
        run("redux.sync.add.u32 %r2, %r3, -1", "redux.sync.add.u32 %r2, %r5, -1", schedule);
    // Odd values are those of odd lanes.
    const U32s odd =
        run("and.b32 %r6, %r3, 1; setp.eq.u32 %p2, %r6, 1; vote.sync.ballot.b32 %r2, %p2, -1",
            "and.b32 %r6, %r5, 1; setp.eq.u32 %p3, %r6, 1; vote.sync.ballot.b32 %r2, %p3, -1",
            schedule);
    // Modulo 4, 100 + i is i: every fourth lane matches.
    const U32s same = run("and.b32 %r6, %r3, 3; match.any.sync.b32 %r2, %r6, -1",
                          "and.b32 %r7, %r5, 3; match.any.sync.b32 %r2, %r7, -1", schedule);
    for (std::uint32_t lane = 0; lane < 32; ++lane) {
      EXPECT_EQ(shuffled[lane], lane < 16 ? lane + 116 : lane - 16) << text(schedule);
      EXPECT_EQ(sums[lane], 2096U) << text(schedule);
      EXPECT_EQ(odd[lane], 0xaaaaaaaaU) << text(schedule);
      EXPECT_EQ(same[lane], 0x11111111U << (lane % 4)) << text(schedule);
    }
  }
  // Converged, one side runs after the other.
  const Outcome converged = run_threads(
      "setp.lt.u32 %p1, %r1, 16; @%p1 bra LOW; bar.warp.sync -1; ret; LOW: bar.warp.sync -1; ret;",
      {});
  ASSERT_EQ(converged.result.faults.size(), 1U);
  EXPECT_EQ(converged.result.faults[0].kind, FaultKind::warp_divergence);
}

TEST(IndependentThreads, SyncwarpsInSeveralPlacesOrderMemory) {
  std::string body = exchange_halves("");
  body.replace(body.find("bra.uni MEET"), 0, "bar.warp.sync -1; ");
  body.replace(body.find("\nMEET"), 0, " bar.warp.sync -1;");
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(body, schedule);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    EXPECT_EQ(outcome.words, exchanged_halves()) << text(schedule);
  }
}

TEST(IndependentThreads, LanesThatExitAreNotWaitedFor) {
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(
        "setp.lt.u32 %p1, %r1, 5; @%p1 bra OUT; bar.warp.sync -1; "
        "redux.sync.add.u32 %r2, %r1, -1; bar.sync 0; st.global.u32 [%d2], %r2; ret;\n"
        "OUT: mov.u32 %r3, 0; L: add.u32 %r3, %r3, 1; setp.lt.u32 %p2, %r3, 50; @%p2 bra L; ret;",
        schedule, 40);
    EXPECT_TRUE(outcome.result.faults.empty()) << text(schedule) << describe(outcome.result.faults);
    // Lanes 5-31: 496 - 10; the second warp has threads 32-39: 284.
    EXPECT_EQ(outcome.words[5], 486U);
    EXPECT_EQ(outcome.words[39], 284U);
    EXPECT_EQ(outcome.words[4], 0U);
  }
}

TEST(IndependentThreads, WaitingForALaneThatWaitsElsewhereIsReported) {
  for (const ScheduleSpec& schedule : independent_schedules()) {
    const Outcome outcome = run_threads(
        "setp.lt.u32 %p1, %r1, 5;\n@%p1 bra OUT;\nbar.warp.sync -1;\nOUT: "
        "vote.sync.all.pred %p2, %p1, -1;\nret;",
        schedule);
    ASSERT_EQ(outcome.result.faults.size(), 1U) << text(schedule);
    EXPECT_EQ(outcome.result.faults[0].kind, FaultKind::warp_divergence);
    EXPECT_EQ(outcome.result.faults[0].detail,
              "no lane of the warp can go on: lanes 0-4 wait for lanes 5-31 at PTX line 10, lanes "
              "5-31 wait for lanes 0-4 at PTX line 9");
  }
}

TEST(IndependentThreads, ExploringShowsEveryResult) {
  // Two lanes add 1 to a word each, with a load and a store on two sides of a branch.
  const std::string add =
      "ld.global.u32 %r3, [%d1]; add.u32 %r3, %r3, 1; st.global.u32 [%d1], %r3; ret;\n";
  std::set<std::uint32_t> sums;
  const Exploration explored = explore([&](Schedule& schedule) {
    SimulatedDevice device;
    const std::uint64_t word = device.upload(U32s{0});
    device.load(kernel_text(1,
                            "ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, "
                            "0; @%p1 bra LOW;\n" +
                                add + "LOW: " + add));
    const Parameters parameters{word};
    LaunchRequest request = shape({1, 1, 1}, {2, 1, 1});
    request.parameters = parameters.bytes();
    request.schedule.threads = kIndependent;
    const LaunchResult result =
        launch(device.memory(), *device.program().find("k"), request, schedule);
    EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
    sums.insert(device.download<std::uint32_t>(word, 1)[0]);
  });
  EXPECT_TRUE(explored.is_complete);
  EXPECT_EQ(sums, (std::set<std::uint32_t>{1, 2}));
}

/// How many threads executed each instruction that somebody wrote.
class Counter final : public Observer {
 public:
  [[nodiscard]] bool wants_counts() const noexcept override { return true; }
  void on_counts(const Coverage::Kernel& /*kernel*/, const Coverage::Counts& counts) override {
    for (const InstructionCount& count : counts.instructions) {
      counts_.push_back(count.executed);
      counts_.push_back(count.skipped);
    }
  }
  [[nodiscard]] const U64s& counts() const { return counts_; }

 private:
  U64s counts_;
};

TEST(IndependentThreads, CountEveryInstructionOnce) {
  const auto counts = [](const ScheduleSpec& schedule) {
    SimulatedDevice device;
    const std::uint64_t words = device.upload(U32s(64, 0));
    device.load(kernel_text(
        1,
        "ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 7; mov.u32 %r3, 0;\n"
        "L: add.u32 %r3, %r3, 1; setp.lt.u32 %p1, %r3, %r2; @%p1 bra L; bar.warp.sync -1; "
        "setp.lt.u32 %p2, %r1, 40; @%p2 bar.warp.sync 0xffffffff; bar.sync 0; "
        "redux.sync.add.u32 %r4, %r3, -1; ret;"));
    Counter counter;
    const std::array<Observer*, 1> observers{&counter};
    LaunchRequest request = shape({1, 1, 1}, {32, 1, 1});
    request.schedule = schedule;
    const LaunchResult result = device.run("k", request, Parameters{words}, observers);
    EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
    return counter.counts();
  };
  const U64s expected = counts({});
  for (const ScheduleSpec& schedule : independent_schedules()) {
    EXPECT_EQ(counts(schedule), expected) << text(schedule);
  }
}

}  // namespace
}  // namespace cpverify::sim
