#include "sim/machine/tensor_map.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/fault.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

/// A tensor map as a kernel parameter.
struct MapParameter {
  std::array<std::byte, TensorMap::kBytes> bytes{};
};

/// 4-byte elements, dense.
TensorMap dense(std::uint64_t address, const std::vector<std::uint64_t>& extents,
                const std::vector<std::uint32_t>& box) {
  TensorMap map;
  map.element = TensorElement::u32;
  map.rank = static_cast<std::uint32_t>(extents.size());
  map.address = address;
  std::uint64_t stride = 4;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    map.extents[i] = extents[i];
    map.box[i] = box[i];
    map.strides[i] = stride;
    stride *= extents[i];
  }
  return map;
}

TEST(TensorMapObject, SurvivesTheWayToTheKernel) {
  TensorMap map = dense(0x7000'0000'0010, {1ULL << 32, 3}, {256, 2});
  map.element = TensorElement::bf16;
  map.swizzle_bytes = 128;
  map.is_nan_fill = true;
  map.steps = {1, 8, 1, 1, 1};
  map.strides[1] = (1ULL << 40) - 16;
  const std::optional<TensorMap> got = decode_tensor_map(encode(map));
  ASSERT_TRUE(got.has_value());
  EXPECT_EQ(got->element, map.element);
  EXPECT_EQ(got->rank, 2U);
  EXPECT_EQ(got->swizzle_bytes, 128U);
  EXPECT_TRUE(got->is_nan_fill);
  EXPECT_EQ(got->address, map.address);
  EXPECT_EQ(got->extents, map.extents);
  EXPECT_EQ(got->strides, map.strides);
  EXPECT_EQ(got->box, map.box);
  EXPECT_EQ(got->steps, map.steps);
  EXPECT_FALSE(decode_tensor_map(MapParameter{}.bytes).has_value());
}

TEST(TensorMapObject, SwizzlesBlocksOf16Bytes) {
  // Row r of 128 bytes has its block b at block b ^ (r % 8); 64 bytes: two rows to 128 bytes, block
  // b ^ (r / 2 % 4); 32 bytes: four rows to 128 bytes, block b ^ (r / 4 % 2).
  for (std::uint64_t row = 0; row < 16; ++row) {
    for (std::uint64_t block = 0; block < 8; ++block) {
      EXPECT_EQ(swizzle(row * 128 + block * 16 + 5, 128), row * 128 + (block ^ (row % 8)) * 16 + 5);
      EXPECT_EQ(swizzle(row * 128 + block * 16, 0), row * 128 + block * 16);
      if (block < 4) {
        EXPECT_EQ(swizzle(row * 64 + block * 16, 64), row * 64 + (block ^ (row / 2 % 4)) * 16);
      }
      if (block < 2) {
        EXPECT_EQ(swizzle(row * 32 + block * 16, 32), row * 32 + (block ^ (row / 4 % 2)) * 16);
      }
    }
  }
}

/// Loads one box at `coordinates` into shared memory at `tile`, byte 0, and copies 2 KiB of that
/// to the output, words that were not written as 0xFFFFFFFF.
struct CtaRun {
  LaunchResult result;
  U32s out;
};

constexpr std::uint32_t kTileWords = 512;

std::string load_text(std::size_t rank, const std::string& coordinates, std::uint64_t bytes) {
  return fmt::format(
      "@!%p9 bra W; mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], {2};\n"
      "cp.async.bulk.tensor.{0}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], "
      "[%d4, {{{1}}}], [bar];\n"
      "W: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W;\n"
      "COPY: ld.shared.u32 %r1, [%r3]; st.global.u32 [%d3], %r1; add.u32 %r3, %r3, 128; "
      "add.u64 %d3, %d3, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %p1, %r10, %r11; @%p1 bra COPY;",
      rank, coordinates, bytes);
}

