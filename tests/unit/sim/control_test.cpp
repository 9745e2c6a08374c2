#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "sim/isa/control_flow.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

TEST(Branch, SidesMeetAgain) {
  // Even lanes take one side, odd ones the other; behind the join all 32 vote.
  const auto got = run_lanes<std::uint32_t>(
      "and.b32 %r1, %r31, 1; setp.eq.u32 %p1, %r1, 0; @%p1 bra EVEN; mov.u32 %r2, 100; "
      "bra.uni BOTH; EVEN: mov.u32 %r2, 200; BOTH: activemask.b32 %r3; "
      "setp.eq.u32 %p2, %r3, -1; selp.u32 %r4, 1, 0, %p2; add.u32 %out, %r2, %r4;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(got[lane], lane % 2 == 0 ? 201U : 101U) << lane;
  }
}

TEST(Branch, LanesLeaveALoopOneByOneAndMeetBehindIt) {
  // Lane i adds i, i-1, ..., 1.
  const auto got = run_lanes<std::uint32_t>(
      "mov.u32 %out, 0; mov.u32 %r1, %r31; LOOP: setp.eq.u32 %p1, %r1, 0; @%p1 bra DONE; "
      "add.u32 %out, %out, %r1; sub.u32 %r1, %r1, 1; bra LOOP; DONE: activemask.b32 %r2; "
      "setp.ne.u32 %p2, %r2, -1; @%p2 trap;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(got[lane], lane * (lane + 1) / 2);
}

TEST(Branch, NestedDivergenceAndBreaksConverge) {
  // for (i = 0; i < 8; ++i) { if (i > lane) break; if (lane & 1) out += 2; else out += 1; }
  const auto got = run_lanes<std::uint32_t>(
      "mov.u32 %out, 0; mov.u32 %r1, 0; and.b32 %r2, %r31, 1; setp.eq.u32 %p3, %r2, 1;\n"
      "LOOP: setp.gt.u32 %p1, %r1, %r31; @%p1 bra DONE; @%p3 bra ODD; add.u32 %out, %out, 1; "
      "bra NEXT; ODD: add.u32 %out, %out, 2; NEXT: add.u32 %r1, %r1, 1; "
      "setp.lt.u32 %p2, %r1, 8; @%p2 bra LOOP; DONE: bar.warp.sync -1;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t rounds = lane + 1 < 8 ? lane + 1 : 8;
    EXPECT_EQ(got[lane], rounds * (lane % 2 == 0 ? 1 : 2)) << lane;
  }
}

TEST(IndexedBranch, LanesGoWhereTheirIndexSaysAndMeetAgain) {
  // Lane i has index i mod 4; the list names C twice. Behind it all 32 vote.
  const auto got = run_lanes<std::uint32_t>(
      "and.b32 %r1, %r31, 3; LIST: .branchtargets A, B, C, C; brx.idx %r1, LIST; "
      "A: mov.u32 %r2, 10; bra BOTH; B: mov.u32 %r2, 20; bra BOTH; C: mov.u32 %r2, 30; "
      "BOTH: activemask.b32 %r3; setp.eq.u32 %p2, %r3, -1; selp.u32 %r4, 1, 0, %p2; "
      "add.u32 %out, %r2, %r4;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t expected[] = {11, 21, 31, 31};
    EXPECT_EQ(got[lane], expected[lane % 4]) << lane;
  }
}

TEST(IndexedBranch, LanesWithoutTheGuardGoOn) {
  // Lanes below 8 branch, to the only label; the others add 1. The index of those is never looked
  // at.
  const auto got = run_lanes<std::uint32_t>(
      "mov.u32 %out, 5; setp.ge.u32 %p1, %r31, 8; selp.u32 %r1, 99, 0, %p1; "
      "LIST: .branchtargets ONLY; @!%p1 brx.idx.uni %r1, LIST; add.u32 %out, %out, 1; "
      "ONLY: add.u32 %out, %out, 10;");
  for (std::uint32_t lane = 0; lane < 32; ++lane) EXPECT_EQ(got[lane], lane < 8 ? 15U : 16U);
}

/// Runs an entry without memory and returns the result.
LaunchResult run_plain(const std::string& body, const LaunchRequest& request) {
  SimulatedDevice device;
  device.load(kernel_text(0, body));
  return device.run("k", request, Parameters{});
}

TEST(IndexedBranch, ReportsAnIndexWithoutALabel) {
  // Lane 2 is the first whose index, its number, is not below 2.
  const LaunchResult result =
      run_plain("mov.u32 %r1, %laneid; LIST: .branchtargets A, B; brx.idx %r1, LIST; A: B: ret;",
                shape({1, 1, 1}, {32, 1, 1}));
  EXPECT_EQ(result.status, LaunchStatus::aborted);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::illegal_instruction);
  EXPECT_THAT(result.faults[0].detail, testing::HasSubstr("brx.idx with index 2, and 2 labels"));
}

