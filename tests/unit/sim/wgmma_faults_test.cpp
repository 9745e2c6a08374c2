#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/fault.hpp"
#include "sim/check/special_values.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"
#include "unit/sim/wgmma_problem.hpp"

/// Wrong uses of wgmma, each with a twin that is right. All multiply m64n8k16 of bf16 from plain
/// tiles of zeros.
namespace cpverify::sim {
namespace {

using testing::HasSubstr;

const std::string kFence = "wgmma.fence.sync.aligned;\n";
const std::string kMultiply =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3}, %d8, %d9, %p1, 1, "
    "1, "
    "0, 0;\n";
const std::string kOther =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a4, %a5, %a6, %a7}, %d8, %d9, %p1, 1, "
    "1, "
    "0, 0;\n";
const std::string kCommit = "wgmma.commit_group.sync.aligned;\n";
const std::string kWait = "wgmma.wait_group.sync.aligned 0;\n";
const std::string kWaitButOne = "wgmma.wait_group.sync.aligned 1;\n";

WgmmaInput zeros(std::uint32_t threads = 128) {
  WgmmaInput input;
  input.a_descriptor = matrix_descriptor(kOperandA, 1024, 128, 0);
  input.b_descriptor = matrix_descriptor(kOperandB, 128, 128, 0);
  input.in.assign(std::size_t{threads} * 12, 0);
  return input;
}

LaunchResult run_zeros(const std::string& body, std::uint32_t threads = 128) {
  return run_wgmma(8, body, zeros(threads), race_checked({1, 1, 1}, {threads, 1, 1})).result;
}

void expect_clean(const std::string& body, std::uint32_t threads = 128) {
  const LaunchResult result = run_zeros(body, threads);
  EXPECT_EQ(result.status, LaunchStatus::completed) << body << describe(result.faults);
  EXPECT_TRUE(result.faults.empty()) << body << describe(result.faults);
}

void expect_fault(const LaunchResult& result, FaultKind kind, MemorySpace space,
                  const std::string& detail) {
  ASSERT_FALSE(result.faults.empty()) << detail;
  EXPECT_EQ(result.faults[0].kind, kind) << describe(result.faults);
  EXPECT_EQ(result.faults[0].space, space) << describe(result.faults);
  EXPECT_THAT(result.faults[0].detail, HasSubstr(detail));
}

void expect_fault(const std::string& body, FaultKind kind, MemorySpace space,
                  const std::string& detail, std::uint32_t threads = 128) {
  SCOPED_TRACE(body);
  expect_fault(run_zeros(body, threads), kind, space, detail);
}

constexpr const char* kInFlight = "wgmma.mma_async that is in flight";

TEST(WgmmaFaults, AccumulatorsBelongToWgmmaUntilTheWait) {
  for (const std::string use :
       {"mov.b32 %r9, %a2;\n", "mov.b32 %a3, 0;\n",
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%x0, %x1, %x2, "
        "%x3}, {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%a0, %a1, %a2, %a3};\n"}) {
    expect_fault(kFence + kMultiply + kCommit + use + kWait, FaultKind::race,
                 MemorySpace::registers, kInFlight);
    expect_clean(kFence + kMultiply + kCommit + kWait + use);
  }
  expect_clean(kFence + kMultiply + kCommit + "mov.b32 %r9, %a4;\n" + kWait);
  // One that no thread executes touches nothing.
  expect_clean(kFence + kMultiply + kCommit + "@%p2 mov.b32 %r9, %a2;\n" + kWait);
}

TEST(WgmmaFaults, FragmentsOfABelongToWgmmaUntilTheWait) {
  const std::string multiply =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3}, {%x0, %x1, %x2, "
      "%x3}, %d9, %p1, 1, 1, 0;\n";
  const std::string use = "mov.b32 %x1, 0;\n";
  expect_fault(kFence + multiply + kCommit + use + kWait, FaultKind::race, MemorySpace::registers,
               kInFlight);
  expect_clean(kFence + multiply + kCommit + kWait + use);
}

