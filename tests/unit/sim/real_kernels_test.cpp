#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "numerics/float16.hpp"
#include "support/rng.hpp"
#include "unit/sim/attention_problem.hpp"
#include "unit/sim/simulated_device.hpp"

/// Kernels as nvcc 13 and clang 14 and 19 compile them, against plain host computations.
namespace cpverify::sim {
namespace {

class CompilerTest : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string ptx(const std::string& kernel) {
    return read_ptx(kernel + "." + GetParam() + ".ptx");
  }
};

TEST_P(CompilerTest, SaxpyIsOneFmaPerElement) {
  constexpr std::size_t count = 1000;  // Not a multiple of the block.
  SimulatedDevice device;
  device.load(ptx("saxpy"));
  std::vector<float> x(count);
  std::vector<float> y(count);
  for (std::size_t i = 0; i < count; ++i) {
    x[i] = static_cast<float>(i) / 7.0F;
    y[i] = -static_cast<float>(i) / 3.0F;
  }
  const std::uint64_t x_address = device.upload(x);
  const std::uint64_t y_address = device.upload(y);
  const LaunchResult result =
      device.run("saxpy", race_checked({4, 1, 1}, {256, 1, 1}),
                 Parameters{static_cast<std::int32_t>(count), 2.5F, x_address, y_address});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const auto got = device.download<float>(y_address, count);
  for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(got[i], std::fma(2.5F, x[i], y[i])) << i;
}

TEST_P(CompilerTest, KvScatterMovesRowsToTheirSlotsOnly) {
  constexpr std::int32_t row_elems = 64;
  constexpr std::int32_t page = 4;
  const std::vector<std::int64_t> slots{9, -1, 0, 3};
  SimulatedDevice device;
  device.load(ptx("kv_scatter"));
  const std::vector<std::uint16_t> k = random_bf16(slots.size() * row_elems, 5);
  const std::vector<std::uint16_t> v = random_bf16(slots.size() * row_elems, 6);
  constexpr std::size_t pool_rows = 12;
  const std::uint64_t k_pool = device.upload(std::vector<std::uint16_t>(pool_rows * row_elems, 7));
  const std::uint64_t v_pool = device.upload(std::vector<std::uint16_t>(pool_rows * row_elems, 7));
  const LaunchResult result = device.run(
      "kv_scatter", race_checked({4, 1, 1}, {32, 1, 1}),
      Parameters{device.upload(k), device.upload(v), k_pool, v_pool, device.upload(slots),
                 row_elems, page, std::uint64_t{page * row_elems}});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  for (const auto& [source, pool] : {std::pair{&k, k_pool}, std::pair{&v, v_pool}}) {
    std::vector<std::uint16_t> want(pool_rows * row_elems, 7);
    for (std::size_t row = 0; row < slots.size(); ++row) {
      if (slots[row] < 0) continue;
      std::copy_n(source->begin() + static_cast<std::ptrdiff_t>(row * row_elems), row_elems,
                  want.begin() + slots[row] * row_elems);
    }
    EXPECT_EQ(device.download<std::uint16_t>(pool, want.size()), want);
  }
}

/// `parts` partial results of `rows` rows of 128, with their LSE.
void expect_merged(const std::string& ptx) {
  constexpr std::size_t parts = 3;
  constexpr std::size_t rows = 9;
  constexpr std::size_t dim = 128;
  SimulatedDevice device;
  device.load(ptx);
  const std::vector<std::uint16_t> part = random_bf16(parts * rows * dim, 11);
  std::vector<float> lse(parts * rows);
  for (std::size_t i = 0; i < lse.size(); ++i) lse[i] = static_cast<float>(i % 5) - 2.0F;
  // A part that has seen no key, and a row that nobody has seen.
  lse[4] = -INFINITY;
  for (std::size_t r = 0; r < parts; ++r) lse[r * rows + 8] = -INFINITY;
  const std::uint64_t out = device.allocate(rows * dim * 2);
  const std::uint64_t lse_out = device.allocate(rows * 4);
  const LaunchResult result = device.run(
      "lse_merge", race_checked({3, 1, 1}, {128, 1, 1}),
      Parameters{device.upload(part), device.upload(lse), static_cast<std::int32_t>(parts),
                 static_cast<std::int32_t>(rows), out, lse_out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const auto got = device.download<std::uint16_t>(out, rows * dim);
  const auto got_lse = device.download<float>(lse_out, rows);
  for (std::size_t row = 0; row < rows; ++row) {
    double sum = 0.0;
    for (std::size_t r = 0; r < parts; ++r) sum += std::exp(double{lse[r * rows + row]});
    if (sum == 0.0) {
      EXPECT_EQ(got_lse[row], -INFINITY);
    } else {
      EXPECT_NEAR(double{got_lse[row]}, std::log(sum), 1e-6) << row;
    }
    for (std::size_t i = 0; i < dim; ++i) {
      double want = 0.0;
      for (std::size_t r = 0; r < parts && sum > 0.0; ++r) {
        want += std::exp(double{lse[r * rows + row]}) / sum *
                value_of(part[(r * rows + row) * dim + i]);
      }
      // |value| <= 2: half a unit of bf16 is 2^-8 there.
      ASSERT_NEAR(value_of(got[row * dim + i]), want, 0.004) << row << " " << i;
    }
  }
}

TEST_P(CompilerTest, LseMergeWeighsPartsByTheirSums) {
  expect_merged(ptx("lse_merge"));
}

TEST(Compilers, Clang19LseMergeWeighsPartsByTheirSums) {
  expect_merged(read_ptx("lse_merge.clang19.ptx"));
}

TEST_P(CompilerTest, PagedAttentionMatchesPlainSoftmax) {
  const AttentionProblem problem{128, {3, 1, 5}, {3, 20, 37}};
  AttentionRun run{problem, ptx("paged_attn"), false};
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  run.expect_correct();
}

TEST_P(CompilerTest, TensorCoreAttentionMatchesPlainSoftmax) {
  const AttentionProblem problem{64, {70, 1, 5}, {75, 200, 5}};
  AttentionRun run{problem, ptx("mma_attn"), true};
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  run.expect_correct();
}

TEST_P(CompilerTest, TopKSelectsTheExactSet) {
  constexpr std::int32_t count = 700;
  constexpr std::int32_t k = 40;
  SimulatedDevice device;
  device.load(ptx("topk_indexer"));
  Rng rng{3};
  std::vector<float> scores(count);
  // Many ties: 64 distinct values of both signs.
  for (float& score : scores) score = static_cast<float>(rng.below(64)) - 32.0F;
  const std::uint64_t index = device.allocate(k * 4);
  const std::uint64_t counter = device.upload(std::vector<std::int32_t>{0});
  const LaunchResult result =
      device.run("topk_select", race_checked({1, 1, 1}, {256, 1, 1}),
                 Parameters{device.upload(scores), count, k, index, counter});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::int32_t>(counter, 1)[0], k);
  std::vector<std::int32_t> want(count);
  for (std::int32_t i = 0; i < count; ++i) want[static_cast<std::size_t>(i)] = i;
  std::stable_sort(want.begin(), want.end(), [&](std::int32_t a, std::int32_t b) {
    return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
  });
  want.resize(k);
  std::sort(want.begin(), want.end());
  std::vector<std::int32_t> got = device.download<std::int32_t>(index, k);
  std::sort(got.begin(), got.end());
  EXPECT_EQ(got, want);
}

INSTANTIATE_TEST_SUITE_P(Compilers, CompilerTest, ::testing::Values("nvcc", "clang14"),
                         [](const auto& test) { return test.param; });

TEST(Unoptimised, CallsAndLocalMemoryGiveTheSameAnswers) {
  const AttentionProblem fma{128, {2}, {19}};
  AttentionRun paged{fma, read_ptx("paged_attn.nvcc_O0.ptx"), false};
  EXPECT_TRUE(paged.result.faults.empty()) << describe(paged.result.faults);
  paged.expect_correct();
  const AttentionProblem tensor{64, {5}, {70}};
  AttentionRun mma{tensor, read_ptx("mma_attn.clang14_O0.ptx"), true};
  EXPECT_TRUE(mma.result.faults.empty()) << describe(mma.result.faults);
  mma.expect_correct();
}

/// The only fault of a kind; fails when there is none.
const Fault& only_fault(const LaunchResult& result, FaultKind kind) {
  static const Fault none;
  for (const Fault& fault : result.faults) {
    if (fault.kind == kind) return fault;
  }
  ADD_FAILURE() << "no fault of kind " << static_cast<int>(kind) << ":\n"
                << describe(result.faults);
  return none;
}

std::string remove_each(std::string text, const std::string& what) {
  std::size_t removed = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at)) {
    text.erase(at, what.size());
    ++removed;
  }
  EXPECT_GT(removed, 0U);
  return text;
}

