#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// Clusters of CTAs: who they are, each other's shared memory, their barrier; and setmaxnreg.
namespace cpverify::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// %r0 thread, %r1 CTA, %r2 rank, %r3 the address of shared memory, %d1 the word of p0 that the
/// thread owns (by CTA and thread, 32 threads to a CTA).
constexpr const char* kPreamble =
    ".shared .align 16 .b8 s[256];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, s;\n"
    "mov.u32 %r4, %ntid.x; mad.lo.u32 %r4, %r1, %r4, %r0; ld.param.u64 %d0, [p0];\n"
    "mad.wide.u32 %d1, %r4, 4, %d0; setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r0, 0;\n";

struct Outcome {
  LaunchResult result;
  U32s words;
};

Outcome run_clusters(const std::string& body, std::uint32_t ctas,
                     const std::array<std::uint32_t, 3>& cluster, std::uint32_t threads = 32,
                     SchedulePolicy policy = SchedulePolicy::round_robin) {
  SimulatedDevice device;
  device.load(kernel_text(1, kPreamble + body + "\nret;"));
  const std::uint64_t out = device.upload(U32s(std::size_t{ctas} * threads, 0));
  LaunchRequest request = shape({ctas, 1, 1}, {threads, 1, 1});
  request.cluster = cluster;
  request.schedule.policy = policy;
  Outcome outcome;
  outcome.result = device.run("k", request, Parameters{out});
  outcome.words = device.download<std::uint32_t>(out, std::size_t{ctas} * threads);
  return outcome;
}

void expect_fault(const Outcome& outcome, FaultKind kind, const std::string& detail) {
  ASSERT_FALSE(outcome.result.faults.empty()) << detail;
  EXPECT_EQ(outcome.result.faults[0].kind, kind) << describe(outcome.result.faults);
  EXPECT_THAT(outcome.result.faults[0].detail, HasSubstr(detail));
}

const std::string kSync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

/// A grid of 4x2 in clusters of 2x2: CTA (x, y) is rank x % 2 + 2 (y % 2) of cluster x / 2.
TEST(Cluster, KnowsWhereEachCtaIs) {
  SimulatedDevice device;
  const std::vector<std::string> names{"%cluster_ctaid.x",  "%cluster_ctaid.y", "%cluster_nctaid.x",
                                       "%cluster_nctaid.y", "%cluster_ctarank", "%cluster_nctarank",
                                       "%clusterid.x",      "%clusterid.y",     "%nclusterid.x",
                                       "%nclusterid.y",     "%nclusterid.z"};
  std::string body =
      "mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; mad.lo.u32 %r2, %r1, 4, %r0; ld.param.u64 "
      "%d0, [p0]; mad.wide.u32 %d1, %r2, 44, %d0;\n";
  for (std::size_t i = 0; i < names.size(); ++i) {
    body += fmt::format("mov.u32 %r3, {}; st.global.u32 [%d1+{}], %r3;\n", names[i], 4 * i);
  }
  device.load(kernel_text(1, body + "ret;"));
  const std::uint64_t out = device.upload(U32s(8 * names.size(), 99));
  LaunchRequest request = shape({4, 2, 1}, {1, 1, 1});
  request.cluster = {2, 2, 1};
  const LaunchResult result = device.run("k", request, Parameters{out});
  ASSERT_EQ(result.status, LaunchStatus::completed) << result.detail;
  const U32s words = device.download<std::uint32_t>(out, 8 * names.size());
  for (std::uint32_t y = 0; y < 2; ++y) {
    for (std::uint32_t x = 0; x < 4; ++x) {
      const auto first = words.begin() + static_cast<std::ptrdiff_t>((4 * y + x) * names.size());
      EXPECT_EQ(U32s(first, first + static_cast<std::ptrdiff_t>(names.size())),
                (U32s{x % 2, y, 2, 2, x % 2 + 2 * y, 4, x / 2, 0, 2, 1, 1}));
    }
  }
}