TEST(WgmmaFaults, AWaitCoversCommittedGroupsOnly) {
  const std::string two = kFence + kMultiply + kCommit + kOther + kCommit;
  expect_clean(two + kWaitButOne + "mov.b32 %r9, %a0;\n" + kWait);
  expect_fault(two + kWaitButOne + "mov.b32 %r9, %a4;\n" + kWait, FaultKind::race,
               MemorySpace::registers, kInFlight);
  expect_fault(kFence + kMultiply + kWait + "mov.b32 %r9, %a0;\n" + kCommit + kWait,
               FaultKind::race, MemorySpace::registers, kInFlight);
}

TEST(WgmmaFaults, OnlyProductsOfOneShapeMayFollowWithoutAWait) {
  const std::string narrower_k =
      "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%a0, %a1, %a2, %a3}, %d8, %d9, %p1, 1, "
      "1;\n";
  const std::string from_sums =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a4, %a5, %a6, %a7}, {%a0, %a1, %a2, "
      "%a3}, %d9, %p1, 1, 1, 0;\n";
  expect_clean(kFence + kMultiply + kMultiply + kOther + kCommit + kWait);
  for (const std::string& next : {narrower_k, from_sums}) {
    expect_fault(kFence + kMultiply + next + kCommit + kWait, FaultKind::race,
                 MemorySpace::registers, "names registers of another one");
    expect_clean(kFence + kMultiply + kCommit + kWait + kFence + next + kCommit + kWait);
  }
}

TEST(WgmmaFaults, AWarpThatDoesNotComeIsADeadlock) {
  expect_fault("@%p3 bra SKIP;\n" + kFence + kMultiply + kCommit + kWait + "SKIP:\n",
               FaultKind::deadlock, MemorySpace::shared,
               "warpgroup 0 has 3 of 4 warps: warps 0-2 at PTX line");
  // Warps 4 and 5 are no warpgroup.
  expect_fault(kFence + kMultiply + kCommit + kWait, FaultKind::deadlock, MemorySpace::shared,
               "warpgroup 1 has 2 of 4 warps: warps 4-5", 192);
}

TEST(WgmmaFaults, AllThreadsMustExecuteTheSame) {
  expect_fault("setp.eq.u32 %p4, %r1, 5;\n@%p4 bra SKIP;\n" + kFence + "SKIP:\n" + kMultiply,
               FaultKind::illegal_instruction, MemorySpace::global,
               "by lanes 0xffffffdf instead of the whole warp");
  expect_fault(kFence + "@%p3 add.u64 %d8, %d8, 8;\n" + kMultiply, FaultKind::illegal_instruction,
               MemorySpace::registers, "different matrix descriptors");
  const std::string by_predicate =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3}, %d8, %d9, %p3, 1, "
      "1, 0, 0;\n";
  expect_fault(kFence + by_predicate, FaultKind::illegal_instruction, MemorySpace::registers,
               "different values of scale-d");
  expect_fault(kFence + "@%p3 bra OTHER;\n" + kMultiply + "OTHER:\n" + kMultiply,
               FaultKind::illegal_instruction, MemorySpace::registers,
               "different warpgroup instructions");
}

TEST(WgmmaFaults, AFenceMustStandBeforeTheFirst) {
  expect_fault(kMultiply + kCommit + kWait, FaultKind::illegal_instruction, MemorySpace::registers,
               "without a wgmma.fence before it");
}