TEST(Defects, LoopBoundTooLargeReadsOutOfBounds) {
  // The table has one page per 16 keys and nothing behind it.
  const AttentionProblem problem{128, {1}, {16}};
  const AttentionRun run{problem, read_ptx("paged_attn.oob.ptx"), false};
  EXPECT_EQ(run.result.status, LaunchStatus::aborted);
  const Fault& fault = only_fault(run.result, FaultKind::out_of_bounds_read);
  EXPECT_EQ(fault.kernel, "paged_attn");
  EXPECT_EQ(fault.source_file, "kernels/defect.cu");
  EXPECT_EQ(fault.source_line, 22U) << describe(run.result.faults);
}

TEST(Defects, MissingBarrierReadsUnwrittenSharedMemory) {
  const AttentionProblem problem{128, {1}, {16}};
  const AttentionRun run{problem, read_ptx("paged_attn.nobar.ptx"), false};
  const Fault& fault = only_fault(run.result, FaultKind::uninitialised_read);
  EXPECT_EQ(fault.space, MemorySpace::shared);
  EXPECT_EQ(run.result.status, LaunchStatus::completed);
}

TEST(Defects, UnwrittenSlotIsReported) {
  const AttentionProblem problem{128, {1}, {16}};
  const AttentionRun run{problem, read_ptx("paged_attn.uninit.ptx"), false};
  const Fault& fault = only_fault(run.result, FaultKind::uninitialised_read);
  EXPECT_EQ(fault.space, MemorySpace::shared);
}

