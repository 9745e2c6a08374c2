#include "sim/machine/mbarrier.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

TEST(MbarrierObject, CompletesAPhaseWithTheLastArrivalAndStartsTheNext) {
  Mbarrier object{2};
  EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.phase(), 0U);
  EXPECT_EQ(object.pending(), 1U);
  EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.phase(), 1U);
  EXPECT_EQ(object.pending(), 2U);
}

TEST(MbarrierObject, WaitsForItsBytesTooWhicheverComesFirst) {
  // Bytes before they are expected: -64, then + 64 - 0, and the arrival completes the phase.
  Mbarrier object{1};
  EXPECT_EQ(object.add_bytes(-64), "");
  EXPECT_EQ(object.tx_count(), -64);
  EXPECT_EQ(object.phase(), 0U);
  EXPECT_EQ(object.add_bytes(64), "");
  EXPECT_EQ(object.phase(), 0U);
  EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.phase(), 1U);
  // Expected before the arrival, and they come after it.
  EXPECT_EQ(object.add_bytes(32), "");
  EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.phase(), 1U);
  EXPECT_EQ(object.pending(), 0U);
  EXPECT_EQ(object.add_bytes(-16), "");
  EXPECT_EQ(object.add_bytes(-16), "");
  EXPECT_EQ(object.phase(), 2U);
}

TEST(MbarrierObject, RefusesWhatItCannotCount) {
  // 2^20 - 1 = 1048575 is the most of both counts.
  Mbarrier object{Mbarrier::kCountMax};
  EXPECT_EQ(object.add_bytes(1048575), "");
  EXPECT_NE(object.add_bytes(1), "");
  EXPECT_EQ(object.tx_count(), 1048575);
  EXPECT_EQ(object.add_bytes(-2 * 1048575), "");
  EXPECT_NE(object.add_bytes(-1), "");
  EXPECT_NE(object.arrive(0, Mbarrier::Arrival::whole), "");
  EXPECT_NE(object.arrive(1048576, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.arrive(1048574, Mbarrier::Arrival::whole), "");
  EXPECT_NE(object.arrive(2, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.pending(), 1U);
}

TEST(MbarrierObject, DropsArrivalsFromTheNextPhaseOn) {
  Mbarrier object{3};
  EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::drop), "");
  EXPECT_EQ(object.arrive(2, Mbarrier::Arrival::whole), "");
  EXPECT_EQ(object.phase(), 1U);
  EXPECT_EQ(object.pending(), 2U);
}

TEST(MbarrierObject, RefusesToCompleteAPhaseWithNoComplete) {
  Mbarrier object{2};
  EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::no_complete), "");
  EXPECT_NE(object.arrive(1, Mbarrier::Arrival::no_complete), "");
  EXPECT_EQ(object.phase(), 0U);
}

TEST(MbarrierObject, KeepsTheParityOverManyPhases) {
  Mbarrier object{1};
  for (std::uint64_t phase = 0; phase < 20; ++phase) {
    const std::uint64_t token = object.bits();
    const auto parity = static_cast<std::uint32_t>(phase % 2);
    EXPECT_FALSE(object.is_parity_over(parity));
    EXPECT_TRUE(object.is_parity_over(1 - parity));
    EXPECT_FALSE(object.is_over(token));
    EXPECT_EQ(object.arrive(1, Mbarrier::Arrival::whole), "");
    EXPECT_TRUE(object.is_over(token)) << phase;
    EXPECT_TRUE(object.is_recent(token)) << phase;
    EXPECT_TRUE(object.is_parity_over(parity));
  }
  const std::uint64_t old = Mbarrier{1}.bits();
  EXPECT_FALSE(object.is_recent(old));  // Phase 20 is 4 in the token's 3 bits, the token's is 0.
}