/// Also behind the first: when registers of D or A have been written since.
TEST(WgmmaFaults, AFenceMustStandBehindWritesOfRegisters) {
  const std::string first = kFence + kMultiply + kCommit + kWait;
  const std::string next = kMultiply + kCommit + kWait;
  const std::string write = "mov.b32 %a2, 0x3f800000;\n";
  const char* const detail = "written since the last wgmma.fence";
  expect_fault(first + write + next, FaultKind::race, MemorySpace::registers, detail);
  expect_clean(first + write + kFence + next);
  // Between the fence and the first of all.
  expect_fault(kFence + write + next, FaultKind::race, MemorySpace::registers, detail);
  expect_clean(write + kFence + next);
  // One warp of four, and one lane of it.
  expect_fault(first + "setp.eq.u32 %p4, %r1, 70;\n@%p4 " + write + next, FaultKind::race,
               MemorySpace::registers, detail);
  // Reads, and writes of other registers, need none.
  expect_clean(first + "mov.b32 %r9, %a2;\nmov.b32 %a4, 0x3f800000;\n" + next);
  const std::string from_registers =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3}, {%x0, %x1, %x2, "
      "%x3}, %d9, %p1, 1, 1, 0;\n" +
      kCommit + kWait;
  const std::string load = "mov.b32 %x1, 0x3f803f80;\n";
  expect_fault(kFence + from_registers + load + from_registers, FaultKind::race,
               MemorySpace::registers, detail);
  expect_clean(kFence + from_registers + load + kFence + from_registers);
}

/// One product of operands that consist of these words: two bf16 each, that of the lower k first.
std::vector<Fault> special_values_of(std::uint32_t a, std::uint32_t b) {
  WgmmaInput input = zeros();
  for (std::size_t i = 0; i < input.image.size(); ++i) {
    const std::uint32_t word = i < kOperandB ? a : b;
    input.image[i] = static_cast<std::uint8_t>(word >> (8 * (i % 4)));
  }
  SpecialValueMemory memory;
  LaunchRequest request = shape({1, 1, 1}, {128, 1, 1});
  request.special_values = &memory;
  return run_wgmma(8, kFence + kMultiply + kCommit + kWait, input, request).result.faults;
}

// 1 is 0x3f80, the greatest number 0x7f7f; its square overflows to inf. 64 x 8 sums, four in each
// thread.
TEST(WgmmaFaults, NamesTheProductThatMakesASpecialValue) {
  EXPECT_TRUE(special_values_of(0x3f803f80, 0x3f803f80).empty());
  const std::vector<Fault> infinities = special_values_of(0x7f7f7f7f, 0x7f7f7f7f);
  ASSERT_EQ(infinities.size(), 1U) << describe(infinities);
  EXPECT_EQ(infinities[0].kind, FaultKind::infinity_produced);
  EXPECT_EQ(infinities[0].count, 512U);
  EXPECT_THAT(infinities[0].detail, HasSubstr("wgmma of products and c = 0 (0x00000000) is +inf"));
  // Minus infinity is meant.
  EXPECT_TRUE(special_values_of(0xff7fff7f, 0x7f7f7f7f).empty());
  // A NaN operand is not what the product has made.
  for (const Fault& fault : special_values_of(0x7fc07fc0, 0x3f803f80)) {
    EXPECT_NE(fault.kind, FaultKind::nan_produced) << describe({fault});
  }
}

TEST(WgmmaFaults, OperandsMustLieInSharedMemoryAndBeWritten) {
  WgmmaInput beyond = zeros();
  beyond.b_descriptor = matrix_descriptor(kTileBytes - 128, 128, 128, 0);
  const std::string body = kFence + kMultiply + kCommit + kWait;
  const LaunchResult result = run_wgmma(8, body, beyond).result;
  expect_fault(result, FaultKind::out_of_bounds_read, MemorySpace::shared,
               "operand of wgmma.mma_async");
  EXPECT_EQ(result.faults.at(0).address, kTileBytes);

  const std::string unwritten =
      ".shared .align 128 .b8 more[256];\nmov.u32 %r20, more;\nshr.u32 "
      "%r20, %r20, 4;\ncvt.u64.u32 %d10, %r20;\nmov.u64 %d9, "
      "0x800080000;\nor.b64 %d9, %d9, %d10;\n";
  const std::string fill =
      "shl.b32 %r21, %r1, 2;\nmov.u32 %r22, more;\nadd.u32 %r21, %r21, %r22;\nsetp.lt.u32 %p5, "
      "%r1, "
      "64;\n@%p5 st.shared.u32 [%r21], %r1;\nfence.proxy.async;\nbar.sync 0;\n";
  expect_fault(unwritten + body, FaultKind::uninitialised_read, MemorySpace::shared,
               "operand of wgmma.mma_async");
  expect_clean(unwritten + fill + body);
}