/// Whether somebody has asked for clusters, of one CTA too.
TEST(Cluster, KnowsWhetherItWasAskedFor) {
  SimulatedDevice device;
  const std::string body =
      "{ .reg .pred %p; .reg .b64 %d; .reg .b32 %r; ld.param.u64 %d, [p]; mov.pred %p, "
      "%is_explicit_cluster; selp.u32 %r, 1, 2, %p; st.global.u32 [%d], %r; ret; }\n";
  device.load(module_text(".visible .entry free(.param .u64 p) " + body +
                          ".visible .entry one(.param .u64 p) .reqnctapercluster 1, 1, 1 " + body));
  const std::uint64_t out = device.upload(U32s(1, 0));
  const auto answer = [&](const char* entry, const std::array<std::uint32_t, 3>& cluster) {
    LaunchRequest request = shape({2, 1, 1}, {1, 1, 1});
    request.cluster = cluster;
    EXPECT_EQ(device.run(entry, request, Parameters{out}).status, LaunchStatus::completed);
    return device.download<std::uint32_t>(out, 1)[0];
  };
  EXPECT_EQ(answer("free", {}), 2U);
  EXPECT_EQ(answer("free", {1, 1, 1}), 1U);
  EXPECT_EQ(answer("free", {2, 1, 1}), 1U);
  EXPECT_EQ(answer("one", {}), 1U);
  EXPECT_THROW(device.load(kernel_text(0, "mov.u32 %r1, %is_explicit_cluster; ret;")), InputError);
}

/// Each CTA stores its number and its neighbour's shared memory is read, by every kind of address.
TEST(Cluster, ReadsTheSharedMemoryOfItsNeighbour) {
  const std::string store = "@%p2 st.shared.u32 [%r3], %r1;\n" + kSync + "xor.b32 %r5, %r2, 1;\n";
  const std::vector<std::string> loads{
      "mapa.shared::cluster.u32 %r6, %r3, %r5; ld.shared::cluster.u32 %r7, [%r6];\n",
      "cvt.u64.u32 %d2, %r3; mapa.shared::cluster.u64 %d3, %d2, %r5; ld.shared::cluster.u32 %r7, "
      "[%d3];\n",
      "cvt.u64.u32 %d2, %r3; cvta.shared.u64 %d2, %d2; mapa.u64 %d3, %d2, %r5; ld.u32 %r7, "
      "[%d3];\n",
      "mapa.shared::cluster.u32 %r6, %r3, %r5; mapa.shared::cluster.u32 %r6, %r6, %r5; "
      "ld.relaxed.cluster.shared::cluster.u32 %r7, [%r6];\n"};
  for (const std::string& load : loads) {
    for (const SchedulePolicy policy : {SchedulePolicy::round_robin, SchedulePolicy::reverse,
                                        SchedulePolicy::run_to_block, SchedulePolicy::random}) {
      const Outcome outcome = run_clusters(store + load + "st.global.u32 [%d1], %r7;\n" + kSync, 4,
                                           {2, 1, 1}, 1, policy);
      EXPECT_EQ(outcome.words, (U32s{1, 0, 3, 2})) << load << describe(outcome.result.faults);
      EXPECT_THAT(outcome.result.faults, IsEmpty()) << describe(outcome.result.faults);
    }
  }
}

/// 4 CTAs of 32 threads add 1 to a word of rank 0: 128.
TEST(Cluster, AddsAndStoresInTheSharedMemoryOfOthers) {
  const std::string body =
      "@%p2 st.shared.u32 [%r3], 0;\n" + kSync +
      "mapa.shared::cluster.u32 %r6, %r3, 0; atom.shared::cluster.add.u32 %r7, [%r6], 1;\n"
      "mapa.shared::cluster.u32 %r8, %r3, 3; st.shared::cluster.u32 [%r8+4], 7;\n" +
      kSync +
      "ld.shared.u32 %r9, [%r3]; @%p1 st.global.u32 [%d1], %r9;\n"
      "setp.eq.u32 %p3, %r2, 3; @%p3 ld.shared.u32 %r9, [%r3+4]; @%p3 st.global.u32 [%d1], "
      "%r9;\n";
  const Outcome outcome = run_clusters(body, 4, {4, 1, 1});
  EXPECT_THAT(outcome.result.faults, IsEmpty()) << describe(outcome.result.faults);
  EXPECT_EQ(outcome.words[0], 128U);
  EXPECT_EQ(outcome.words[96], 7U);
}