TEST(Exit, LanesThatReturnInOneSideDoNotHoldTheOthers) {
  const LaunchResult result = run_plain(
      "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8; @%p1 bra A; setp.lt.u32 %p2, %r1, 16; "
      "@%p2 ret; bra B; A: exit; B: activemask.b32 %r2; setp.ne.u32 %p3, %r2, 0xffff0000; "
      "@%p3 trap; bar.sync 0;",
      shape({1, 1, 1}, {64, 1, 1}));
  EXPECT_EQ(result.status, LaunchStatus::aborted);  // Warp 1 has all lanes: its mask differs.
  const LaunchResult one_warp = run_plain(
      "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 8; @%p1 bra A; setp.lt.u32 %p2, %r1, 16; "
      "@%p2 ret; bra B; A: exit; B: activemask.b32 %r2; setp.ne.u32 %p3, %r2, 0xffff0000; "
      "@%p3 trap; bar.sync 0;",
      shape({1, 1, 1}, {32, 1, 1}));
  EXPECT_TRUE(one_warp.faults.empty()) << describe(one_warp.faults);
}

TEST(Exit, EmptyBodyReturns) {
  EXPECT_EQ(run_plain("", shape({2, 2, 2}, {33, 1, 1})).status, LaunchStatus::completed);
}

TEST(Barrier, MakesStoresOfOtherWarpsVisible) {
  const LaunchResult result = run_plain(
      ".shared .align 4 .b8 tile[512]; mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; "
      "mov.u32 %r3, tile; add.u32 %r2, %r2, %r3; st.shared.u32 [%r2], %r1; bar.sync 0; "
      "sub.u32 %r4, 127, %r1; shl.b32 %r5, %r4, 2; add.u32 %r5, %r5, %r3; "
      "ld.shared.u32 %r6, [%r5]; setp.ne.u32 %p1, %r6, %r4; @%p1 trap;",
      shape({1, 1, 1}, {128, 1, 1}));
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
}

TEST(Barrier, WarpsThatHaveExitedCountAsArrived) {
  const LaunchResult result =
      run_plain("mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 32; @%p1 ret; bar.sync 0; bar.sync 0;",
                shape({1, 1, 1}, {128, 1, 1}));
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
}

TEST(Barrier, InDivergentCodeIsReported) {
  const LaunchResult result =
      run_plain("mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 7;\n@%p1 bar.sync 0;",
                shape({1, 1, 1}, {32, 1, 1}));
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::barrier_divergence);
  EXPECT_EQ(result.faults[0].count, 7U);
  EXPECT_EQ(result.faults[0].ptx_line, 7U);
}

TEST(Barrier, WarpsAtDifferentBarriersAreADeadlock) {
  const LaunchResult result = run_plain(
      "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; setp.eq.u32 %p1, %r2, 0; @%p1 bra A; "
      "bar.sync 1; ret; A: bar.sync 2;",
      shape({1, 1, 1}, {64, 1, 1}));
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::deadlock);
  EXPECT_EQ(result.faults[0].detail,
            "warps wait for barriers that will not complete: barrier 1 has 1 of 2 warps: warp 1 at "
            "PTX line 6; barrier 2 has 1 of 2 warps: warp 0 at PTX line 6");
}

TEST(Barrier, OfSomeThreadsWaitsForThemOnly) {
  // Warps 0 and 1 use barrier 1 for 64 threads while warp 2 has nothing to do with it.
  const LaunchResult result = run_plain(
      "mov.u32 %r1, %tid.x; setp.ge.u32 %p1, %r1, 64; @%p1 bra C; bar.sync 1, 64; C: bar.sync 0;",
      shape({1, 1, 1}, {96, 1, 1}));
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const LaunchResult odd = run_plain("bar.sync 1, 33;", shape({1, 1, 1}, {64, 1, 1}));
  ASSERT_EQ(odd.faults.size(), 1U);
  EXPECT_EQ(odd.faults[0].kind, FaultKind::invalid_barrier);
}