/// A copy into an operand makes it unwritten: this shows without racecheck.
TEST(WgmmaFaults, ARefillBeforeTheWaitReadsUnwrittenMemory) {
  const std::string refill =
      "setp.eq.u32 %p4, %r1, 0;\n@%p4 cp.async.ca.shared.global [%r4], [%d0], 16;\n";
  const auto run = [](const std::string& body) { return run_wgmma(8, body, zeros()).result; };
  expect_fault(run(kFence + kMultiply + kCommit + refill + kWait), FaultKind::uninitialised_read,
               MemorySpace::shared, "operand of wgmma.mma_async");
  EXPECT_TRUE(run(kFence + kMultiply + kCommit + kWait + refill).faults.empty());
}

TEST(WgmmaFaults, StoresIntoOperandsRaceUntilTheWait) {
  const std::string store = "setp.eq.u32 %p4, %r1, 40;\n@%p4 st.shared.u32 [%r4], %r1;\n";
  expect_fault(kFence + kMultiply + kCommit + store + kWait, FaultKind::race, MemorySpace::shared,
               "this write and the asynchronous read by");
  expect_clean(kFence + kMultiply + kCommit + kWait + store);
  // The other way round: a barrier must stand between the store and wgmma.
  expect_fault(store + kFence + kMultiply + kCommit + kWait, FaultKind::race, MemorySpace::shared,
               "this asynchronous read and the write by");
  expect_fault(store + "bar.sync 0;\n" + kFence + kMultiply + kCommit + kWait, FaultKind::race,
               MemorySpace::shared, "no fence.proxy.async is between them");
  expect_clean(store + "fence.proxy.async;\nbar.sync 0;\n" + kFence + kMultiply + kCommit + kWait);
}

/// Of another warpgroup: the wait alone does not order it.
TEST(WgmmaFaults, ARefillByOthersNeedsABarrier) {
  const auto body = [](const std::string& barrier) {
    return "setp.ge.u32 %p4, %r1, 128;\n@%p4 bra OTHER;\n" + kFence + kMultiply + kCommit + kWait +
           barrier + "bra.uni END;\nOTHER:\n" + barrier +
           "setp.eq.u32 %p5, %r1, 130;\n@%p5 st.shared.u32 [%r4], %r1;\nEND:\n";
  };
  expect_fault(body(""), FaultKind::race, MemorySpace::shared, "asynchronous read", 256);
  expect_clean(body("bar.sync 1;\n"), 256);
}

TEST(WgmmaFaults, TextThatTheManualDoesNotAllowIsRefused) {
  const auto refused = [](const std::string& body) {
    SimulatedDevice device;
    EXPECT_THROW(device.load(wgmma_kernel(8, body)), InputError) << body;
  };
  refused(
      "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3, %a4, %a5}, "
      "%d8, %d9, %p1, 1, 1, 0, 0;");
  refused(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.f16 {%a0, %a1, %a2, %a3}, %d8, %d9, %p1, "
      "1, 1, 0, 0;");
  refused(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2}, %d8, %d9, %p1, 1, "
      "1, 0, 0;");
  refused(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3}, %d8, %d9, "
      "%p1, 2, 1, 0, 0;");
  refused(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%a0, %a1, %a2, %a3}, %d8, %d9, "
      "%p1, 1, 1, %r1, 0;");
  refused("wgmma.mma_async.sync.aligned.m64n0k16.f32.bf16.bf16 {}, %d8, %d9, %p1, 1, 1, 0, 0;");
}

}  // namespace
}  // namespace cpverify::sim