/// Lanes of one instruction may address different CTAs.
TEST(Cluster, ReachesSeveralCtasWithOneInstruction) {
  const std::string body =
      "@%p2 st.shared.u32 [%r3], %r1;\n" + kSync +
      "and.b32 %r5, %r0, 3; mapa.shared::cluster.u32 %r6, %r3, %r5; ld.shared::cluster.u32 %r7, "
      "[%r6]; st.global.u32 [%d1], %r7;\n" +
      kSync;
  const Outcome outcome = run_clusters(body, 4, {4, 1, 1});
  EXPECT_THAT(outcome.result.faults, IsEmpty()) << describe(outcome.result.faults);
  for (std::size_t i = 0; i < outcome.words.size(); ++i) EXPECT_EQ(outcome.words[i], i % 4);
}

TEST(Cluster, TellsRanksAndSpacesOfAddresses) {
  const std::string body =
      "xor.b32 %r5, %r2, 1; cvt.u64.u32 %d2, %r3; cvta.shared.u64 %d2, %d2; mapa.u64 %d3, %d2, "
      "%r5;\n"
      "getctarank.u64 %r6, %d3; getctarank.u64 %r7, %d2; mapa.shared::cluster.u32 %r8, %r3, %r5; "
      "getctarank.shared::cluster.u32 %r9, %r8;\n"
      "isspacep.shared::cluster %p3, %d3; isspacep.shared::cta %p4, %d3; isspacep.shared %p5, %d2; "
      "isspacep.global %p6, %d0; isspacep.global %p7, %d3; isspacep.local %p8, %d2; isspacep.const "
      "%p9, %d0;\n"
      "selp.u32 %r10, 1, 0, %p3; selp.u32 %r11, 2, 0, %p4; selp.u32 %r12, 4, 0, %p5; selp.u32 "
      "%r13, "
      "8, 0, %p6; selp.u32 %r14, 16, 0, %p7; selp.u32 %r15, 32, 0, %p8; selp.u32 %r16, 64, 0, "
      "%p9;\n"
      "add.u32 %r10, %r10, %r11; add.u32 %r10, %r10, %r12; add.u32 %r10, %r10, %r13; add.u32 %r10, "
      "%r10, %r14; add.u32 %r10, %r10, %r15; add.u32 %r10, %r10, %r16;\n"
      "mad.lo.u32 %r10, %r6, 1000, %r10; mad.lo.u32 %r10, %r7, 10000, %r10; mad.lo.u32 %r10, %r9, "
      "100000, %r10; st.global.u32 [%d1], %r10;\n";
  const Outcome outcome = run_clusters(body, 2, {2, 1, 1}, 1);
  EXPECT_THAT(outcome.result.faults, IsEmpty()) << describe(outcome.result.faults);
  // Spaces: 1 + 4 + 8. Rank 0 sees neighbour 1 twice and itself 0, rank 1 the other way round.
  EXPECT_EQ(outcome.words, (U32s{101013, 10013}));
}

TEST(Cluster, ReportsARankThatDoesNotExist) {
  expect_fault(run_clusters("mapa.shared::cluster.u32 %r6, %r3, 2;\n", 2, {2, 1, 1}, 1),
               FaultKind::illegal_instruction, "mapa to rank 2 of a cluster of 2");
  expect_fault(run_clusters("mapa.u64 %d3, %d0, 1;\n", 2, {2, 1, 1}, 1),
               FaultKind::illegal_instruction, "not in shared memory");
  // 0x3000000 is where rank 2 would begin.
  expect_fault(run_clusters("st.shared::cluster.u32 [%r3+0x3000000], 1;\n", 2, {2, 1, 1}, 1),
               FaultKind::out_of_bounds_write, "shared memory of rank 2 of a cluster of 2");
  // Without shared::cluster an address of another CTA is one beyond the own memory.
  expect_fault(run_clusters("mapa.shared::cluster.u32 %r6, %r3, 1; st.shared.u32 [%r6], 1;\n", 2,
                            {2, 1, 1}, 1),
               FaultKind::out_of_bounds_write, "");
  expect_fault(run_clusters("mapa.shared::cluster.u32 %r6, %r3, 1; st.shared::cluster.u32 "
                            "[%r6+256], 1;\n",
                            2, {2, 1, 1}, 1),
               FaultKind::out_of_bounds_write, "");
}