TEST(Watchdog, EndsALoopWithoutEnd) {
  LaunchRequest request = shape({1, 1, 1}, {32, 1, 1});
  request.instruction_budget = 100'000;
  const LaunchResult result = run_plain("mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; bra L;", request);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::deadlock);
  EXPECT_EQ(result.faults[0].detail, "the launch has used up its instruction budget");
  EXPECT_EQ(result.warp_instructions, 100'000U);
}

TEST(Scheduler, AWarpThatPollsLetsTheOthersRun) {
  // Warp 0 waits for the flag that warp 1 sets.
  const LaunchResult result = run_plain(
      ".shared .align 4 .u32 flag; mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0; "
      "@%p1 st.shared.u32 [flag], 0; bar.sync 0; setp.ge.u32 %p2, %r1, 32; @%p2 bra SET; "
      "WAIT: ld.volatile.shared.u32 %r2, [flag]; setp.eq.u32 %p3, %r2, 0; @%p3 bra WAIT; ret; "
      "SET: st.shared.u32 [flag], 1;",
      shape({1, 1, 1}, {64, 1, 1}));
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
}

TEST(Trap, IsReportedWithItsThread) {
  const LaunchResult result =
      run_plain(".loc 1 12 3\nmov.u32 %r1, %tid.y; setp.eq.u32 %p1, %r1, 2; @%p1 trap;",
                shape({1, 1, 1}, {4, 4, 1}));
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::illegal_instruction);
  EXPECT_EQ(result.faults[0].thread, (std::array<std::uint32_t, 3>{0, 2, 0}));
  EXPECT_EQ(result.faults[0].count, 4U);
  EXPECT_EQ(result.faults[0].source_line, 12U);
}

