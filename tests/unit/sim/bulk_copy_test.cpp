#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

struct CtaRun {
  LaunchResult result;
  U32s out;
};

/// Runs `body` on one CTA of 64 threads. %d1 and %d2 are the addresses of 256 input words (1000,
/// 1001, ...) and of 256 output words (zeros); `bar` (initialised for one arrival) is at byte 0 of
/// shared memory, `tile` (2 KiB) at 128. %r9 is the thread, %p9 says that it is thread 0.
CtaRun run_cta(const std::string& body) {
  SimulatedDevice device;
  U32s in(256);
  std::iota(in.begin(), in.end(), 1000U);
  const std::uint64_t source = device.upload(in);
  const std::uint64_t target = device.upload(U32s(256, 0));
  device.load(kernel_text(
      2,
      ".shared .align 8 .b64 bar[4]; .shared .align 128 .b8 tile[2048];\n"
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r9, %tid.x; "
      "mov.u64 %d9, 0; setp.eq.u32 %p9, %r9, 0; mad.wide.u32 %d3, %r9, 4, %d2; mov.u32 %r2, tile; "
      "mad.lo.u32 %r3, %r9, 4, %r2; @%p9 mbarrier.init.shared::cta.b64 [bar], 1; "
      "@%p9 mbarrier.init.shared::cta.b64 [bar+16], 1; "
      "fence.proxy.async; bar.sync 0;\n" +
          body));
  CtaRun run;
  run.result = device.run("k", race_checked({1, 1, 1}, {64, 1, 1}), Parameters{source, target});
  run.out = device.download<std::uint32_t>(target, 256);
  return run;
}

constexpr const char* kLoad =
    "@!%p9 bra LOADED; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; "
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1], 512, [bar]; "
    "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%r2+512], "
    "[%d1+512], 512, [bar], %d9; LOADED: ";
constexpr const char* kWait =
    "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W;\n";
constexpr const char* kUse = "ld.shared.u32 %r1, [%r3+512]; st.global.u32 [%d3], %r1;\n";

std::vector<FaultKind> kinds(const LaunchResult& result) {
  std::vector<FaultKind> found;
  for (const Fault& fault : result.faults) found.push_back(fault.kind);
  return found;
}

bool has(const LaunchResult& result, FaultKind kind) {
  for (const Fault& fault : result.faults) {
    if (fault.kind == kind) return true;
  }
  return false;
}

TEST(BulkLoad, BringsTheBytesWhenTheMbarrierSaysSo) {
  const CtaRun run = run_cta(std::string{kLoad} + kWait + kUse);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  // Word 128 + i of the input.
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], 1128 + i);
}

TEST(BulkLoad, IsUnwrittenAndItsOwnersBeforeTheWait) {
  const CtaRun run = run_cta(std::string{kLoad} + kUse + kWait);
  EXPECT_TRUE(has(run.result, FaultKind::uninitialised_read)) << describe(run.result.faults);
  EXPECT_TRUE(has(run.result, FaultKind::race)) << describe(run.result.faults);
}

TEST(BulkLoad, WithTheWrongParityIsNotWaitedFor) {
  // Parity 1 is that of the phase before the first, which is over: the wait returns at once.
  const CtaRun run =
      run_cta(std::string{kLoad} +
              "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 1; @!%p1 bra W;" + kUse +
              "V: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; "
              "@!%p1 bra V;");
  EXPECT_TRUE(has(run.result, FaultKind::uninitialised_read)) << describe(run.result.faults);
}

TEST(BulkLoad, OfABufferThatOthersStillReadIsARace) {
  const std::string refill =
      "@!%p9 bra NEXT; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar+16], 1024; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1], 1024, "
      "[bar+16]; NEXT: V: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar+16], 0; "
      "@!%p1 bra V;\n";
  CtaRun run = run_cta(std::string{kLoad} + kWait + kUse + refill);
  EXPECT_TRUE(has(run.result, FaultKind::race)) << describe(run.result.faults);
  run = run_cta(std::string{kLoad} + kWait + kUse + "bar.sync 0;" + refill);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
}

TEST(BulkLoad, ThatNobodyExpectsLeavesTheTxCountWrong) {
  // 512 bytes too few: the phase does not end.
  const CtaRun run = run_cta(
      "@!%p9 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 1024; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1], 512, "
      "[bar]; "
      "L:" +
      std::string{kWait});
  ASSERT_EQ(kinds(run.result), std::vector{FaultKind::deadlock}) << describe(run.result.faults);
  EXPECT_NE(run.result.faults[0].detail.find("0 of 1 arrivals are missing, 512 bytes are missing"),
            std::string::npos)
      << run.result.faults[0].detail;
  // 16 bytes too many.
  const CtaRun more = run_cta(
      "@!%p9 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 496; "
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%d1], 512, "
      "[bar]; "
      "L:" +
      std::string{kWait});
  ASSERT_EQ(kinds(more.result), std::vector{FaultKind::deadlock}) << describe(more.result.faults);
  EXPECT_NE(more.result.faults[0].detail.find("16 bytes more than expected have come"),
            std::string::npos)
      << more.result.faults[0].detail;
}

