// The promises of kernels/contracts/kv_write.md and rows.md.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/kernels/kernel_bench.hpp"
#include "gpu/driver_api.hpp"

namespace cpverify::tests {
namespace {

using Bytes = std::vector<std::byte>;

constexpr std::int32_t kRowBytes = 48;  // Three 16-byte vectors: fewer than a warp's lanes.
constexpr std::int32_t kStride = 64;
constexpr std::byte kUntouched{0xee};

Bytes rows_of(std::size_t num_rows, std::size_t stride, unsigned char first) {
  Bytes bytes(num_rows * stride);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::byte>(first + i / stride * 16 + i % 16);
  }
  return bytes;
}

Bytes row(const Bytes& rows, std::size_t index, std::size_t stride) {
  const auto begin = rows.begin() + static_cast<std::ptrdiff_t>(index * stride);
  return {begin, begin + kRowBytes};
}

gpu::DriverApi::LaunchConfig grid_for(std::int32_t num_rows) {
  gpu::DriverApi::LaunchConfig config;
  config.grid_x = static_cast<unsigned>((num_rows + 3) / 4);
  return config;
}

class RowsContract : public testing::TestWithParam<std::string> {
 protected:
  /// Runs an entry of rows over `index`, from rows of stride 64 to untouched ones of stride 80.
  Bytes move_rows(const std::string& entry, const std::vector<std::int32_t>& index,
                  std::size_t target_rows) {
    KernelBench bench{GetParam() + "rows"};
    const Bytes target(target_rows * kTargetStride, kUntouched);
    const gpu::CuDevicePtr target_pointer = bench.upload(target);
    const auto num_rows = static_cast<std::int32_t>(index.size());
    bench.launch(entry, grid_for(num_rows),
                 {bench.upload(source_), bench.upload(index), target_pointer, num_rows, kRowBytes,
                  std::uint64_t{kStride}, std::uint64_t{kTargetStride}});
    EXPECT_THAT(bench.take_faults(), testing::IsEmpty());
    return bench.read(target_pointer, target.size());
  }