/// Rank 1 leaves at once; rank 0 looks at it after a while.
TEST(Cluster, ReportsTheMemoryOfACtaThatHasExited) {
  const std::string load =
      "@!%p1 st.shared.u32 [%r3], 5; barrier.cluster.arrive; barrier.cluster.wait;\n{}@!%p1 ret;\n"
      "mov.u32 %r9, 0; LOOP: add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 100000; @%p3 bra LOOP;\n"
      "mapa.shared::cluster.u32 %r6, %r3, 1; ld.shared::cluster.u32 %r7, [%r6];\n";
  expect_fault(run_clusters(fmt::format(fmt::runtime(load), ""), 2, {2, 1, 1}, 1),
               FaultKind::use_after_free,
               "shared memory of rank 1 of the cluster, which has exited");
  const Outcome clean = run_clusters(
      fmt::format(fmt::runtime(load), "@!%p1 bra END;\n") + "END: " + kSync, 2, {2, 1, 1}, 1);
  EXPECT_THAT(clean.result.faults, IsEmpty()) << describe(clean.result.faults);
}

TEST(Cluster, ReportsUnwrittenMemoryOfOthers) {
  // What has been loaded is used, for a branch.
  const std::string load =
      "mov.u32 %r7, 0; mapa.shared::cluster.u32 %r6, %r3, 1; "
      "@%p1 ld.shared::cluster.u32 %r7, [%r6]; setp.eq.u32 %p3, %r7, 0; @%p3 bra USED; USED:\n" +
      kSync;
  expect_fault(run_clusters(load, 2, {2, 1, 1}, 1), FaultKind::uninitialised_read, "");
  const Outcome clean = run_clusters("st.shared.u32 [%r3], 1;\n" + kSync + load, 2, {2, 1, 1}, 1);
  EXPECT_THAT(clean.result.faults, IsEmpty()) << describe(clean.result.faults);
}

TEST(Cluster, ReportsWrongUsesOfTheBarrier) {
  // Warp 1 of rank 1 waits without the others.
  expect_fault(run_clusters("setp.eq.u32 %p3, %r0, 32; @%p1 bra STAY; @!%p3 bra STAY; " + kSync +
                                "ret; STAY: bar.sync 0;",
                            2, {2, 1, 1}, 33),
               FaultKind::deadlock, "the barrier of the cluster waits for others: warp 1 at");
  expect_fault(run_clusters("barrier.cluster.wait.aligned;", 2, {2, 1, 1}, 1),
               FaultKind::illegal_instruction, "without a barrier.cluster.arrive before it");
  expect_fault(run_clusters("barrier.cluster.arrive.aligned; barrier.cluster.arrive.aligned;", 2,
                            {2, 1, 1}, 1),
               FaultKind::illegal_instruction, "twice without a barrier.cluster.wait");
  expect_fault(run_clusters("@%p2 barrier.cluster.arrive.aligned;", 2, {2, 1, 1}, 32),
               FaultKind::deadlock, "barrier.cluster in divergent code");
  // Those that have exited are not waited for.
  const Outcome clean = run_clusters("@!%p1 ret;\n" + kSync + kSync, 2, {2, 1, 1}, 64);
  EXPECT_THAT(clean.result.faults, IsEmpty()) << describe(clean.result.faults);
}

