#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/global_memory.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {
namespace {

/// Runs `body` on one warp with the address of `memory_bytes` written bytes in %d1; %d2 is the
/// address plus 4 * lane, %r1 the lane.
struct MemoryRun {
  SimulatedDevice device;
  std::uint64_t base = 0;
  LaunchResult result;

  MemoryRun(const std::string& body, std::size_t memory_bytes, bool is_written = true,
            std::uint32_t threads = 32) {
    base = device.allocate(memory_bytes);
    if (is_written) {
      EXPECT_FALSE(device.memory().write(base, std::vector<std::byte>(memory_bytes)).has_value());
    }
    device.load(kernel_text(1,
                            "ld.param.u64 %d1, [p0]; mov.u32 %r1, %laneid; "
                            "mad.wide.u32 %d2, %r1, 4, %d1;\n" +
                                body));
    result = device.run("k", shape({1, 1, 1}, {threads, 1, 1}), Parameters{base});
  }
};

TEST(Memcheck, AccessBehindTheEndIsReportedWithTheFirstBadByte) {
  const MemoryRun run{"ld.global.u32 %r2, [%d2+4];", 128};
  ASSERT_EQ(run.result.faults.size(), 1U);
  const Fault& fault = run.result.faults[0];
  EXPECT_EQ(fault.kind, FaultKind::out_of_bounds_read);
  EXPECT_EQ(fault.address, run.base + 128);
  EXPECT_EQ(fault.allocation, run.base);
  EXPECT_EQ(fault.allocation_bytes, 128U);
  EXPECT_EQ(fault.size_bytes, 4U);
  EXPECT_EQ(fault.count, 1U);
  EXPECT_EQ(fault.thread[0], 31U);
  EXPECT_EQ(run.result.status, LaunchStatus::aborted);
}

TEST(Memcheck, AccessThatStraddlesTheEndIsOutOfBounds) {
  // 126 bytes: the word of lane 31 begins inside at 124 and ends outside.
  const MemoryRun run{"st.global.u32 [%d2], %r1;", 126};
  ASSERT_EQ(run.result.faults.size(), 1U);
  EXPECT_EQ(run.result.faults[0].kind, FaultKind::out_of_bounds_write);
  EXPECT_EQ(run.result.faults[0].address, run.base + 126);
}

TEST(Memcheck, AccessBeforeTheBeginAndNearNullAreOutOfBounds) {
  const MemoryRun before{"ld.global.u32 %r2, [%d1+-4];", 128};
  ASSERT_EQ(before.result.faults.size(), 1U);
  EXPECT_EQ(before.result.faults[0].allocation, 0U);
  EXPECT_EQ(before.result.faults[0].count, 32U);
  const MemoryRun null{"mov.u64 %d3, 0; st.global.u32 [%d3+16], %r1;", 128};
  ASSERT_EQ(null.result.faults.size(), 1U);
  EXPECT_EQ(null.result.faults[0].address, 16U);
}

TEST(Memcheck, MisalignedAccessIsReported) {
  const MemoryRun run{"ld.global.u32 %r2, [%d1+2];", 128};
  ASSERT_EQ(run.result.faults.size(), 1U);
  EXPECT_EQ(run.result.faults[0].kind, FaultKind::misaligned);
  EXPECT_EQ(run.result.faults[0].address, run.base + 2);
  // A vector needs the alignment of the whole.
  const MemoryRun vector{"ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d1+8];", 128};
  ASSERT_EQ(vector.result.faults.size(), 1U);
  EXPECT_EQ(vector.result.faults[0].kind, FaultKind::misaligned);
  EXPECT_EQ(vector.result.faults[0].size_bytes, 16U);
}

TEST(Memcheck, InactiveLanesMayHoldAnyAddress) {
  const MemoryRun run{
      "setp.lt.u32 %p1, %r1, 4; @!%p1 mov.u64 %d2, 12345; "
      "@%p1 ld.global.u32 %r2, [%d2]; @%p1 st.global.u32 [%d2], %r1;",
      16};
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
}

TEST(Memcheck, UseAfterFreeIsToldFromOutOfBounds) {
  SimulatedDevice device;
  const std::uint64_t address = device.upload(std::vector<std::uint32_t>(32));
  device.load(kernel_text(1, "ld.param.u64 %d1, [p0]; ld.global.u32 %r1, [%d1];"));
  EXPECT_TRUE(device.memory().free(address));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{address});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::use_after_free);
}