  static constexpr std::size_t kTargetStride = 80;
  Bytes source_ = rows_of(6, kStride, 1);
};

TEST_P(RowsContract, GatherTakesIndexedRowsAndZeroesPads) {
  const std::vector<std::int32_t> index{5, 0, -1, 3, 3};
  const Bytes target = move_rows("gather_rows", index, 6);
  for (std::size_t i = 0; i < index.size(); ++i) {
    const Bytes expected =
        index[i] < 0 ? Bytes(kRowBytes) : row(source_, static_cast<std::size_t>(index[i]), kStride);
    EXPECT_EQ(row(target, i, kTargetStride), expected) << i;
  }
  EXPECT_EQ(row(target, 5, kTargetStride), Bytes(kRowBytes, kUntouched));
  EXPECT_EQ(target[kRowBytes], kUntouched);  // The gap between rows.
}

TEST_P(RowsContract, ScatterPutsRowsAtTheirIndexAndSkipsPads) {
  const Bytes target = move_rows("scatter_rows", {4, -1, 0, 2, -7}, 6);
  EXPECT_EQ(row(target, 4, kTargetStride), row(source_, 0, kStride));
  EXPECT_EQ(row(target, 0, kTargetStride), row(source_, 2, kStride));
  EXPECT_EQ(row(target, 2, kTargetStride), row(source_, 3, kStride));
  for (const std::size_t untouched : {1U, 3U, 5U}) {
    EXPECT_EQ(row(target, untouched, kTargetStride), Bytes(kRowBytes, kUntouched)) << untouched;
  }
}

TEST_P(RowsContract, PadZeroesItsRowsAndNoOthers) {
  KernelBench bench{GetParam() + "rows"};
  const Bytes before(8 * std::size_t{kStride}, kUntouched);
  const gpu::CuDevicePtr target = bench.upload(before);
  bench.launch("pad_rows", grid_for(5), {target, 2, 5, kRowBytes, std::uint64_t{kStride}});
  const Bytes after = bench.read(target, before.size());
  for (std::size_t i = 0; i < 8; ++i) {
    const bool is_pad = i >= 2 && i < 7;
    EXPECT_EQ(row(after, i, kStride), Bytes(kRowBytes, is_pad ? std::byte{0} : kUntouched)) << i;
  }
  EXPECT_EQ(after[2 * std::size_t{kStride} + kRowBytes], kUntouched);
  EXPECT_THAT(bench.take_faults(), testing::IsEmpty());
}

TEST_P(RowsContract, CopiesRowsLongerThanAWarpsVectors) {
  // 1,040 bytes are 65 vectors: two full rounds of 32 lanes and one lane of a third.
  KernelBench bench{GetParam() + "rows"};
  const Bytes source = rows_of(1, 1040, 7);
  const gpu::CuDevicePtr target = bench.allocate(source.size());
  bench.launch("gather_rows", grid_for(1),
               {bench.upload(source), bench.upload(std::vector<std::int32_t>{0}), target, 1, 1040,
                std::uint64_t{1040}, std::uint64_t{1040}});
  EXPECT_EQ(bench.read(target, source.size()), source);
}

TEST_P(RowsContract, AddressesRowsBeyond32Bits) {
  // Rows 2^32 bytes apart, of which only row 3 exists.
  constexpr std::uint64_t kFar = std::uint64_t{1} << 32U;
  KernelBench bench{GetParam() + "rows"};
  const gpu::CuDevicePtr source = bench.upload(row(source_, 0, kStride));
  const gpu::CuDevicePtr target = bench.allocate(kRowBytes);
  const gpu::CuDevicePtr index = bench.upload(std::vector<std::int32_t>{3});
  bench.launch("gather_rows", grid_for(1),
               {source - 3 * kFar, index, target, 1, kRowBytes, kFar, kFar});
  EXPECT_EQ(bench.read(target, kRowBytes), row(source_, 0, kStride));
  bench.launch("scatter_rows", grid_for(1),
               {source, index, target - 3 * kFar, 1, kRowBytes, kFar, kFar});
  bench.launch("pad_rows", grid_for(1), {target - 3 * kFar, 3, 1, kRowBytes, kFar});
  EXPECT_EQ(bench.read(target, kRowBytes), Bytes(kRowBytes));
  EXPECT_THAT(bench.take_faults(), testing::IsEmpty());
}

TEST_P(RowsContract, NoRowsNoEffect) {
  KernelBench bench{GetParam() + "rows"};
  const gpu::CuDevicePtr target = bench.upload(Bytes(kStride, kUntouched));
  bench.launch("pad_rows", grid_for(1), {target, 0, 0, kRowBytes, std::uint64_t{kStride}});
  EXPECT_EQ(bench.read(target, kStride), Bytes(kStride, kUntouched));
}

/// K and V rows alternate in one buffer, as after an all-gather; two blocks of two slots.
struct KvWriteRun {
  Bytes source = rows_of(6, kRowBytes, 1);
  Bytes k_pool;
  Bytes v_pool;
  std::size_t num_faults = 0;
};

KvWriteRun run_kv_write(const std::string& module, const std::vector<std::int64_t>& slots) {
  KernelBench bench{module};
  KvWriteRun run;
  const std::size_t pool_bytes = 4 * std::size_t{kRowBytes};
  const gpu::CuDevicePtr source = bench.upload(run.source);
  const gpu::CuDevicePtr k_pool = bench.upload(Bytes(pool_bytes, kUntouched));
  const gpu::CuDevicePtr v_pool = bench.upload(Bytes(pool_bytes, kUntouched));
  const auto num_rows = static_cast<std::int32_t>(slots.size());
  bench.launch("kv_write", grid_for(num_rows),
               {source, source + kRowBytes, bench.upload(slots), k_pool, v_pool, num_rows,
                kRowBytes, std::uint64_t{2 * kRowBytes}});
  run.num_faults = bench.take_faults().size();
  run.k_pool = bench.read(k_pool, pool_bytes);
  run.v_pool = bench.read(v_pool, pool_bytes);
  return run;
}

TEST_P(RowsContract, KvWriteFillsSlotsAndSkipsPads) {
  const KvWriteRun run = run_kv_write(GetParam() + "kv_write", {3, -1, 2});
  EXPECT_EQ(run.num_faults, 0U);
  EXPECT_EQ(row(run.k_pool, 3, kRowBytes), row(run.source, 0, kRowBytes));
  EXPECT_EQ(row(run.v_pool, 3, kRowBytes), row(run.source, 1, kRowBytes));
  EXPECT_EQ(row(run.k_pool, 2, kRowBytes), row(run.source, 4, kRowBytes));
  EXPECT_EQ(row(run.v_pool, 2, kRowBytes), row(run.source, 5, kRowBytes));
  for (const std::size_t slot : {0U, 1U}) {
    EXPECT_EQ(row(run.k_pool, slot, kRowBytes), Bytes(kRowBytes, kUntouched)) << slot;
    EXPECT_EQ(row(run.v_pool, slot, kRowBytes), Bytes(kRowBytes, kUntouched)) << slot;
  }
}

INSTANTIATE_TEST_SUITE_P(All, RowsContract, testing::ValuesIn(kernel_folders()),
                         [](const auto& test) {
                           return test.param == "kernels/" ? "clang" : "nvcc";
                         });

TEST(KvWriteMutants, NegativeSlotWritesTheNullBlock) {
  const KvWriteRun run = run_kv_write("kernels/mutants/kv_write_negative_slot", {3, -1, 2});
  EXPECT_EQ(row(run.k_pool, 0, kRowBytes), row(run.source, 2, kRowBytes));
  EXPECT_EQ(row(run.v_pool, 0, kRowBytes), row(run.source, 3, kRowBytes));
}

}  // namespace
}  // namespace cpverify::tests