TEST(Cluster, MustFitTheGridAndTheKernel) {
  SimulatedDevice device;
  device.load(
      module_text(".visible .entry free() { ret; }\n"
                  ".visible .entry two() .reqnctapercluster 2, 1, 1 { ret; }\n"
                  ".visible .entry named() .explicitcluster { ret; }\n"
                  ".visible .entry small() .maxclusterrank 4 { ret; }\n"));
  const auto refusal = [&](const char* entry, std::uint32_t ctas,
                           const std::array<std::uint32_t, 3>& cluster) {
    LaunchRequest request = shape({ctas, 1, 1}, {1, 1, 1});
    request.cluster = cluster;
    const LaunchResult result = device.run(entry, request, Parameters{});
    EXPECT_EQ(result.status == LaunchStatus::invalid_cluster, !result.detail.empty());
    return result.detail;
  };
  EXPECT_EQ(refusal("free", 8, {8, 1, 1}), "");
  EXPECT_EQ(refusal("two", 4, {}), "");
  EXPECT_EQ(refusal("two", 4, {2, 1, 1}), "");
  EXPECT_EQ(refusal("named", 4, {1, 1, 1}), "");
  EXPECT_EQ(refusal("small", 4, {4, 1, 1}), "");
  EXPECT_THAT(refusal("free", 16, {16, 1, 1}), HasSubstr("1 to 8 CTAs are possible"));
  EXPECT_THAT(refusal("free", 6, {4, 1, 1}), HasSubstr("does not divide the grid of 6x1x1"));
  EXPECT_THAT(refusal("free", 4, {2, 0, 1}), HasSubstr("are possible"));
  EXPECT_THAT(refusal("free", 4, {0x80000000U, 2, 1}), HasSubstr("are possible"));
  EXPECT_THAT(refusal("two", 4, {4, 1, 1}), HasSubstr(".reqnctapercluster asks for 2x1x1"));
  EXPECT_THAT(refusal("two", 3, {}), HasSubstr("does not divide"));
  EXPECT_THAT(refusal("named", 4, {}), HasSubstr(".explicitcluster asks for one"));
  EXPECT_THAT(refusal("small", 8, {8, 1, 1}), HasSubstr("1 to 4 CTAs are possible"));
}

/// Two warpgroups of 128 registers each: the second may have 232 when the first has gone down
/// to 24.
TEST(SetMaxNReg, WaitsUntilOthersHaveGivenUpRegisters) {
  const auto run = [](const std::string& first, const std::string& second) {
    SimulatedDevice device;
    device.load(
        module_text(".visible .entry k() .maxnreg 128 {\n.reg .pred %p; .reg .b32 %r;\n"
                    "mov.u32 %r, %tid.x; setp.lt.u32 %p, %r, 128; @%p bra FIRST;\n" +
                    second + "ret;\nFIRST:\n" + first + "ret;\n}\n"));
    return Outcome{device.run("k", shape({1, 1, 1}, {256, 1, 1}), Parameters{}), {}};
  };
  const std::string down = "setmaxnreg.dec.sync.aligned.u32 24;\n";
  const std::string up = "setmaxnreg.inc.sync.aligned.u32 232;\n";
  EXPECT_THAT(run(down, up).result.faults, IsEmpty());
  EXPECT_THAT(run(up, down).result.faults, IsEmpty());
  expect_fault(run(up, up), FaultKind::deadlock, "warpgroup 0 has 4 of 4 warps");
  expect_fault(run("setmaxnreg.inc.sync.aligned.u32 64;\n", ""), FaultKind::illegal_instruction,
               "setmaxnreg.inc to 64 registers from 128");
  expect_fault(run("setmaxnreg.dec.sync.aligned.u32 160;\n", ""), FaultKind::illegal_instruction,
               "setmaxnreg.dec to 160 registers from 128");
  expect_fault(run("setp.lt.u32 %p, %r, 96; @%p setmaxnreg.dec.sync.aligned.u32 24;\n", ""),
               FaultKind::deadlock, "warpgroup 0 has 3 of 4 warps");
  expect_fault(run("setp.lt.u32 %p, %r, 5; @%p setmaxnreg.dec.sync.aligned.u32 24;\n", ""),
               FaultKind::illegal_instruction, "instead of the whole warp");
  for (const char* const number : {"20", "28", "264", "%r"}) {
    EXPECT_THROW(run(fmt::format("setmaxnreg.dec.sync.aligned.u32 {};\n", number), ""), InputError);
  }
}

}  // namespace
}  // namespace cpverify::sim