/// Runs `body` on one CTA; each thread leaves %r0. `bar` and `tile` are in shared memory, %r9 is
/// the thread, %r8 the address of bar.
U32s run_cta(const std::string& body, std::uint32_t threads, LaunchResult& result,
             const LaunchRequest& options = {}) {
  SimulatedDevice device;
  const std::uint64_t out = device.upload(U32s(threads, 0));
  device.load(kernel_text(1,
                          ".shared .align 8 .b64 bar[4]; .shared .align 128 .b8 tile[1024];\n"
                          "mov.u32 %r9, %tid.x; mov.u32 %r0, 0; mov.u32 %r8, bar;\n"
                          "setp.eq.u32 %p9, %r9, 0; setp.ge.u32 %p8, %r9, 32;\n" +
                              body +
                              "\nld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r9, 4, %d1; "
                              "st.global.u32 [%d2], %r0; ret;"));
  LaunchRequest request = options;
  request.block = {threads, 1, 1};
  request.is_race_checked = true;
  result = device.run("k", request, Parameters{out});
  return device.download<std::uint32_t>(out, threads);
}

LaunchRequest scheduled(SchedulePolicy policy, std::uint64_t seed = 1) {
  LaunchRequest request;
  request.schedule.policy = policy;
  request.schedule.seed = seed;
  return request;
}

const std::vector<LaunchRequest> kSchedules{
    scheduled(SchedulePolicy::round_robin),  scheduled(SchedulePolicy::reverse),
    scheduled(SchedulePolicy::run_to_block), scheduled(SchedulePolicy::random, 1),
    scheduled(SchedulePolicy::random, 2),    scheduled(SchedulePolicy::pct, 3)};

constexpr const char* kInit =
    "@%p9 mbarrier.init.shared::cta.b64 [bar], 1; @%p9 mbarrier.init.shared.b64 [bar+8], 1; "
    "bar.sync 0;\n";

/// Warp 1 fills the tile four times and warp 0 reads it, in turns: bar says full, bar+8 empty.
std::string ping_pong(const std::string& producer_wait, const std::string& consumer_wait,
                      bool is_arrival_early = false) {
  const std::string arrive = "bar.warp.sync -1; @%p7 mbarrier.arrive.shared::cta.b64 _, [bar+8];";
  return std::string{kInit} +
         "and.b32 %r5, %r9, 31; setp.eq.u32 %p7, %r5, 0; mov.u32 %r2, tile; "
         "mad.lo.u32 %r2, %r5, 4, %r2; mov.u32 %r10, 0; mov.u32 %r11, 0; @%p8 bra PRODUCE;\n"
         "CONSUME: " +
         consumer_wait + (is_arrival_early ? arrive : "") +
         "ld.shared.u32 %r3, [%r2]; add.u32 %r0, %r0, %r3;" + (is_arrival_early ? "" : arrive) +
         "xor.b32 %r11, %r11, 1; "
         "add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 4; @%p1 bra CONSUME; bra.uni DONE;\n"
         "PRODUCE: " +
         producer_wait +
         "mad.lo.u32 %r3, %r10, 100, %r9; st.shared.u32 [%r2], %r3; bar.warp.sync -1; "
         "@%p7 mbarrier.arrive.shared::cta.b64 %d5, [bar]; xor.b32 %r11, %r11, 1; "
         "add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, 4; @%p1 bra PRODUCE;\nDONE:";
}

const std::string kWaitFull =
    "WF: mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], %r11; @!%p2 bra WF;\n";
/// The first wait for "empty" has the parity of the phase before the first, which is over.
const std::string kWaitEmpty =
    "xor.b32 %r12, %r11, 1; WE: mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p2, [bar+8], "
    "%r12, 1000; @!%p2 bra WE;\n";

TEST(Mbarrier, LetsAProducerAndAConsumerTakeTurns) {
  for (const LaunchRequest& schedule : kSchedules) {
    LaunchResult result;
    const U32s got = run_cta(ping_pong(kWaitEmpty, kWaitFull), 64, result, schedule);
    EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
    // The producer of a lane is thread 32 + lane: 4 (32 + lane) + 100 (0 + 1 + 2 + 3).
    for (std::uint32_t thread = 0; thread < 64; ++thread) {
      EXPECT_EQ(got[thread], thread < 32 ? 4 * (32 + thread) + 600 : 0U) << thread;
    }
  }
}