CtaRun run_cta(SimulatedDevice& device, const TensorMap& map, const std::string& body,
               std::uint32_t words = kTileWords) {
  const std::uint64_t out = device.upload(U32s(kTileWords, 7777));
  std::string text = kernel_text(
      1, fmt::format(
             ".shared .align 1024 .b8 tile[2048]; .shared .align 8 .b64 bar;\n"
             "ld.param.u64 %d1, [p0]; mov.b64 %d4, map; cvta.param.u64 %d4, %d4; mov.u32 %r9, "
             "%tid.x; setp.eq.u32 %p9, %r9, 0; mad.wide.u32 %d3, %r9, 4, %d1; mov.u32 %r2, tile; "
             "mad.lo.u32 %r3, %r9, 4, %r2; mov.u32 %r10, 0; mov.u32 %r11, {}; "
             "@%p9 mbarrier.init.shared::cta.b64 [bar], 1; fence.proxy.async; bar.sync 0;\n",
             words / 32) +
             body);
  text.insert(text.find("(.param") + 1, ".param .align 128 .b8 map[128], ");
  device.load(text);
  CtaRun run;
  run.result = device.run("k", race_checked({1, 1, 1}, {32, 1, 1}),
                          Parameters{MapParameter{encode(map)}, out});
  run.out = device.download<std::uint32_t>(out, words);
  return run;
}

U32s numbers(std::size_t count) {
  U32s values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint32_t>(1000 + i);
  return values;
}

TEST(TensorLoad, BringsABoxAndZerosForWhatIsOutside) {
  // 12 x 5 elements; the box of 8 x 4 at (-2, 3): columns -2..5, rows 3..6.
  SimulatedDevice device;
  const TensorMap map = dense(device.upload(numbers(64)), {12, 5}, {8, 4});
  const CtaRun run = run_cta(device, map, load_text(2, "-2, 3", 128), 32);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  for (std::int64_t row = 0; row < 4; ++row) {
    for (std::int64_t column = 0; column < 8; ++column) {
      const std::int64_t x = column - 2;
      const std::int64_t y = row + 3;
      const std::int64_t want = x >= 0 && y < 5 ? 1000 + 12 * y + x : 0;
      EXPECT_EQ(run.out[static_cast<std::size_t>(8 * row + column)], want) << row << " " << column;
    }
  }
}

TEST(TensorLoad, BringsRowsOfOneToFiveDimensions) {
  // The box {4, 2, 2, 2, 2} of the tensor {8, 3, 3, 3, 3} at (2, 1, 1, 1, 1), cut to each rank.
  for (std::size_t rank = 1; rank <= 5; ++rank) {
    SimulatedDevice device;
    const std::vector<std::uint64_t> extents{8, 3, 3, 3, 3};
    const std::vector<std::uint32_t> box{4, 2, 2, 2, 2};
    const auto cut = static_cast<std::ptrdiff_t>(rank);
    const TensorMap map =
        dense(device.upload(numbers(8 * 81)), {extents.begin(), extents.begin() + cut},
              {box.begin(), box.begin() + cut});
    std::string coordinates = "2";
    for (std::size_t i = 1; i < rank; ++i) coordinates += ", 1";
    const std::uint64_t elements = 4ULL << (rank - 1);
    const CtaRun run = run_cta(device, map, load_text(rank, coordinates, 4 * elements), 64);
    EXPECT_FALSE(run.result.faults.size() > 1) << describe(run.result.faults);
    for (std::uint64_t i = 0; i < elements; ++i) {
      std::uint64_t index = 2 + i % 4;
      std::uint64_t stride = 8;
      for (std::uint64_t bit = 0; bit + 1 < rank; ++bit) {
        index += (1 + (i / 4 >> bit & 1U)) * stride;
        stride *= 3;
      }
      EXPECT_EQ(run.out[i], 1000 + index) << rank << " " << i;
    }
  }
}

TEST(TensorLoad, SwizzlesRows) {
  // 16 rows of 32 words, 128 bytes, whole: word w of row r is at block (w / 4) ^ (r % 8).
  SimulatedDevice device;
  TensorMap map = dense(device.upload(numbers(512)), {32, 16}, {32, 16});
  map.swizzle_bytes = 128;
  const CtaRun run = run_cta(device, map, load_text(2, "0, 0", 2048));
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t word = 0; word < 32; ++word) {
      const std::uint32_t block = (word / 4) ^ (row % 8);
      EXPECT_EQ(run.out[32 * row + 4 * block + word % 4], 1000 + 32 * row + word);
    }
  }
}

