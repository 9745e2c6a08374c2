#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// Racecheck of launches in clusters.
namespace cpverify::sim {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// %r0 thread, %r2 rank, %r3 own shared memory, %r6 that of the neighbour; %p1 rank 0, %p2 thread
/// 0, %p3 warp 0, %p4 thread 0 of rank 0, %p5 thread 0 of rank 1; %d0 p0, %d1 p1; %r1 CTA.
constexpr const char* kPreamble =
    ".shared .align 16 .b8 s[512];\n"
    "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, s;\n"
    "xor.b32 %r5, %r2, 1; mapa.shared::cluster.u32 %r6, %r3, %r5;\n"
    "ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; setp.eq.u32 %p1, %r2, 0;\n"
    "setp.eq.u32 %p2, %r0, 0; setp.lt.u32 %p3, %r0, 32; setp.eq.and.u32 %p4, %r2, 0, %p2;\n"
    "setp.eq.and.u32 %p5, %r2, 1, %p2;\n";

const std::string kSync = "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;\n";

std::vector<Fault> races_of(const std::string& body, std::uint32_t ctas, std::uint32_t threads,
                            SchedulePolicy policy) {
  SimulatedDevice device;
  device.load(kernel_text(2, kPreamble + body + "\nret;"));
  const std::uint64_t words = device.upload(std::vector<std::uint32_t>(64, 5));
  const std::uint64_t flag = device.upload(std::vector<std::uint32_t>(4, 0));
  LaunchRequest request = shape({ctas, 1, 1}, {threads, 1, 1});
  request.cluster = {2, 1, 1};
  request.is_race_checked = true;
  request.schedule.policy = policy;
  const LaunchResult result = device.run("k", request, Parameters{words, flag});
  EXPECT_EQ(result.status, LaunchStatus::completed) << describe(result.faults);
  std::vector<Fault> races;
  std::copy_if(result.faults.begin(), result.faults.end(), std::back_inserter(races),
               [](const Fault& fault) { return fault.kind == FaultKind::race; });
  return races;
}

/// A kernel with one race, and its twin in which the accesses are in order. What stands for SYNC is
/// nothing in the one and `order` in the other.
struct RacePair {
  const char* name;
  const char* body;
  std::string order;
  MemorySpace space;
  const char* detail;  ///< Contained in that of the race.
  std::uint32_t ctas = 2;
  std::uint32_t threads = 64;
  bool is_for_one_order = false;  ///< Whether flags are up depends on the schedule.
  const char* instead = "";       ///< In the racy one.
};

constexpr MemorySpace kShared = MemorySpace::shared;
constexpr MemorySpace kGlobal = MemorySpace::global;

std::vector<RacePair> shared_pairs() {
  return {
      {"WriteIntoTheNeighbourThenRead",
       "@%p4 st.shared::cluster.u32 [%r6], 7; SYNC @%p5 ld.shared.u32 %r10, [%r3];", kSync, kShared,
       "by cta (0,0,0) thread (0,0,0)"},
      {"ReadOfTheNeighbourThenWrite",
       "@%p2 st.shared.u32 [%r3], %r2; barrier.cluster.arrive; barrier.cluster.wait;"
       "@%p4 ld.shared::cluster.u32 %r10, [%r6]; SYNC @%p5 st.shared.u32 [%r3], 9;",
       kSync, kShared, "in no order"},
      {"TwoCtasWriteIntoOne",
       "@%p4 st.shared.u32 [%r3], 7; SYNC @%p5 st.shared::cluster.u32 [%r6], 8;", kSync, kShared,
       "this write and the write by cta"},
      {"AtomicAndPlainStoreOfTheNeighbour",
       "@%p4 st.shared.u32 [%r3], 6; SYNC @%p5 red.shared::cluster.add.u32 [%r6], 1;", kSync,
       kShared, "in no order"},
      {"WarpsOfOneCta", "@%p3 st.shared.u32 [%r3], 7; SYNC @!%p3 ld.shared.u32 %r10, [%r3];",
       "bar.sync 0;", kShared, "in no order"},
      {"WarpsOfOneCtaAtTheBarrierOfTheCluster",
       "@%p3 st.shared.u32 [%r3], 7; SYNC @!%p3 ld.shared.u32 %r10, [%r3];", kSync, kShared,
       "in no order"},
      {"RelaxedArrival",
       "@%p4 st.shared::cluster.u32 [%r6], 7; SYNC barrier.cluster.arrive.relaxed; "
       "barrier.cluster.wait; @%p5 ld.shared.u32 %r10, [%r3];",
       "fence.acq_rel.cluster;", kShared, "by cta (0,0,0) thread (0,0,0)"},
      {"WriteBetweenArrivalAndWait", "SYNC barrier.cluster.wait; @%p5 ld.shared.u32 %r10, [%r3];",
       "@%p4 st.shared::cluster.u32 [%r6], 7; barrier.cluster.arrive;", kShared,
       "by cta (0,0,0) thread (0,0,0)", 2, 64, false,
       "barrier.cluster.arrive; @%p4 st.shared::cluster.u32 [%r6], 7;"},
      {"FlagInTheNeighbour",
       "@%p4 st.shared::cluster.u32 [%r6], 7; SYNC @%p4 st.relaxed.cluster.shared::cluster.u32 "
       "[%r6+4], 1; @%p5 ld.acquire.cluster.shared.u32 %r10, [%r3+4]; @%p5 ld.shared.u32 %r11, "
       "[%r3];",
       "fence.acq_rel.cluster;", kShared, "this read and the write by cta (0,0,0)", 2, 64, true},
      {"CopyPendingOverTheBarrier",
       "@%p4 cp.async.ca.shared.global [%r3], [%d0], 16; SYNC barrier.cluster.arrive; "
       "barrier.cluster.wait; @%p5 st.shared::cluster.u32 [%r6], 1; cp.async.wait_all;",
       "cp.async.wait_all;", kShared, "this write and the asynchronous write by cta (0,0,0)"},
      {"MbarrierOfOneCta",
       "@%p2 mbarrier.init.shared.b64 [%r3+64], 32; bar.sync 0; @!%p3 bra OTHER; "
       "st.shared.u32 [%r3], 7; mbarrier.arrive.shared.b64 %d5, [%r3+64]; bra END; OTHER: SYNC "
       "ld.shared.u32 %r10, [%r3]; END:",
       "WAIT: mbarrier.try_wait.parity.shared.b64 %p6, [%r3+64], 0; @!%p6 bra WAIT;", kShared,
       "in no order"},
      {"BulkCopyOfWhatTheNeighbourWrote",
       "@%p4 st.shared::cluster.u32 [%r6], 7; @%p5 st.shared.u32 [%r3+4], 7;"
       "@%p5 st.shared.v2.u32 [%r3+8], {%r0, %r0}; SYNC barrier.cluster.arrive; "
       "barrier.cluster.wait; @%p5 cp.async.bulk.global.shared::cta.bulk_group [%d0], [%r3], 16; "
       "@%p5 cp.async.bulk.commit_group; @%p5 cp.async.bulk.wait_group 0;",
       "fence.proxy.async;", kShared, "no fence.proxy.async is between them"},
  };
}

std::vector<RacePair> global_pairs() {
  return {
      {"CtasOfOneCluster", "@%p4 st.global.u32 [%d0], 7; SYNC @%p5 ld.global.u32 %r10, [%d0];",
       kSync, kGlobal, "in no order"},
      {"WarpsOfOneCtaInGlobalMemory",
       "@!%p1 bra END; @%p3 st.global.u32 [%d0], 7; SYNC @!%p3 ld.global.u32 %r10, [%d0]; END:",
       "bar.sync 0;", kGlobal, "in no order"},
      // The barrier of one cluster is none of the other.
      {"Clusters",
       "setp.eq.and.u32 %p6, %r1, 0, %p2; setp.eq.and.u32 %p7, %r1, 2, %p2; @%p6 st.global.u32 "
       "[%d0], 7; SYNC barrier.cluster.arrive; barrier.cluster.wait; @%p7 "
       "ld.acquire.gpu.global.u32 "
       "%r10, [%d1]; @%p7 ld.global.u32 %r11, [%d0];",
       "fence.acq_rel.gpu; @%p6 st.relaxed.gpu.global.u32 [%d1], 1;", kGlobal,
       "this read and the write by cta (0,0,0) thread (0,0,0)", 4, 64, true},
      {"FlagOfAnotherCta",
       "@%p4 st.global.u32 [%d0], 7; SYNC @%p4 st.relaxed.gpu.global.u32 [%d1], 1; "
       "@%p5 ld.acquire.gpu.global.u32 %r10, [%d1]; @%p5 ld.global.u32 %r11, [%d0];",
       "fence.acq_rel.gpu;", kGlobal, "this read and the write by cta (0,0,0)", 2, 64, true},
  };
}

class ClusterRaces : public testing::TestWithParam<RacePair> {};

TEST_P(ClusterRaces, AreFoundAndTheTwinsAreClean) {
  const RacePair& pair = GetParam();
  for (const SchedulePolicy policy :
       {SchedulePolicy::round_robin, SchedulePolicy::reverse, SchedulePolicy::run_to_block}) {
    if (pair.is_for_one_order && policy != SchedulePolicy::round_robin) continue;
    std::string racy = pair.body;
    racy.replace(racy.find("SYNC"), 4, pair.instead);
    std::string clean = pair.body;
    clean.replace(clean.find("SYNC"), 4, pair.order);
    // Nobody may leave while others use its memory.
    const std::vector<Fault> races = races_of(racy + kSync, pair.ctas, pair.threads, policy);
    ASSERT_FALSE(races.empty());
    EXPECT_EQ(races[0].space, pair.space);
    if (policy == SchedulePolicy::round_robin) {
      EXPECT_THAT(races[0].detail, HasSubstr(pair.detail));
    }
    const std::vector<Fault> none = races_of(clean + kSync, pair.ctas, pair.threads, policy);
    EXPECT_THAT(none, IsEmpty()) << describe(none);
  }
}

std::string pair_name(const testing::TestParamInfo<RacePair>& info) {
  return info.param.name;
}
INSTANTIATE_TEST_SUITE_P(Shared, ClusterRaces, testing::ValuesIn(shared_pairs()), pair_name);
INSTANTIATE_TEST_SUITE_P(Global, ClusterRaces, testing::ValuesIn(global_pairs()), pair_name);

/// Rank 1 writes and leaves; it has arrived at the barrier that rank 0 waits for.
TEST(ClusterRacecheck, WarpsThatHaveExitedAreBeforeTheBarrier) {
  EXPECT_THAT(races_of("@%p5 st.shared::cluster.u32 [%r6], 7; @!%p1 ret;\n" + kSync +
                           "ld.shared.u32 %r10, [%r3];",
                       2, 64, SchedulePolicy::round_robin),
              IsEmpty());
}

/// 4 clusters, each of which writes and reads its own shared memory: what an earlier one did in the
/// same place is forgotten.
TEST(ClusterRacecheck, ForgetsSharedMemoryOfEarlierClusters) {
  EXPECT_THAT(races_of("@%p4 st.shared::cluster.u32 [%r6], %r1;\n" + kSync +
                           "@%p5 ld.shared.u32 %r10, [%r3]; @%p5 st.shared.u32 [%r3], 1;\n" + kSync,
                       8, 64, SchedulePolicy::round_robin),
              IsEmpty());
}

/// The address of the only CTA's own memory in shared::cluster.
TEST(ClusterRacecheck, ACtaAloneMayNameItsMemoryByRank) {
  SimulatedDevice device;
  device.load(
      kernel_text(0,
                  ".shared .align 16 .b8 s[64]; mov.u32 %r0, %tid.x; setp.eq.u32 %p2, %r0, 0; "
                  "setp.lt.u32 %p3, %r0, 32; mov.u32 %r3, s; mapa.shared::cluster.u32 %r6, %r3, 0; "
                  "@%p2 st.shared::cluster.u32 [%r6], 7; @!%p3 ld.shared.u32 %r10, [%r3]; ret;"));
  LaunchRequest request = shape({1, 1, 1}, {64, 1, 1});
  request.is_race_checked = true;
  const LaunchResult result = device.run("k", request, Parameters{});
  ASSERT_EQ(result.faults.size(), 1U) << describe(result.faults);
  EXPECT_EQ(result.faults[0].kind, FaultKind::race);
  EXPECT_EQ(result.faults[0].address, 0U);
}

}  // namespace
}  // namespace cpverify::sim