TEST(Memcheck, MemoryOfAnotherDeviceIsOutOfReach) {
  SimulatedDevice device;
  const std::uint64_t address = device.memory().allocate(3, 64);
  device.load(kernel_text(1, "ld.param.u64 %d1, [p0]; st.global.u64 [%d1], %d1;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{address});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::out_of_bounds_write);
  EXPECT_EQ(result.faults[0].detail,
            "memory of device 3; peer access of device 0 to it is not enabled");
}

TEST(Memcheck, SharedAndLocalHaveBounds) {
  const MemoryRun shared{".shared .align 4 .b8 tile[64]; st.shared.u32 [tile+64], %r1;", 4};
  ASSERT_EQ(shared.result.faults.size(), 1U);
  EXPECT_EQ(shared.result.faults[0].space, MemorySpace::shared);
  EXPECT_EQ(shared.result.faults[0].address, 64U);
  const MemoryRun local{".local .align 16 .b8 frame[32]; ld.local.u32 %r2, [frame+32];", 4};
  ASSERT_EQ(local.result.faults.size(), 1U);
  EXPECT_EQ(local.result.faults[0].space, MemorySpace::local);
}

TEST(Initcheck, UnwrittenBytesReadAsAllOnesAndAreCounted) {
  MemoryRun run{
      "ld.global.u32 %r2, [%d2]; setp.eq.u32 %p1, %r2, -1; selp.u32 %r3, 1, 0, %p1; "
      "st.global.u32 [%d2], %r3;",
      128, false};
  ASSERT_EQ(run.result.faults.size(), 1U);
  EXPECT_EQ(run.result.faults[0].kind, FaultKind::uninitialised_read);
  EXPECT_EQ(run.result.faults[0].count, 32U);
  EXPECT_EQ(run.result.faults[0].address, run.base);
  EXPECT_EQ(run.result.status, LaunchStatus::completed);
  EXPECT_EQ(run.device.download<std::uint32_t>(run.base, 32), std::vector<std::uint32_t>(32, 1));
}

TEST(Initcheck, KnowsSingleBytes) {
  // Bytes 0 and 1 written, 2 and 3 not: the word at 0 is not initialised, the half is.
  const MemoryRun run{
      "cvt.u16.u32 %h1, %r1; setp.eq.u32 %p1, %r1, 0; "
      "@%p1 st.global.u16 [%d1], %h1; @%p1 ld.global.u16 %h2, [%d1]; "
      "@%p1 ld.global.u32 %r3, [%d1]; @%p1 st.global.u16 [%d1+4], %h2; "
      "@%p1 st.global.u32 [%d1+8], %r3;",
      128, false};
  ASSERT_EQ(run.result.faults.size(), 1U) << describe(run.result.faults);
  EXPECT_EQ(run.result.faults[0].address, run.base + 2);
  EXPECT_EQ(run.result.faults[0].count, 1U);
}

TEST(Initcheck, SharedStartsUnwrittenInEveryCta) {
  SimulatedDevice device;
  const std::uint64_t out = device.allocate(4);
  device.load(kernel_text(1,
                          ".shared .align 4 .u32 word; mov.u32 %r1, %ctaid.x; "
                          "setp.eq.u32 %p1, %r1, 0; @%p1 st.shared.u32 [word], %r1; "
                          "@!%p1 ld.shared.u32 %r2, [word]; ld.param.u64 %d1, [p0]; "
                          "@!%p1 st.global.u32 [%d1], %r2;"));
  const LaunchResult result = device.run("k", shape({2, 1, 1}, {32, 1, 1}), Parameters{out});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].cta[0], 1U);
  EXPECT_EQ(result.faults[0].space, MemorySpace::shared);
}

TEST(Initcheck, LocalFramesAreSeparate) {
  // Lane 0 writes its frame; every other lane reads its own unwritten one.
  const MemoryRun run{
      ".local .align 4 .b8 frame[8]; setp.eq.u32 %p1, %r1, 0; "
      "@%p1 st.local.u32 [frame+4], %r1; ld.local.u32 %r2, [frame+4]; "
      "st.global.u32 [%d2], %r2;",
      128};
  ASSERT_EQ(run.result.faults.size(), 1U);
  EXPECT_EQ(run.result.faults[0].count, 31U);
  EXPECT_EQ(run.result.faults[0].thread[0], 1U);
}