TEST(TensorLoad, GivesShortRowsTheWholeSwizzleWidth) {
  // Rows of 16 bytes with 32-byte swizzling lie 32 bytes apart: rows 4 to 7 in the second half.
  SimulatedDevice device;
  TensorMap map = dense(device.upload(numbers(32)), {4, 8}, {4, 8});
  map.swizzle_bytes = 32;
  const CtaRun run = run_cta(device, map, load_text(2, "0, 0", 128), 64);
  ASSERT_EQ(run.result.faults.size(), 1U);  // The gaps are unwritten.
  EXPECT_EQ(run.result.faults[0].kind, FaultKind::uninitialised_read);
  for (std::uint32_t row = 0; row < 8; ++row) {
    for (std::uint32_t word = 0; word < 4; ++word) {
      EXPECT_EQ(run.out[8 * row + (row < 4 ? 0 : 4) + word], 1000 + 4 * row + word) << row;
    }
  }
}

TEST(TensorLoad, StepsOverElementsAndFillsWithNan) {
  // A box of 5 rows in steps of 2 is rows 1, 3, 5; row 5 is outside. bf16 pairs in 32-bit words.
  SimulatedDevice device;
  TensorMap map = dense(device.upload(numbers(5 * 4)), {8, 5}, {8, 5});
  map.element = TensorElement::bf16;
  map.strides = {2, 16};
  map.steps[1] = 2;
  map.is_nan_fill = true;
  const CtaRun run = run_cta(device, map, load_text(2, "2, 1", 48), 32);
  // 8 columns from 2 on: 6 are inside, 3 words, then a NaN pair.
  for (std::uint32_t row = 0; row < 3; ++row) {
    for (std::uint32_t word = 0; word < 4; ++word) {
      const bool is_inside = row < 2 && word < 3;
      EXPECT_EQ(run.out[4 * row + word],
                is_inside ? 1000 + 4 * (1 + 2 * row) + 1 + word : 0x7fff7fffU)
          << row << " " << word;
    }
  }
}

TEST(TensorLoad, ReadsItsMapFromGlobalMemoryToo) {
  SimulatedDevice device;
  const TensorMap map = dense(device.upload(numbers(32)), {32}, {32});
  const auto bytes = encode(map);
  const std::uint64_t place = device.upload(std::vector<std::byte>{bytes.begin(), bytes.end()});
  const CtaRun run = run_cta(
      device, map,
      fmt::format("mov.u64 %d4, {}; prefetch.tensormap [%d4]; ", place) + load_text(1, "0", 128),
      32);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  EXPECT_EQ(run.out, numbers(32));
}

std::vector<FaultKind> kinds(const LaunchResult& result) {
  std::vector<FaultKind> found;
  for (const Fault& fault : result.faults) found.push_back(fault.kind);
  return found;
}