bool has(const LaunchResult& result, FaultKind kind) {
  for (const Fault& fault : result.faults) {
    if (fault.kind == kind) return true;
  }
  return false;
}

TEST(Mbarrier, ShowsAMissingWait) {
  // Who does not wait overruns the other: the tile is read before it is written, or a phase is over
  // twice before the other looks, which then waits for ever.
  LaunchResult result;
  run_cta(ping_pong(kWaitEmpty, ""), 64, result);
  EXPECT_TRUE(has(result, FaultKind::uninitialised_read)) << describe(result.faults);
  for (const LaunchRequest& schedule : kSchedules) {
    run_cta(ping_pong("", kWaitFull), 64, result, schedule);
    EXPECT_TRUE(has(result, FaultKind::deadlock) || has(result, FaultKind::race))
        << describe(result.faults);
  }
}

TEST(Mbarrier, MakesAnEarlyArrivalARaceWhateverTheOrder) {
  for (const LaunchRequest& schedule : kSchedules) {
    LaunchResult result;
    run_cta(ping_pong(kWaitEmpty, kWaitFull, true), 64, result, schedule);
    EXPECT_TRUE(has(result, FaultKind::race)) << describe(result.faults);
  }
}

TEST(Mbarrier, MakesAMissingBarrierBehindTheInitialisationARace) {
  LaunchResult result;
  run_cta(
      "@%p9 mbarrier.init.shared::cta.b64 [bar], 64; bar.warp.sync -1; setp.ne.u32 %p1, %r9, 0; "
      "@%p9 mbarrier.arrive.shared::cta.b64 _, [bar], 32; @%p8 mbarrier.arrive.shared::cta.b64 _, "
      "[bar];",
      64, result);
  ASSERT_EQ(result.faults.size(), 1U) << describe(result.faults);
  EXPECT_EQ(result.faults[0].kind, FaultKind::race);
}