TEST(Defects, MissingWaitReadsCopiesInFlight) {
  const AttentionProblem problem{64, {5}, {70}};
  const AttentionRun run{
      problem,
      remove_each(remove_each(read_ptx("mma_attn.nvcc.ptx"), "cp.async.wait_group 0;"),
                  "cp.async.wait_group 1;"),
      true};
  EXPECT_EQ(only_fault(run.result, FaultKind::uninitialised_read).space, MemorySpace::shared);
}

TEST(Defects, MissingBarrierAfterTheWaitReadsOtherThreadsCopies) {
  const AttentionProblem problem{64, {64}, {200}};
  const AttentionRun run{problem, remove_each(read_ptx("mma_attn.nvcc.ptx"), "bar.sync \t0;"),
                         true};
  EXPECT_EQ(only_fault(run.result, FaultKind::uninitialised_read).space, MemorySpace::shared);
}

TEST(RealKernels, TwoRunsGiveTheSameResult) {
  const AttentionProblem problem{64, {70}, {75}};
  const std::string ptx = read_ptx("mma_attn.clang14.ptx");
  const AttentionRun first{problem, ptx, true};
  const AttentionRun second{problem, ptx, true};
  EXPECT_EQ(first.result.warp_instructions, second.result.warp_instructions);
  EXPECT_EQ(first.result.thread_instructions, second.result.thread_instructions);
}

}  // namespace
}  // namespace cpverify::sim