TEST(TensorLoad, ChecksTheTensorTheMapAndTheTarget) {
  SimulatedDevice device;
  const std::uint64_t source = device.upload(numbers(64));
  const TensorMap good = dense(source, {16, 4}, {16, 4});
  // One row more than the allocation has.
  TensorMap map = dense(source, {16, 5}, {16, 5});
  CtaRun run = run_cta(device, map, load_text(2, "0, 0", 320), 32);
  ASSERT_EQ(kinds(run.result), std::vector{FaultKind::out_of_bounds_read});
  EXPECT_EQ(run.result.faults[0].address, source + 256);
  map = dense(source + 4096, {16, 4}, {16, 4});
  EXPECT_EQ(kinds(run_cta(device, map, load_text(2, "0, 0", 256), 32).result),
            std::vector{FaultKind::out_of_bounds_read});
  EXPECT_EQ(kinds(run_cta(device, good, load_text(3, "0, 0, 0", 256), 32).result),
            std::vector{FaultKind::illegal_instruction});
  EXPECT_EQ(
      kinds(run_cta(device, good,
                    "mov.u64 %d4, " + std::to_string(source) + ";" + load_text(2, "0, 0", 256), 32)
                .result),
      std::vector{FaultKind::illegal_instruction});
  std::string text = load_text(2, "0, 0", 256);
  text.replace(text.find("[tile]"), 6, "[tile+64]");
  EXPECT_EQ(kinds(run_cta(device, good, text, 32).result), std::vector{FaultKind::misaligned});
  text.replace(text.find("[tile+64]"), 9, "[tile+1920]");
  EXPECT_EQ(kinds(run_cta(device, good, text, 32).result),
            std::vector{FaultKind::out_of_bounds_write});
  EXPECT_EQ(kinds(run_cta(device, good, "st.global.u32 [%d4], 0;", 32).result),
            std::vector{FaultKind::out_of_bounds_write});
  EXPECT_EQ(kinds(run_cta(device, good, "ld.u32 %r1, [%d4]; ld.u32 %r1, [%d4+132];", 32).result),
            std::vector<FaultKind>{});
  EXPECT_EQ(kinds(run_cta(device, good, "ld.u32 %r1, [%d4+136];", 32).result),
            std::vector{FaultKind::out_of_bounds_read});
  EXPECT_EQ(kinds(run_cta(device, good, "st.u32 [%d4], 0;", 32).result),
            std::vector{FaultKind::out_of_bounds_write});
}

constexpr const char* kStore =
    "FILL: st.shared.u32 [%r3], %r10; add.u32 %r3, %r3, 128; add.u32 %r10, %r10, 1; "
    "setp.lt.u32 %p1, %r10, 4; @%p1 bra FILL; fence.proxy.async.shared::cta; bar.sync 0;\n"
    "@%p9 {0}.2d.global.shared::cta{1}.bulk_group [%d4, {{-4, 3}}], [tile];\n"
    "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;";

TEST(TensorStore, LeavesOutWhatIsOutside) {
  // A box of 8 x 4 at (-4, 3) on 8 x 5: columns 0..3, rows 3 and 4, of a box of zeros.
  SimulatedDevice device;
  const std::uint64_t target = device.upload(U32s(40, 9));
  const TensorMap map = dense(target, {8, 5}, {8, 4});
  const CtaRun run =
      run_cta(device, map, fmt::format(fmt::runtime(kStore), "cp.async.bulk.tensor", ".tile"), 32);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  const U32s got = device.download<std::uint32_t>(target, 40);
  for (std::uint32_t row = 0; row < 5; ++row) {
    for (std::uint32_t column = 0; column < 8; ++column) {
      EXPECT_EQ(got[8 * row + column], row >= 3 && column < 4 ? 0U : 9U) << row << " " << column;
    }
  }
}

TEST(TensorReduce, AddsABox) {
  SimulatedDevice device;
  const std::uint64_t target = device.upload(numbers(40));
  TensorMap map = dense(target, {8, 5}, {8, 16});
  map.box[1] = 16;
  const CtaRun run = run_cta(
      device, map, fmt::format(fmt::runtime(kStore), "cp.reduce.async.bulk.tensor", ".add"), 32);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  // Rows 0 and 1 of the box are in the first 32 words of shared memory: value 0.
  EXPECT_EQ(device.download<std::uint32_t>(target, 40), numbers(40));
  map.element = TensorElement::bf16;
  const CtaRun other = run_cta(
      device, map, fmt::format(fmt::runtime(kStore), "cp.reduce.async.bulk.tensor", ".add"), 32);
  EXPECT_EQ(kinds(other.result), std::vector{FaultKind::illegal_instruction});
}

TEST(TensorCoordinates, MustBeAsManyAsTheInstructionSays) {
  SimulatedDevice device;
  const TensorMap map = dense(device.upload(numbers(32)), {32}, {32});
  EXPECT_THROW(run_cta(device, map, load_text(2, "0", 128), 32), InputError);
  EXPECT_THROW(run_cta(device, map, "ld.global.u32 %r1, [%d4, {%r1}];", 32), InputError);
}

}  // namespace
}  // namespace cpverify::sim