TEST(Addressing, GenericAddressesReachEverySpaceInOneInstruction) {
  // Lanes 0-7 global, 8-15 shared, 16-31 local; every lane stores its number and loads it back.
  const MemoryRun run{
      ".shared .align 4 .b8 tile[128]; .local .align 4 .b8 frame[4];\n"
      "mov.u64 %d3, tile; cvta.shared.u64 %d3, %d3; mad.wide.u32 %d3, %r1, 4, %d3;\n"
      "mov.u64 %d4, frame; cvta.local.u64 %d4, %d4;\n"
      "setp.lt.u32 %p1, %r1, 8; setp.lt.u32 %p2, %r1, 16;\n"
      "selp.b64 %d5, %d3, %d4, %p2; selp.b64 %d5, %d2, %d5, %p1;\n"
      "st.u32 [%d5], %r1; ld.u32 %r2, [%d5]; setp.ne.u32 %p3, %r1, %r2; @%p3 trap;\n"
      "cvta.to.shared.u64 %d6, %d3; setp.ge.u64 %p4, %d6, 128; @%p4 trap;",
      128};
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
}

TEST(Addressing, LanesMayTouchDifferentAllocations) {
  SimulatedDevice device;
  const std::uint64_t a = device.upload(std::vector<std::uint32_t>{1, 2});
  const std::uint64_t b = device.upload(std::vector<std::uint32_t>{3, 4});
  device.load(kernel_text(2,
                          "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, %tid.x; "
                          "and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; "
                          "selp.b64 %d3, %d1, %d2, %p1; ld.global.u32 %r3, [%d3]; "
                          "st.global.u32 [%d3+4], %r3;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{a, b});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::uint32_t>(a, 2), (std::vector<std::uint32_t>{1, 1}));
  EXPECT_EQ(device.download<std::uint32_t>(b, 2), (std::vector<std::uint32_t>{3, 3}));
}

TEST(LoadStore, VectorsKeepTheirOrderAndNarrowTypesTheirSign) {
  const auto words = run_lanes<std::uint32_t>(
      "ld.param.u64 %d1, [p0]; ld.global.v4.u32 {%r1, %r2, %r3, %r4}, "
      "[%d1]; st.global.v2.u32 [%d1], {%r4, %r3}; "
      "ld.global.u32 %out, [%d1]; add.u32 %out, %out, %r1;",
      U32s{10, 20, 30, 40});
  EXPECT_EQ(words[0], 50U);
  // The register is wider than the type: sign or zero extension.
  EXPECT_EQ(
      run_lanes<std::uint64_t>("ld.param.u64 %d1, [p0]; ld.global.s8 %out, [%d1];", U32s{0x80})[0],
      static_cast<std::uint64_t>(-128));
  EXPECT_EQ(run_lanes<std::uint32_t>("ld.param.u64 %d1, [p0]; ld.global.u16 %out, [%d1+2];",
                                     U32s{0xfffe0000})[0],
            0xfffeU);
  // And a store of a narrow type takes the low bytes of a wide register.
  EXPECT_EQ(run_lanes<std::uint32_t>("ld.param.u64 %d1, [p0]; bar.warp.sync -1; "
                                     "st.global.u8 [%d1], %a0; ld.global.u32 %out, [%d1];",
                                     U32s{0x12345678})[0],
            0x12345678U);
}

TEST(LoadStore, OfLanesThatStoreToOnePlaceTheHighestWins) {
  MemoryRun run{"st.global.u32 [%d1], %r1;", 4};
  EXPECT_EQ(run.device.download<std::uint32_t>(run.base, 1)[0], 31U);
}

TEST(Variables, ModuleVariablesHoldTheirInitialValues) {
  SimulatedDevice device;
  const std::uint64_t out = device.allocate(24);
  device.load(module_text(
      ".const .align 4 .u32 table[4] = {7, 8, 9};\n.global .align 8 .u64 where = table;\n"
      ".global .f32 half = 0f3F000000;\n"
      ".entry k(.param .u64 p0) { .reg .b64 %d<9>; .reg .b32 %r<9>;\n"
      "ld.param.u64 %d1, [p0]; ld.const.u32 %r1, [table+8]; ld.const.u32 %r2, [table+12];\n"
      "ld.global.u64 %d2, [where]; ld.global.u32 %r3, [%d2+4]; ld.global.b32 %r4, [half];\n"
      "st.global.v4.u32 [%d1], {%r1, %r2, %r3, %r4}; ret; }"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::uint32_t>(out, 4), (U32s{9, 0, 8, 0x3f000000}));
}

TEST(Atomic, LanesAddInLaneOrderAndSeeTheOldValue) {
  MemoryRun run{
      "atom.global.add.u32 %r2, [%d1], %r1; add.u64 %d2, %d2, 128; "
      "st.global.u32 [%d2], %r2;",
      256};
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  // 0 + 1 + ... + 31 = 496; lane i sees i(i-1)/2.
  const auto words = run.device.download<std::uint32_t>(run.base, 64);
  EXPECT_EQ(words[0], 496U);
  for (std::uint32_t lane = 1; lane < 32; ++lane) {
    EXPECT_EQ(words[32 + lane], lane * (lane - 1) / 2);
  }
}

TEST(Atomic, EveryOperationCombinesOldAndNew) {
  struct Case {
    std::string form;
    std::uint32_t old;
    std::uint32_t value;
    std::uint32_t want;
  };
  const std::vector<Case> cases{
      {"min.s32", 5, 0xffffffff, 0xffffffff},
      {"max.s32", 5, 0xffffffff, 5},
      {"min.u32", 5, 0xffffffff, 5},
      {"max.u32", 5, 0xffffffff, 0xffffffff},
      {"and.b32", 12, 10, 8},
      {"or.b32", 12, 10, 14},
      {"xor.b32", 12, 10, 6},
      {"exch.b32", 12, 10, 10},
      {"inc.u32", 9, 10, 10},
      {"inc.u32", 10, 10, 0},
      {"dec.u32", 0, 10, 10},
      {"dec.u32", 11, 10, 10},
      {"dec.u32", 7, 10, 6},
      {"add.f32", 0x3f800000, 0x40000000, 0x40400000},
  };
  for (const Case& c : cases) {
    MemoryRun run{"setp.eq.u32 %p1, %r1, 0; mov.u32 %r2, " + std::to_string(c.old) +
                      "; mov.u32 %r3, " + std::to_string(c.value) +
                      "; @%p1 st.global.u32 [%d1], %r2; @%p1 atom.global." + c.form +
                      " %r4, [%d1], %r3; @%p1 st.global.u32 [%d1+4], %r4;",
                  8};
    EXPECT_EQ(run.device.download<std::uint32_t>(run.base, 2), (U32s{c.want, c.old})) << c.form;
  }
}

TEST(Atomic, CompareAndSwapAndReductions) {
  MemoryRun run{
      "setp.eq.u32 %p1, %r1, 0; @%p1 atom.global.cas.b32 %r2, [%d1], 0, 7; "
      "@%p1 atom.cas.b32 %r3, [%d1], 0, 9; @%p1 red.global.add.u32 [%d1+4], 5; "
      "red.add.u64 [%d1+8], 1;",
      16};
  EXPECT_EQ(run.device.download<std::uint32_t>(run.base, 4), (U32s{7, 5, 32, 0}));
}

TEST(Atomic, ReadsOfUnwrittenBytesAreReported) {
  const MemoryRun run{"red.global.add.u32 [%d2], 1;", 128, false};
  ASSERT_EQ(run.result.faults.size(), 1U);
  EXPECT_EQ(run.result.faults[0].kind, FaultKind::uninitialised_read);
}

/// Counts what it sees.
class Counter : public Observer {
 public:
  bool wants_accesses() const noexcept override { return true; }
  void on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept override {
    ++accesses;
    last_lanes = event.lanes;
    last_address = event.addresses[0];
    last_line = point.ptx_line;
  }
  int accesses = 0;
  std::uint32_t last_lanes = 0;
  std::uint64_t last_address = 0;
  std::uint32_t last_line = 0;
};

TEST(Observers, SeeEveryAccess) {
  SimulatedDevice device;
  const std::uint64_t address = device.upload(std::vector<std::uint32_t>(32));
  device.load(kernel_text(1,
                          "ld.param.u64 %d1, [p0];\nld.global.u32 %r1, [%d1];\n"
                          "st.global.u32 [%d1], %r1;"));
  Counter counter;
  Observer* const observers[] = {&counter};
  (void)device.run("k", shape({1, 1, 1}, {3, 1, 1}), Parameters{address}, observers);
  EXPECT_EQ(counter.accesses, 2);
  EXPECT_EQ(counter.last_lanes, 7U);
  EXPECT_EQ(counter.last_address, address);
  EXPECT_EQ(counter.last_line, 8U);
}

TEST(GlobalMemory, AddressesAreApartAlignedAndNeverReused) {
  GlobalMemory memory;
  const std::uint64_t a = memory.allocate(0, 1);
  const std::uint64_t b = memory.allocate(0, 1000);
  EXPECT_EQ(a % 256, 0U);
  EXPECT_EQ(b % 256, 0U);
  EXPECT_GE(b - a, 256U + 1);
  EXPECT_EQ(memory.live_bytes(0), 1001U);
  EXPECT_TRUE(memory.free(a));
  EXPECT_FALSE(memory.free(a));
  EXPECT_FALSE(memory.free(b + 8));
  EXPECT_GT(memory.allocate(0, 1), b);
  EXPECT_EQ(memory.live_bytes(1), 0U);
}

TEST(GlobalMemory, HostAccessesAreChecked) {
  GlobalMemory memory;
  const std::uint64_t a = memory.allocate(0, 100);
  std::vector<std::byte> bytes(100, std::byte{7});
  EXPECT_FALSE(memory.write(a, bytes).has_value());
  EXPECT_FALSE(memory.read(bytes, a).has_value());
  EXPECT_EQ(memory.write(a + 1, bytes)->kind, FaultKind::out_of_bounds_write);
  EXPECT_EQ(memory.write(a + 1, bytes)->address, a + 100);
  EXPECT_EQ(memory.read(bytes, a - 1)->kind, FaultKind::out_of_bounds_read);
  EXPECT_FALSE(memory.write(a + 100, {}).has_value());
  EXPECT_TRUE(memory.free(a));
  EXPECT_EQ(memory.read(bytes, a)->kind, FaultKind::use_after_free);
}

TEST(GlobalMemory, CopyCarriesUnwrittenBytesAlong) {
  GlobalMemory memory;
  const std::uint64_t a = memory.allocate(0, 8);
  const std::uint64_t b = memory.allocate(1, 8);
  const std::vector<std::byte> four(4, std::byte{5});
  ASSERT_FALSE(memory.write(a, four).has_value());
  ASSERT_FALSE(memory.write(b, std::vector<std::byte>(8)).has_value());
  EXPECT_FALSE(memory.copy(b, a, 8).has_value());
  std::vector<std::byte> bytes(8);
  const auto problem = memory.read(bytes, b);
  ASSERT_TRUE(problem.has_value());
  EXPECT_EQ(problem->kind, FaultKind::uninitialised_read);
  EXPECT_EQ(problem->address, b + 4);
  EXPECT_EQ(problem->count, 4U);
  EXPECT_EQ(bytes[3], std::byte{5});
  EXPECT_EQ(bytes[4], std::byte{0xFF});
}

TEST(GlobalMemory, CopyMayOverlap) {
  GlobalMemory memory;
  const std::uint64_t a = memory.allocate(0, 6);
  const std::vector<std::byte> bytes{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_FALSE(memory.write(a, bytes).has_value());
  ASSERT_FALSE(memory.copy(a + 2, a, 4).has_value());
  std::vector<std::byte> got(6);
  ASSERT_FALSE(memory.read(got, a).has_value());
  EXPECT_EQ(got[2], std::byte{1});
  EXPECT_EQ(got[5], std::byte{4});
}

TEST(GlobalMemory, FillRepeatsItsPattern) {
  GlobalMemory memory;
  const std::uint64_t a = memory.allocate(0, 6);
  const std::vector<std::byte> pattern{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  ASSERT_FALSE(memory.fill(a, pattern, 6).has_value());
  std::vector<std::byte> got(6);
  ASSERT_FALSE(memory.read(got, a).has_value());
  EXPECT_EQ(got[4], std::byte{1});
  EXPECT_EQ(memory.fill(a, pattern, 7)->address, a + 6);
}

TEST(CheckedBytes, CountsAcrossWords) {
  CheckedBytes bytes{200};
  EXPECT_FALSE(bytes.is_written(0, 1));
  bytes.mark_written(60, 70);  // Three words.
  EXPECT_TRUE(bytes.is_written(60, 70));
  EXPECT_FALSE(bytes.is_written(59, 2));
  EXPECT_FALSE(bytes.is_written(129, 2));
  EXPECT_EQ(bytes.count_unwritten(0, 200), 130U);
  EXPECT_EQ(bytes.first_unwritten(60, 140), 130U);
  bytes.mark_written(0, 200);
  EXPECT_TRUE(bytes.is_all_written());
  bytes.forget_block(64, 16);
  EXPECT_FALSE(bytes.is_all_written());
  EXPECT_EQ(bytes.first_unwritten(0, 200), 64U);
  EXPECT_EQ(bytes.data()[64], std::byte{0xFF});
  bytes.mark_block_written(64, 16);
  EXPECT_TRUE(bytes.is_all_written());
}

// 1 + 0.5, 2 + 0.25, 3 + 4, -1 + 1; two lanes add the same, one after the other.
TEST(Atomic, VectorsOfFloatsCombineElementByElement) {
  SimulatedDevice device;
  const std::uint64_t place = device.upload(std::vector<float>{1, 2, 3, -1});
  const std::uint64_t old = device.upload(std::vector<float>(8));
  device.load(kernel_text(
      2,
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r1, %laneid; "
      "mad.wide.u32 %d2, %r1, 16, %d2; mov.f32 %f1, 0f3f000000; mov.f32 %f2, 0f3e800000; "
      "mov.f32 %f3, 0f40800000; mov.f32 %f4, 0f3f800000;\n"
      "atom.global.add.v4.f32 {%f5, %f6, %f7, %f8}, [%d1], {%f1, %f2, %f3, %f4};\n"
      "st.global.v4.f32 [%d2], {%f5, %f6, %f7, %f8}; "
      "red.relaxed.gpu.global.add.v2.f32 [%d1+8], {%f1, %f2}; ret;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {2, 1, 1}), Parameters{place, old});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  // Both lanes have done the atom before the red.
  EXPECT_EQ(device.download<float>(place, 4), (std::vector<float>{2, 2.5, 12, 1.5}));
  EXPECT_EQ(device.download<float>(old, 8), (std::vector<float>{1, 2, 3, -1, 1.5, 2.25, 7, 0}));
}

// Halves 1, 2, ..., 8 are 3c00 4000 4200 4400 4500 4600 4700 4800; with 5 = 4500 for each, min
// leaves 1 to 5 and then fives. As pairs, 0x0001 is 2^-24 and stays: 2^-24 + 2^-24 = 0x0002.
TEST(Atomic, VectorsOfHalvesAddAndOrder) {
  SimulatedDevice device;
  const U16s halves{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800};
  const std::uint64_t place = device.upload(halves);
  const std::uint64_t pairs = device.upload(U32s{0x00013c00, 0x3c000001});
  const std::uint64_t brains = device.upload(U16s{0x3f80, 0xbf80});
  device.load(kernel_text(
      3,
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; ld.param.u64 %d3, [p2];\n"
      "mov.b16 %h1, 0x4500; mov.b32 %r1, 0x00013c00; mov.b32 %r2, 0x3c000001;\n"
      "red.global.min.noftz.v8.f16 [%d1], {%h1, %h1, %h1, %h1, %h1, %h1, %h1, %h1};\n"
      "atom.global.add.noftz.v2.f16x2 {%r3, %r4}, [%d2], {%r1, %r2};\n"
      "mov.b16 %h2, 0x3f00; atom.max.noftz.v2.bf16 {%h3, %h4}, [%d3], {%h2, %h2}; ret;"));
  const LaunchResult result =
      device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{place, pairs, brains});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::uint16_t>(place, 8),
            (U16s{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4500, 0x4500, 0x4500}));
  // 1 + 1 = 2 = 0x4000.
  EXPECT_EQ(device.download<std::uint32_t>(pairs, 2), (U32s{0x00024000, 0x40000002}));
  // 0.5 = 0x3f00 is above -1 and below 1.
  EXPECT_EQ(device.download<std::uint16_t>(brains, 2), (U16s{0x3f80, 0x3f00}));
}

TEST(Atomic, VectorsAreAlignedAsAWholeAndNotInSharedMemory) {
  SimulatedDevice device;
  const std::uint64_t place = device.upload(std::vector<float>(8));
  device.load(kernel_text(1,
                          "ld.param.u64 %d1, [p0]; mov.f32 %f1, 0f3f800000; "
                          "red.global.add.v2.f32 [%d1+4], {%f1, %f1}; ret;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{place});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::misaligned);
  EXPECT_EQ(result.faults[0].size_bytes, 8U);
  EXPECT_ANY_THROW(device.load(kernel_text(1, "red.shared.add.v2.f32 [%r1], {%f1, %f1}; ret;")));
}

}  // namespace
}  // namespace cpverify::sim