TEST(SpecialRegisters, NumberThreadsXFastest) {
  SimulatedDevice device;
  const std::uint64_t out = device.allocate(2 * 3 * 24 * 4);
  device.load(kernel_text(
      1,
      "ld.param.u64 %d1, [p0]; mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, %tid.z;\n"
      "mov.u32 %r4, %ntid.x; mov.u32 %r5, %ntid.y; mad.lo.u32 %r6, %r3, %r5, %r2;\n"
      "mad.lo.u32 %r6, %r6, %r4, %r1; mov.u32 %r7, %ctaid.y; mov.u32 %r8, %nctaid.x;\n"
      "mov.u32 %r9, %ctaid.x; mad.lo.u32 %r10, %r7, %r8, %r9; mov.u32 %r11, %ntid.z;\n"
      "mul.lo.u32 %r12, %r4, %r5; mul.lo.u32 %r12, %r12, %r11; mad.lo.u32 %r13, %r10, %r12, %r6;\n"
      "mul.wide.u32 %d2, %r13, 4; add.u64 %d2, %d1, %d2; st.global.u32 [%d2], %r13;"));
  const LaunchResult result = device.run("k", shape({2, 3, 1}, {2, 3, 4}), Parameters{out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const auto got = device.download<std::uint32_t>(out, 2 * 3 * 24);
  for (std::uint32_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i);
}

TEST(SpecialRegisters, LaneMasks) {
  const auto got = run_lanes<std::uint32_t>(
      "mov.u32 %r1, %lanemask_lt; mov.u32 %r2, %lanemask_ge; or.b32 %r3, %r1, %r2; "
      "mov.u32 %r4, %lanemask_eq; mov.u32 %r5, %lanemask_le; sub.u32 %r5, %r5, %r4; "
      "xor.b32 %r5, %r5, %r1; mov.u32 %r6, %lanemask_gt; or.b32 %r6, %r6, %r4; "
      "xor.b32 %r6, %r6, %r2; not.b32 %r3, %r3; or.b32 %out, %r3, %r5; or.b32 %out, %out, %r6;");
  EXPECT_EQ(got, U32s(32, 0));
}

TEST(Launch, LimitsAreErrorsNotCrashes) {
  const auto status = [](LaunchRequest request) {
    return run_plain(".shared .align 4 .b8 tile[1024]; ret;", request).status;
  };
  EXPECT_EQ(status(shape({1, 1, 1}, {1024, 1, 1})), LaunchStatus::completed);
  EXPECT_EQ(status(shape({1, 1, 1}, {1025, 1, 1})), LaunchStatus::invalid_value);
  EXPECT_EQ(status(shape({1, 1, 1}, {512, 4, 1})), LaunchStatus::invalid_value);
  EXPECT_EQ(status(shape({1, 1, 1}, {0, 1, 1})), LaunchStatus::invalid_value);
  EXPECT_EQ(status(shape({0, 1, 1}, {1, 1, 1})), LaunchStatus::invalid_value);
  EXPECT_EQ(status(shape({1, 65536, 1}, {1, 1, 1})), LaunchStatus::invalid_value);
  EXPECT_EQ(status(shape({1, 1, 1}, {1, 1, 65})), LaunchStatus::invalid_value);
  LaunchRequest shared = shape({1, 1, 1}, {1, 1, 1});
  shared.shared_bytes = 48 * 1024 - 1024;
  EXPECT_EQ(status(shared), LaunchStatus::completed);
  shared.shared_bytes += 1;
  EXPECT_EQ(status(shared), LaunchStatus::out_of_resources);
  shared.shared_bytes_optin = 200 * 1024;
  EXPECT_EQ(status(shared), LaunchStatus::completed);
  shared.shared_bytes = shared.shared_bytes_optin = 227 * 1024;
  EXPECT_EQ(status(shared), LaunchStatus::out_of_resources);
  shared.shared_bytes = 0xffffffff;
  EXPECT_EQ(status(shared), LaunchStatus::out_of_resources);
}

TEST(Launch, ParameterBytesMustFit) {
  SimulatedDevice device;
  device.load(
      module_text(".entry k(.param .u32 a, .param .u64 b, .param .u16 c, "
                  ".param .align 8 .b8 d[12]) .maxntid 64, 1, 1 { ret; }"));
  const KernelInfo& info = kernel_info(*device.program().find("k"));
  ASSERT_EQ(info.parameters.size(), 4U);
  EXPECT_EQ(info.parameters[1].name, "b");
  EXPECT_EQ(info.parameters[1].offset_bytes, 8U);
  EXPECT_EQ(info.parameters[2].offset_bytes, 16U);
  EXPECT_EQ(info.parameters[3].offset_bytes, 24U);
  EXPECT_EQ(info.parameters[3].size_bytes, 12U);
  EXPECT_EQ(info.parameter_bytes, 36U);
  EXPECT_EQ(info.max_threads, 64U);
  LaunchRequest request = shape({1, 1, 1}, {32, 1, 1});
  const std::vector<std::byte> bytes(36);
  request.parameters = bytes;
  EXPECT_EQ(launch(device.memory(), *device.program().find("k"), request).status,
            LaunchStatus::completed);
  request.parameters = std::span{bytes}.first(32);
  EXPECT_EQ(launch(device.memory(), *device.program().find("k"), request).status,
            LaunchStatus::invalid_value);
  request.parameters = bytes;
  request.block = {65, 1, 1};
  EXPECT_EQ(launch(device.memory(), *device.program().find("k"), request).status,
            LaunchStatus::out_of_resources);
}

TEST(PostDominators, OfADiamondALoopAndATwoWayExit) {
  // 0 -> {1, 2} -> 3 -> exit (4).
  EXPECT_EQ(immediate_post_dominators({{1, 2}, {3}, {3}, {4}}),
            (std::vector<std::uint32_t>{3, 3, 3, 4}));
  // 0 -> 1 <-> 2, 1 -> 3 -> exit.
  EXPECT_EQ(immediate_post_dominators({{1}, {2, 3}, {1}, {4}}),
            (std::vector<std::uint32_t>{1, 3, 1, 4}));
  // 0 -> {1, 2}, both exit (3): they meet at the exit only.
  EXPECT_EQ(immediate_post_dominators({{1, 2}, {3}, {3}}), (std::vector<std::uint32_t>{3, 3, 3}));
  // 0 -> {1, 2}; 1 loops for ever and has none; 2 exits.
  EXPECT_EQ(immediate_post_dominators({{1, 2}, {1}, {3}}),
            (std::vector<std::uint32_t>{2, kNoIndex, 3}));
}

}  // namespace
}  // namespace cpverify::sim