TEST(Mbarrier, GivesTokensThatSayWhatWasPending) {
  // Lanes arrive in order: lane i finds 32 - i pending, and the token of each waits for phase 0.
  LaunchResult result;
  const U32s got = run_cta(
      "@%p9 mbarrier.init.shared::cta.b64 [bar], 32; bar.sync 0; "
      "mbarrier.arrive.shared::cta.b64 %d5, [bar]; mbarrier.pending_count.b64 %r0, %d5; "
      "mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d5; @!%p1 trap; "
      "mbarrier.try_wait.shared::cta.b64 %p1, [bar], %d5, 10; @!%p1 trap;",
      32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(got[lane], 32 - lane);
}

TEST(Mbarrier, TakesGenericAddressesAndCounts) {
  LaunchResult result;
  const U32s got = run_cta(
      "mov.u64 %d3, bar; cvta.shared.u64 %d3, %d3; @%p9 mbarrier.init.b64 [%d3+16], 96; "
      "bar.sync 0; @%p9 mbarrier.arrive.noComplete.release.cta.b64 %d5, [%d3+16], 32; "
      "mbarrier.arrive.release.cluster.b64 %d5, [%d3+16], 2; "
      "mbarrier.test_wait.parity.b64 %p1, [%d3+16], 0; selp.u32 %r0, 1, 0, %p1; bar.warp.sync -1; "
      "@%p9 mbarrier.inval.b64 [%d3+16]; @%p9 mbarrier.init.b64 [%d3+16], 1;",
      32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(got, U32s(32, 1));
}

TEST(Mbarrier, CountsBytesThatThreadsAnnounceThemselves) {
  // 1 arrival with 100 bytes to come; 60 and 40 are completed by hand.
  LaunchResult result;
  const U32s got = run_cta(
      std::string{kInit} +
          "@!%p9 bra WAIT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 60; "
          "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 40; "
          "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 60; "
          "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0; selp.u32 %r0, 9, 0, %p1; "
          "mbarrier.complete_tx.shared::cta.b64 [bar], 40; WAIT: bar.warp.sync -1; "
          "mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @%p1 add.u32 %r0, %r0, 1;",
      32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(got, U32s(32, 1));
}

TEST(Mbarrier, DropsTheArrivalsOfThreadsThatLeave) {
  // 64 threads; warp 1 drops out, so that the second phase is over with 32 arrivals.
  LaunchResult result;
  const U32s got = run_cta(
      "@%p9 mbarrier.init.shared::cta.b64 [bar], 64; bar.sync 0; @%p8 bra LEAVE; "
      "mbarrier.arrive.shared::cta.b64 _, [bar]; W0: mbarrier.try_wait.parity.shared::cta.b64 %p1, "
      "[bar], 0; @!%p1 bra W0; mbarrier.arrive.shared::cta.b64 _, [bar]; "
      "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1; selp.u32 %r0, 1, 0, %p1; "
      "bra.uni DONE; LEAVE: mbarrier.arrive_drop.shared::cta.b64 _, [bar]; DONE:",
      64, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  for (std::uint32_t thread = 0; thread < 64; ++thread)
    EXPECT_EQ(got[thread], thread < 32 ? 1U : 0U);
}

TEST(Mbarrier, CountsTheCopiesOfAThread) {
  // Each thread copies 4 bytes and arrives when they are there: .noinc counts as one of the 32, the
  // other form adds its own arrival, so that bar+8 needs the ordinary one too.
  const std::string copies =
      "@%p9 mbarrier.init.shared::cta.b64 [bar], 32; @%p9 mbarrier.init.shared::cta.b64 [bar+8], "
      "1; "
      "bar.sync 0; ld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r9, 4, %d1; mov.u32 %r2, tile; "
      "mad.lo.u32 %r2, %r9, 4, %r2; cp.async.ca.shared.global [%r2], [%d2], 4; ";
  const std::string wait =
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r7], 0; @!%p1 bra W; "
      "ld.shared.u32 %r0, [%r2]; add.u32 %r0, %r0, 1; bar.sync 0;";
  LaunchResult result;
  U32s got = run_cta(copies +
                         "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]; "
                         "mov.u32 %r7, bar; " +
                         wait,
                     32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(got, U32s(32, 1));
  got = run_cta(copies +
                    "cp.async.mbarrier.arrive.shared.b64 [bar+8]; add.u32 %r7, %r8, 8; "
                    "@%p9 mbarrier.arrive.shared::cta.b64 _, [bar+8]; " +
                    wait,
                32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(got, U32s(32, 1));
  // Without the wait the bytes are not there.
  run_cta(
      copies + "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar]; ld.shared.u32 %r0, [%r2];",
      32, result);
  ASSERT_FALSE(result.faults.empty());
}

std::string only_detail(const std::string& body, std::uint32_t threads, FaultKind kind) {
  LaunchResult result;
  run_cta(body, threads, result);
  if (result.faults.size() != 1) return describe(result.faults);
  EXPECT_EQ(result.faults[0].kind, kind) << result.faults[0].detail;
  return result.faults[0].detail;
}

TEST(MbarrierMisuse, IsReported) {
  const auto misuse = [](const std::string& body) {
    return only_detail(std::string{kInit} + "@!%p9 bra DONE;" + body + "DONE:", 32,
                       FaultKind::mbarrier_misuse);
  };
  EXPECT_EQ(misuse("mbarrier.arrive.shared::cta.b64 _, [bar+16];"),
            "mbarrier at byte 16: not initialised, or invalidated since");
  EXPECT_EQ(
      misuse("mbarrier.inval.shared::cta.b64 [bar]; mbarrier.arrive.shared::cta.b64 _, [bar];"),
      "mbarrier at byte 0: not initialised, or invalidated since");
  EXPECT_EQ(misuse("mbarrier.init.shared::cta.b64 [bar], 1;"),
            "mbarrier at byte 0: initialised again without mbarrier.inval");
  EXPECT_EQ(misuse("mbarrier.init.shared::cta.b64 [bar+16], 0;"),
            "mbarrier at byte 16: expects 0 arrivals, from 1 to 1048575 are possible");
  EXPECT_EQ(misuse("mbarrier.arrive.shared::cta.b64 _, [bar], 2;"),
            "mbarrier at byte 0: 2 arrivals where 1 of 1 are pending");
  EXPECT_EQ(misuse("st.shared.u32 [bar], 7; mbarrier.arrive.shared::cta.b64 _, [bar];"),
            "mbarrier at byte 0: a store has changed the object while it was in use");
  EXPECT_EQ(
      misuse("mbarrier.expect_tx.shared::cta.b64 [bar], 1048575; "
             "mbarrier.expect_tx.shared::cta.b64 [bar], 1;"),
      "mbarrier at byte 0: its tx-count would be 1048576 bytes, at most 1048575 are possible");
  EXPECT_EQ(misuse("mbarrier.arrive.noComplete.shared::cta.b64 %d5, [bar], 1;"),
            "mbarrier at byte 0: an arrival with .noComplete completes phase 0");
  EXPECT_EQ(misuse("mbarrier.arrive.shared::cta.b64 %d5, [bar]; mbarrier.arrive.shared::cta.b64 _, "
                   "[bar]; mbarrier.test_wait.shared::cta.b64 %p1, [bar], %d5;"),
            "mbarrier at byte 0: waits with a token that is no longer that of the last phase");
}

TEST(MbarrierMisuse, OfAnAddressIsReported) {
  EXPECT_EQ(only_detail("@!%p9 bra DONE; mbarrier.init.shared::cta.b64 [bar+4], 1; DONE:", 32,
                        FaultKind::misaligned),
            "");
  // The output has 4 bytes per thread: 8 hold an object.
  EXPECT_EQ(only_detail("ld.param.u64 %d1, [p0]; @%p9 mbarrier.init.b64 [%d1], 1;", 2,
                        FaultKind::mbarrier_misuse),
            "mbarrier at byte 0: not in shared memory");
}

TEST(MbarrierDeadlock, NamesTheObjectItsCountsAndWhoWaits) {
  // 3 arrivals are expected, warp 0 is the only one to arrive: line 6 is that of the body's second.
  const std::string detail = only_detail(
      "@%p9 mbarrier.init.shared::cta.b64 [bar+8], 3; bar.sync 0; @!%p9 bra W;\n"
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+8], 512;\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar+8], 0; @!%p1 bra W;",
      96, FaultKind::deadlock);
  EXPECT_EQ(
      detail,
      "no warp can go on, nobody writes what they wait for: mbarrier at byte 8, phase 0: 2 of "
      "3 arrivals are missing, 512 bytes are missing: warps 0-2 wait at PTX line 11");
}

TEST(MbarrierDeadlock, IsTheSameUnderEverySchedule) {
  for (const LaunchRequest& schedule : kSchedules) {
    LaunchResult result;
    run_cta(std::string{kInit} +
                "@%p8 bra EXIT; W: mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 0; "
                "@!%p1 bra W; EXIT:",
            64, result, schedule);
    ASSERT_EQ(result.faults.size(), 1U);
    EXPECT_EQ(result.faults[0].kind, FaultKind::deadlock);
    EXPECT_NE(result.faults[0].detail.find("1 of 1 arrivals are missing"), std::string::npos)
        << result.faults[0].detail;
  }
}

TEST(Elect, ChoosesTheLowestMember) {
  LaunchResult result;
  U32s got = run_cta("elect.sync %r0|%p1, -1; @%p1 add.u32 %r0, %r0, 100;", 32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(got[lane], lane == 0 ? 100U : 0U);
  got = run_cta(
      "setp.lt.u32 %p2, %r9, 5; @%p2 bra DONE; elect.sync %r0|%p1, 0xffffffe0; "
      "@%p1 add.u32 %r0, %r0, 100; DONE: griddepcontrol.wait; griddepcontrol.launch_dependents; "
      "fence.proxy.async; fence.proxy.async.shared::cta; fence.mbarrier_init.release.cluster;",
      32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane < 5 ? 0U : lane == 5 ? 105U : 5U);
  }
}

}  // namespace
}  // namespace cpverify::sim
