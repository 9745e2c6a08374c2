#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

/// Runs `body` on one CTA; each thread leaves %r0.
U32s run_cta(const std::string& body, std::uint32_t threads, LaunchResult& result) {
  SimulatedDevice device;
  const std::uint64_t out = device.upload(U32s(threads, 0));
  device.load(kernel_text(1, "mov.u32 %r9, %tid.x; mov.u32 %r0, 0;\n" + body +
                                 "\nld.param.u64 %d1, [p0]; mad.wide.u32 %d2, %r9, 4, %d1; "
                                 "st.global.u32 [%d2], %r0; ret;"));
  result = device.run("k", shape({1, 1, 1}, {threads, 1, 1}), Parameters{out});
  return device.download<std::uint32_t>(out, threads);
}

TEST(BarArrive, LetsTheProducerGoOn) {
  // Warp 1 stores and arrives; warp 0 waits for 64 threads and reads. The other way round, warp 0
  // has arrived long before warp 1 waits.
  LaunchResult result;
  const U32s got = run_cta(
      ".shared .align 4 .b8 tile[128]; mov.u32 %r2, tile; and.b32 %r3, %r9, 31; "
      "mad.lo.u32 %r2, %r3, 4, %r2; setp.ge.u32 %p1, %r9, 32; @%p1 bra PRODUCE; "
      "bar.arrive 2, 64; bar.sync 1, 64; ld.shared.u32 %r0, [%r2]; bra.uni DONE; "
      "PRODUCE: st.shared.u32 [%r2], %r9; bar.arrive 1, 64; bar.sync 2, 64; DONE:",
      64, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  for (std::uint32_t thread = 0; thread < 64; ++thread) {
    EXPECT_EQ(got[thread], thread < 32 ? thread + 32 : 0U) << thread;
  }
}

TEST(BarArrive, DoesNotCountForTheNextUse) {
  // One arrival for two waits: the second is a deadlock.
  LaunchResult result;
  run_cta(
      "setp.ge.u32 %p1, %r9, 32; @%p1 bra ARRIVE; bar.sync 1, 64; bar.sync 1, 64; bra.uni DONE; "
      "ARRIVE: bar.arrive 1, 64; DONE:",
      64, result);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::deadlock);
}

TEST(BarArrive, IsInTheReportOfADeadlock) {
  // Warp 0 waits for three warps, warp 1 has arrived, and the third is gone.
  LaunchResult result;
  run_cta(
      "setp.ge.u32 %p2, %r9, 64; @%p2 ret; setp.ge.u32 %p1, %r9, 32; @%p1 bra ARRIVE; "
      "bar.sync 1, 96; bra.uni DONE; ARRIVE: bar.arrive 1, 96; DONE:",
      96, result);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].detail,
            "warps wait for barriers that will not complete: barrier 1 has 2 of 3 warps: warp 0 at "
            "PTX line 7, warps 1-2 exited, 1 by bar.arrive");
}

TEST(BarArrive, NeedsAMultipleOfTheWarpSize) {
  LaunchResult result;
  run_cta("bar.arrive 1, 33;", 64, result);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::invalid_barrier);
}

TEST(BarRed, CountsOverTheCta) {
  LaunchResult result;
  // Threads below 40 of 80: the last warp has 16 threads.
  const U32s counts =
      run_cta("setp.lt.u32 %p1, %r9, 40; bar.red.popc.u32 %r0, 0, %p1;", 80, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(counts, U32s(80, 40));
  const U32s negated =
      run_cta("setp.lt.u32 %p1, %r9, 40; barrier.red.popc.u32 %r0, 3, 96, !%p1;", 80, result);
  EXPECT_EQ(negated, U32s(80, 40));
}

TEST(BarRed, AllAndAny) {
  LaunchResult result;
  const auto run = [&](const std::string& op, const std::string& limit) {
    return run_cta("setp.lt.u32 %p1, %r9, " + limit + "; bar.red." + op +
                       ".pred %p2, 0, %p1; selp.u32 %r0, 1, 0, %p2;",
                   80, result);
  };
  EXPECT_EQ(run("and", "80"), U32s(80, 1));
  EXPECT_EQ(run("and", "79"), U32s(80, 0));
  EXPECT_EQ(run("or", "1"), U32s(80, 1));
  EXPECT_EQ(run("or", "0"), U32s(80, 0));
}

TEST(BarRed, InDivergentCodeIsReported) {
  LaunchResult result;
  run_cta("setp.lt.u32 %p1, %r9, 40; @%p1 bar.red.popc.u32 %r0, 0, %p1;", 64, result);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::barrier_divergence);
}

TEST(Breakpoint, EndsTheLaunch) {
  LaunchResult result;
  run_cta("setp.eq.u32 %p1, %r9, 3; @%p1 brkpt;", 32, result);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::illegal_instruction);
  const U32s slept = run_cta("nanosleep.u32 1000; mov.u32 %r0, 1;", 32, result);
  EXPECT_TRUE(result.faults.empty());
  EXPECT_EQ(slept, U32s(32, 1));
}

TEST(Clock, GrowsWithEachReadAndIsTheSameInEveryCta) {
  LaunchResult result;
  // Two reads in a row differ by 64; a thread that waits for 1000 ticks goes on.
  const U32s got = run_cta(
      "mov.u32 %r1, %clock; mov.u32 %r2, %clock; sub.u32 %r0, %r2, %r1; mov.u64 %d3, %clock64; "
      "WAIT: mov.u64 %d4, %globaltimer; sub.u64 %d4, %d4, %d3; setp.lt.u64 %p1, %d4, 1000; "
      "@%p1 bra WAIT; mov.u32 %r3, %clock_hi; add.u32 %r0, %r0, %r3;",
      32, result);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(got, U32s(32, 64));
}

TEST(AtomicHalf, AddsEachHalfInLaneOrder) {
  // 32 lanes add (1, 2): 32 = 0x5000, 64 = 0x5400 in f16.
  SimulatedDevice device;
  const std::uint64_t sum = device.upload(U32s{0, 0});
  device.load(kernel_text(1,
                          "ld.param.u64 %d1, [p0]; mov.b32 %r1, 0x40003c00; "
                          "red.global.add.noftz.f16x2 [%d1], %r1; mov.b16 %h1, 0x3f80; "
                          "atom.release.gpu.global.add.noftz.bf16 %h2, [%d1+4], %h1; ret;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{sum});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  // bf16: 32 = 0x4200.
  EXPECT_EQ(device.download<std::uint32_t>(sum, 2), (U32s{0x54005000, 0x00004200}));
}

TEST(AtomicDouble, AddsAndSwapsSixteenBits) {
  SimulatedDevice device;
  const std::uint64_t place = device.upload(U64s{0x3ff0000000000000, 5});
  device.load(kernel_text(1,
                          "ld.param.u64 %d1, [p0]; mov.b64 %d2, 0d3FE0000000000000; "
                          "atom.global.add.f64 %d3, [%d1], %d2; mov.b16 %h1, 5; mov.b16 %h2, 9; "
                          "atom.global.cas.b16 %h3, [%d1+8], %h1, %h2; ret;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{place});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  // 1 + 32 * 0.5 = 17 = 0x4031...; the first lane swaps 5 for 9, the others find 9.
  EXPECT_EQ(device.download<std::uint64_t>(place, 2), (U64s{0x4031000000000000, 9}));
}

}  // namespace
}  // namespace cpverify::sim
