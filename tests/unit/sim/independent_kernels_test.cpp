#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/schedule.hpp"
#include "support/rng.hpp"
#include "unit/sim/attention_problem.hpp"
#include "unit/sim/simulated_device.hpp"

/// Kernels as compilers emit them, with every lane scheduled on its own: the same bytes as with
/// converged threads, and no report.
namespace cpverify::sim {
namespace {

constexpr ThreadScheduling kIndependent = ThreadScheduling::independent;

std::vector<ScheduleSpec> independent_schedules() {
  return {{SchedulePolicy::round_robin, 0, 3, kIndependent},
          {SchedulePolicy::reverse, 0, 3, kIndependent},
          {SchedulePolicy::run_to_block, 0, 3, kIndependent},
          {SchedulePolicy::random, 1, 3, kIndependent},
          {SchedulePolicy::pct, 1, 3, kIndependent}};
}

void expect_same_attention(const AttentionProblem& problem, const std::string& file, bool is_mma) {
  const std::string ptx = read_ptx(file);
  AttentionRun converged{problem, ptx, is_mma, true};
  ASSERT_TRUE(converged.result.faults.empty()) << file << describe(converged.result.faults);
  converged.expect_correct();
  for (const ScheduleSpec& schedule : independent_schedules()) {
    AttentionRun independent{problem, ptx, is_mma, true, {schedule}};
    EXPECT_TRUE(independent.result.faults.empty())
        << file << " " << text(schedule) << describe(independent.result.faults);
    EXPECT_EQ(independent.output(), converged.output()) << file << " " << text(schedule);
  }
}

TEST(IndependentKernels, PagedAttentionIsTheSame) {
  const AttentionProblem problem{128, {2}, {19}};
  for (const char* file :
       {"paged_attn.nvcc.ptx", "paged_attn.clang14.ptx", "paged_attn.nvcc_O0.ptx"}) {
    expect_same_attention(problem, file, false);
  }
}

TEST(IndependentKernels, TensorCoreAttentionIsTheSame) {
  const AttentionProblem problem{64, {5}, {70}};
  for (const char* file :
       {"mma_attn.nvcc.ptx", "mma_attn.clang14.ptx", "mma_attn.clang14_O0.ptx"}) {
    expect_same_attention(problem, file, true);
  }
}

/// Runs a kernel that writes `count` bytes at its output with each schedule.
template <class Run>
void expect_same(Run run) {
  const std::vector<std::uint8_t> converged = run(ScheduleSpec{});
  for (const ScheduleSpec& schedule : independent_schedules()) {
    EXPECT_EQ(run(schedule), converged) << text(schedule);
  }
}

TEST(IndependentKernels, KvScatterIsTheSame) {
  constexpr std::int32_t row_elems = 64;
  constexpr std::int32_t page = 4;
  const std::vector<std::int64_t> slots{9, -1, 0, 3};
  for (const char* file :
       {"kv_scatter.nvcc.ptx", "kv_scatter.clang14.ptx", "kv_scatter.clang19.ptx",
        "kv_scatter.nvcc_O0.ptx", "kv_scatter.clang14_O0.ptx"}) {
    const std::string ptx = read_ptx(file);
    expect_same([&](const ScheduleSpec& schedule) {
      SimulatedDevice device;
      device.load(ptx);
      const std::vector<std::uint16_t> rows = random_bf16(slots.size() * row_elems, 5);
      const std::uint64_t k_pool =
          device.upload(std::vector<std::uint16_t>(std::size_t{12} * row_elems, 7));
      const std::uint64_t v_pool =
          device.upload(std::vector<std::uint16_t>(std::size_t{12} * row_elems, 7));
      LaunchRequest request = race_checked({4, 1, 1}, {32, 1, 1});
      request.schedule = schedule;
      const LaunchResult result = device.run(
          "kv_scatter", request,
          Parameters{device.upload(rows), device.upload(rows), k_pool, v_pool, device.upload(slots),
                     row_elems, page, std::uint64_t{page * row_elems}});
      EXPECT_TRUE(result.faults.empty()) << file << text(schedule) << describe(result.faults);
      return device.download<std::uint8_t>(k_pool, std::size_t{12} * row_elems * 2);
    });
  }
}

TEST(IndependentKernels, LseMergeIsTheSame) {
  constexpr std::size_t parts = 3;
  constexpr std::size_t rows = 9;
  constexpr std::size_t dim = 128;
  for (const char* file :
       {"lse_merge.nvcc.ptx", "lse_merge.clang14.ptx", "lse_merge.clang19.ptx"}) {
    const std::string ptx = read_ptx(file);
    expect_same([&](const ScheduleSpec& schedule) {
      SimulatedDevice device;
      device.load(ptx);
      std::vector<float> lse(parts * rows);
      for (std::size_t i = 0; i < lse.size(); ++i) lse[i] = static_cast<float>(i % 5) - 2.0F;
      const std::uint64_t out = device.allocate(rows * dim * 2);
      LaunchRequest request = race_checked({3, 1, 1}, {128, 1, 1});
      request.schedule = schedule;
      const LaunchResult result =
          device.run("lse_merge", request,
                     Parameters{device.upload(random_bf16(parts * rows * dim, 11)),
                                device.upload(lse), static_cast<std::int32_t>(parts),
                                static_cast<std::int32_t>(rows), out, device.allocate(rows * 4)});
      EXPECT_TRUE(result.faults.empty()) << file << text(schedule) << describe(result.faults);
      return device.download<std::uint8_t>(out, rows * dim * 2);
    });
  }
}

TEST(IndependentKernels, TopKCountsTheSame) {
  constexpr std::int32_t count = 300;
  constexpr std::int32_t k = 40;
  Rng rng{3};
  std::vector<float> scores(count);
  for (float& score : scores) score = static_cast<float>(rng.below(64)) - 32.0F;
  for (const char* file : {"topk_indexer.nvcc.ptx", "topk_indexer.clang14.ptx"}) {
    const std::string ptx = read_ptx(file);
    // In which order the indices come depends on the schedule, and not how many they are.
    expect_same([&](const ScheduleSpec& schedule) {
      SimulatedDevice device;
      device.load(ptx);
      const std::uint64_t counter = device.upload(std::vector<std::int32_t>{0});
      LaunchRequest request = race_checked({1, 1, 1}, {256, 1, 1});
      request.schedule = schedule;
      const LaunchResult result =
          device.run("topk_select", request,
                     Parameters{device.upload(scores), count, k, device.allocate(k * 4), counter});
      EXPECT_TRUE(result.faults.empty()) << file << text(schedule) << describe(result.faults);
      return device.download<std::uint8_t>(counter, 4);
    });
  }
}

}  // namespace
}  // namespace cpverify::sim
