#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "numerics/float16.hpp"
#include "sim/machine/tensor_map.hpp"
#include "unit/sim/simulated_device.hpp"

/// hop.nvcc.ptx, as nvcc 13 compiles a kernel for sm_90a in which one thread loads tiles of A (64
/// rows of K) and B (8 rows of K) by TMA with 128-byte swizzling, an mbarrier says when they are
/// there, and a warpgroup multiplies the first 16 columns of each pair of 64-column tiles.
namespace cpverify::sim {
namespace {

struct MapParameter {
  std::array<std::byte, TensorMap::kBytes> bytes{};
};

/// Rows of bf16, K to a row; the box is 64 columns of all rows.
MapParameter rows_of(std::uint64_t address, std::uint32_t rows, std::uint32_t depth) {
  TensorMap map;
  map.element = TensorElement::bf16;
  map.rank = 2;
  map.swizzle_bytes = 128;
  map.address = address;
  map.extents = {depth, rows, 1, 1, 1};
  map.strides = {2, std::uint64_t{2} * depth};
  map.box = {64, rows, 1, 1, 1};
  return {encode(map)};
}

/// Small integers, exact in bf16, as are the sums in f32.
int value(std::uint32_t row, std::uint32_t column) {
  return static_cast<int>((row * 7 + column * 3 + row * column) % 11) - 5;
}

struct Problem {
  explicit Problem(std::uint32_t depth) : k{depth} {}

  LaunchResult run(const std::string& ptx, const ScheduleSpec& schedule) {
    SimulatedDevice device;
    const auto make = [this](std::uint32_t rows, std::uint32_t shift) {
      std::vector<std::uint16_t> values;
      for (std::uint32_t row = 0; row < rows; ++row) {
        for (std::uint32_t i = 0; i < k; ++i) {
          values.push_back(numerics::f32_to_bf16(static_cast<float>(value(row + shift, i))));
        }
      }
      return values;
    };
    const std::uint64_t a = device.upload(make(64, 0));
    const std::uint64_t b = device.upload(make(8, 100));
    const std::uint64_t target = device.upload(std::vector<float>(512, -1.0F));
    device.load(ptx);
    LaunchRequest request = shape({1, 1, 1}, {128, 1, 1}, 8192 + 1024);
    request.is_race_checked = true;
    request.schedule = schedule;
    const LaunchResult result =
        device.run("hop", request,
                   Parameters{rows_of(a, 64, k), rows_of(b, 8, k), target, static_cast<int>(k)});
    out = device.download<float>(target, 512);
    return result;
  }

  /// Element i of thread t: row 16 (t / 32) + t % 32 / 4, 8 more for i > 1, column 2 (t % 4) + i
  /// % 2.
  [[nodiscard]] float expected(std::uint32_t thread, std::uint32_t i) const {
    const std::uint32_t row = 16 * (thread / 32) + thread % 32 / 4 + (i > 1 ? 8 : 0);
    const std::uint32_t column = 2 * (thread % 4) + i % 2;
    int sum = 0;
    for (std::uint32_t tile = 0; tile < k; tile += 64) {
      for (std::uint32_t j = tile; j < std::min(tile + 16, k); ++j) {
        sum += value(row, j) * value(column + 100, j);
      }
    }
    return static_cast<float>(sum);
  }

  std::uint32_t k;
  std::vector<float> out;
};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

bool has(const LaunchResult& result, FaultKind kind) {
  return std::any_of(result.faults.begin(), result.faults.end(),
                     [kind](const Fault& fault) { return fault.kind == kind; });
}

TEST(HopperKernel, IsWhatALoopComputes) {
  // 5 tiles: four in the unrolled loop and one behind it; 328 is not a multiple of 64, so the last
  // box reaches beyond the tensor. 64 takes the loop behind only.
  const std::string ptx = read_ptx("hop.nvcc.ptx");
  for (const std::uint32_t depth : {64U, 320U, 328U}) {
    for (const SchedulePolicy policy : kSchedulePolicies) {
      Problem problem{depth};
      const LaunchResult result = problem.run(ptx, {policy, 5});
      EXPECT_TRUE(result.faults.empty()) << name(policy) << " " << describe(result.faults);
      for (std::uint32_t thread = 0; thread < 128; ++thread) {
        for (std::uint32_t i = 0; i < 4; ++i) {
          ASSERT_EQ(problem.out[4 * thread + i], problem.expected(thread, i))
              << depth << " " << thread << " " << i;
        }
      }
    }
  }
}

TEST(HopperKernel, ThatExpectsTooManyBytesIsADeadlock) {
  Problem problem{64};
  const LaunchResult result = problem.run(
      replaced(read_ptx("hop.nvcc.ptx"), "mov.u32 \t%r108, 9216;", "mov.u32 %r108, 9232;"), {});
  ASSERT_EQ(result.faults.size(), 1U) << describe(result.faults);
  EXPECT_EQ(result.faults[0].kind, FaultKind::deadlock);
  EXPECT_NE(result.faults[0].detail.find(
                "phase 0: 0 of 1 arrivals are missing, 16 bytes are missing: warps 0-3 wait at"),
            std::string::npos)
      << result.faults[0].detail;
}

TEST(HopperKernel, WithoutItsWaitReadsWhatIsNotThere) {
  Problem problem{64};
  const LaunchResult result = problem.run(
      replaced(read_ptx("hop.nvcc.ptx"),
               "{ .reg .pred P; W: mbarrier.try_wait.parity.shared::cta.b64 P, [%r117], %r131; @P "
               "bra D; bra W; D: }",
               ""),
      {});
  EXPECT_TRUE(has(result, FaultKind::uninitialised_read)) << describe(result.faults);
  EXPECT_TRUE(has(result, FaultKind::race)) << describe(result.faults);
}

}  // namespace
}  // namespace cpverify::sim