TEST(BulkLoad, ThatTheCtaDoesNotWaitForIsReported) {
  const CtaRun run = run_cta(kLoad);
  ASSERT_EQ(kinds(run.result),
            (std::vector{FaultKind::unfinished_copy, FaultKind::unfinished_copy}))
      << describe(run.result.faults);
  EXPECT_EQ(run.result.status, LaunchStatus::completed);
}

std::string load(const std::string& target, const std::string& source, std::uint32_t bytes) {
  return "@!%p9 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], " +
         std::to_string(bytes) +
         "; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [" + target + "], [" +
         source + "], " + std::to_string(bytes) + ", [bar]; L:" + kWait;
}

TEST(BulkLoad, ChecksItsOperands) {
  EXPECT_EQ(kinds(run_cta(load("tile", "%d1", 0)).result), std::vector<FaultKind>{});
  EXPECT_EQ(kinds(run_cta(load("tile", "%d1", 24)).result),
            std::vector{FaultKind::illegal_instruction});
  EXPECT_EQ(kinds(run_cta(load("tile+8", "%d1", 16)).result), std::vector{FaultKind::misaligned});
  EXPECT_EQ(kinds(run_cta(load("tile", "%d1+4", 16)).result), std::vector{FaultKind::misaligned});
  // The input has 1024 bytes, shared memory 128 + 2048.
  EXPECT_EQ(kinds(run_cta(load("tile", "%d1+16", 1008)).result), std::vector<FaultKind>{});
  CtaRun run = run_cta(load("tile", "%d1+16", 1024));
  ASSERT_EQ(kinds(run.result), std::vector{FaultKind::out_of_bounds_read});
  EXPECT_EQ(run.result.faults[0].address, run.result.faults[0].allocation + 1024);
  run = run_cta(load("tile+2032", "%d1", 32));
  ASSERT_EQ(kinds(run.result), std::vector{FaultKind::out_of_bounds_write});
  EXPECT_EQ(run.result.faults[0].address, 2176U);
  EXPECT_EQ(kinds(run_cta("@%p9 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                          "[tile], [%d1], 16, [bar+8];")
                      .result),
            std::vector{FaultKind::mbarrier_misuse});
}

constexpr const char* kFill = "st.shared.u32 [%r3], %r9; st.shared.u32 [%r3+256], %r9;\n";
constexpr const char* kStore =
    "@!%p9 bra STORED; cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 512; "
    "cp.async.bulk.commit_group; ";
constexpr const char* kFence = "fence.proxy.async.shared::cta; bar.sync 0;\n";

TEST(BulkStore, WritesWhatWasInSharedMemory) {
  const CtaRun run =
      run_cta(std::string{kFill} + kFence + kStore + "cp.async.bulk.wait_group 0; STORED:");
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  for (std::uint32_t i = 0; i < 256; ++i) EXPECT_EQ(run.out[i], i < 128 ? i % 64 : 0) << i;
}

TEST(BulkStore, NeedsAProxyFenceBehindOrdinaryStores) {
  const CtaRun run =
      run_cta(std::string{kFill} + "bar.sync 0;" + kStore + "cp.async.bulk.wait_group 0; STORED:");
  ASSERT_EQ(kinds(run.result), std::vector{FaultKind::race});
  EXPECT_NE(run.result.faults[0].detail.find("no fence.proxy.async is between them"),
            std::string::npos)
      << run.result.faults[0].detail;
  // A fence of the thread that copies, behind the barrier, will do.
  EXPECT_TRUE(run_cta(std::string{kFill} + "bar.sync 0; @%p9 fence.proxy.async;" + kStore +
                      "cp.async.bulk.wait_group 0; STORED:")
                  .result.faults.empty());
  // One before the barrier orders its own warp's stores only: warp 1 has none.
  EXPECT_EQ(kinds(run_cta(std::string{kFill} + "@%p9 fence.proxy.async; bar.sync 0;" + kStore +
                          "cp.async.bulk.wait_group 0; STORED:")
                      .result),
            std::vector{FaultKind::race});
}

TEST(BulkStore, OwnsItsSourceUntilItIsRead) {
  const std::string overwrite = "STORED: bar.sync 0; st.shared.u32 [%r3], %r9; bar.sync 0;";
  EXPECT_TRUE(has(run_cta(std::string{kFill} + kFence + kStore + overwrite +
                          "@%p9 cp.async.bulk.wait_group.read 0;")
                      .result,
                  FaultKind::race));
  EXPECT_TRUE(
      run_cta(std::string{kFill} + kFence + kStore + "cp.async.bulk.wait_group.read 0;" + overwrite)
          .result.faults.empty());
}

TEST(BulkStore, OwnsItsTargetUntilItIsWritten) {
  const std::string read = "STORED: bar.sync 0; ld.global.u32 %r1, [%d3]; bar.sync 0;";
  EXPECT_TRUE(
      has(run_cta(std::string{kFill} + kFence + kStore + "cp.async.bulk.wait_group.read 0;" + read +
                  "@%p9 cp.async.bulk.wait_group 0;")
              .result,
          FaultKind::race));
  EXPECT_TRUE(run_cta(std::string{kFill} + kFence + kStore + "cp.async.bulk.wait_group 0;" + read)
                  .result.faults.empty());
}

TEST(BulkStore, ThatTheCtaDoesNotWaitForIsReported) {
  const CtaRun run = run_cta(std::string{kFill} + kFence + kStore + "STORED:");
  EXPECT_EQ(kinds(run.result), std::vector{FaultKind::unfinished_copy});
  EXPECT_EQ(run.out[1], 1U);  // The copy is done all the same.
}

TEST(BulkStore, WaitsForOlderGroupsOnly) {
  // Two groups: with one pending the first has been read, and its source may be changed.
  const std::string two =
      std::string{kFill} + kFence +
      "@!%p9 bra S; cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], "
      "256; cp.async.bulk.commit_group; cp.async.bulk.global.shared::cta.bulk_group "
      "[%d2+256], [tile+256], 256; cp.async.bulk.commit_group; "
      "cp.async.bulk.wait_group.read 1; ";
  const std::string end = " cp.async.bulk.wait_group 0; S:";
  EXPECT_TRUE(run_cta(two + "st.shared.u32 [tile], 5;" + end).result.faults.empty());
  EXPECT_TRUE(has(run_cta(two + "st.shared.u32 [tile+256], 5;" + end).result, FaultKind::race));
}

TEST(BulkMove, CopiesWithinSharedMemory) {
  const CtaRun run = run_cta(
      std::string{kFill} + kFence +
      "@!%p9 bra L; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 256; "
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [tile+512], [tile], "
      "256, [bar]; L:" +
      kWait + kUse);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(run.out[i], i);
}

TEST(BulkReduce, CombinesElementByElement) {
  const auto reduce = [](const std::string& suffix, const std::string& value) {
    return run_cta("st.shared.u32 [%r3], " + value + ";" + kFence +
                   "@!%p9 bra S; cp.async.bulk.prefetch.L2.global [%d1], 16; "
                   "cp.async.bulk.global.shared::cta.bulk_group [%d2], [tile], 256; "
                   "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; "
                   "cp.reduce.async.bulk.global.shared::cta.bulk_group." +
                   suffix +
                   " [%d2], [tile], 128; cp.async.bulk.commit_group; "
                   "cp.async.bulk.wait_group 0; S:");
  };
  const CtaRun sum = reduce("add.u32", "%r9");
  EXPECT_TRUE(sum.result.faults.empty()) << describe(sum.result.faults);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(sum.out[i], i < 32 ? 2 * i : i);
  // inc: i >= i is true, so 0.
  EXPECT_EQ(reduce("inc.u32", "%r9").out[5], 0U);
  EXPECT_EQ(reduce("max.s32", "%r9").out[31], 31U);
  EXPECT_EQ(reduce("xor.b32", "%r9").out[31], 0U);
  EXPECT_EQ(reduce("add.f32", "0f3fc00000").out[0], 0x40400000U);  // 1.5 + 1.5 = 3.
  // 0xffffffff + 0xffffffff with a carry into the upper half: 0xffffffff'fffffffe.
  EXPECT_EQ(reduce("add.u64", "-1").out[0], 0xfffffffeU);
  EXPECT_EQ(reduce("add.u64", "-1").out[1], 0xffffffffU);
}

TEST(BulkReduce, ByManyCtasIsNoRace) {
  SimulatedDevice device;
  const std::uint64_t target = device.upload(U32s(64, 0));
  device.load(kernel_text(
      1,
      ".shared .align 16 .b8 tile[256]; mov.u32 %r9, %tid.x; mov.u32 %r2, tile; "
      "mad.lo.u32 %r3, %r9, 4, %r2; st.shared.u32 [%r3], %r9; fence.proxy.async; bar.sync 0; "
      "ld.param.u64 %d1, [p0]; setp.ne.u32 %p1, %r9, 0; @%p1 ret; "
      "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%d1], [tile], 256; "
      "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; ret;"));
  const LaunchResult result =
      device.run("k", race_checked({5, 1, 1}, {64, 1, 1}), Parameters{target});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const auto got = device.download<std::uint32_t>(target, 64);
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(got[i], 5 * i);
}

}  // namespace
}  // namespace cpverify::sim
