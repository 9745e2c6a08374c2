#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "numerics/float16.hpp"
#include "support/rng.hpp"
#include "unit/sim/wgmma_problem.hpp"

/// Where wgmma takes its elements from, and what it makes of them. Operands are small integers, so
/// that every order of summation gives the same. Places in swizzled tiles are given by the rule
/// that compilers and TMA go by: 16-byte column c of row r stands at column c xor r.
namespace cpverify::sim {
namespace {

/// Byte offset, from the start of the tile, of element (row of M or N, k).
using Layout = std::function<std::size_t(std::size_t, std::size_t)>;

struct Element {
  std::string_view name;
  std::size_t bytes = 2;
  std::uint32_t (*encode)(int) = nullptr;

  [[nodiscard]] std::size_t depth() const { return 32 / bytes; }
};

std::uint32_t to_bf16(int value) {
  return numerics::f32_to_bf16(static_cast<float>(value));
}
std::uint32_t to_f16(int value) {
  return numerics::f32_to_f16(static_cast<float>(value));
}
std::uint32_t to_f32(int value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}
std::uint32_t to_byte(int value) {
  return static_cast<std::uint32_t>(value) & 0xffU;
}
/// 0, 1 and 2 in e4m3 (bias 7, three bits) are 0x00, 0x38 and 0x40; the sign is the highest bit.
std::uint32_t to_e4m3(int value) {
  constexpr std::array<std::uint32_t, 3> kCodes{0x00, 0x38, 0x40};
  return kCodes.at(static_cast<std::size_t>(value < 0 ? -value : value)) | (value < 0 ? 0x80U : 0U);
}
/// In e5m2 (bias 15, two bits) 0x00, 0x3c and 0x40.
std::uint32_t to_e5m2(int value) {
  constexpr std::array<std::uint32_t, 3> kCodes{0x00, 0x3c, 0x40};
  return kCodes.at(static_cast<std::size_t>(value < 0 ? -value : value)) | (value < 0 ? 0x80U : 0U);
}

constexpr Element kBf16{"bf16", 2, &to_bf16};
constexpr Element kF16{"f16", 2, &to_f16};
constexpr Element kTf32{"tf32", 4, &to_f32};
constexpr Element kE4{"e4m3", 1, &to_e4m3};
constexpr Element kE5{"e5m2", 1, &to_e5m2};
constexpr Element kS8{"s8", 1, &to_byte};
constexpr Element kU8{"u8", 1, &to_byte};

using Matrix = std::vector<std::vector<int>>;

Matrix random_matrix(std::size_t rows, std::size_t columns, std::uint64_t seed, int least = -2) {
  Rng rng{seed};
  Matrix matrix(rows, std::vector<int>(columns));
  for (auto& row : matrix) {
    for (int& value : row) {
      value = least + static_cast<int>(rng.next() % static_cast<std::uint64_t>(3 - least));
    }
  }
  return matrix;
}

void place(WgmmaInput& input, std::size_t start, const Matrix& matrix, const Element& element,
           const Layout& layout) {
  for (std::size_t row = 0; row < matrix.size(); ++row) {
    for (std::size_t k = 0; k < matrix[row].size(); ++k) {
      const std::uint32_t bits = element.encode(matrix[row][k]);
      std::memcpy(input.image.data() + start + layout(row, k), &bits, element.bytes);
    }
  }
}

/// Where thread `thread` keeps value `i` of D.
struct Place {
  std::size_t row = 0;
  std::size_t column = 0;
};
Place sum_place(std::size_t thread, std::size_t i) {
  const std::size_t lane = thread % 32;
  return {16 * (thread / 32) + lane / 4 + 8 * (i / 2 % 2), 8 * (i / 4) + 2 * (lane % 4) + i % 2};
}

/// Sums are f32, s32 or f16.
struct Sums {
  std::string_view name = "f32";
  [[nodiscard]] bool is_half() const { return name == "f16"; }
  [[nodiscard]] std::uint32_t encode(int value) const {
    if (is_half()) return to_f16(value);
    return name == "s32" ? static_cast<std::uint32_t>(value) : to_f32(value);
  }
};

struct Case {
  std::string name;
  std::size_t columns = 8;
  Element a = kBf16;
  Element b = kBf16;
  Sums sums;
  std::string constants;  ///< After scale-d.
  bool has_a_registers = false;
};

/// `at_a` and `at_b` say where elements lie; the input has the descriptors.
void expect_product(const Case& test, WgmmaInput input, const Layout& at_a, const Layout& at_b,
                    int sign = 1, bool accumulates = true) {
  SCOPED_TRACE(test.name);
  const std::size_t depth = test.a.depth();
  const Matrix a = random_matrix(64, depth, 1, test.a.name == "u8" ? 0 : -2);
  const Matrix b = random_matrix(test.columns, depth, 2, test.b.name == "u8" ? 0 : -2);
  const Matrix c = random_matrix(64, test.columns, 3);
  const std::size_t values = test.columns / 2;
  const std::size_t sums = test.sums.is_half() ? values / 2 : values;
  const std::uint32_t a_start = static_cast<std::uint32_t>(input.a_descriptor & 0x3fffU) * 16;
  const std::uint32_t b_start = static_cast<std::uint32_t>(input.b_descriptor & 0x3fffU) * 16;
  if (!test.has_a_registers) place(input, a_start, a, test.a, at_a);
  place(input, b_start, b, test.b, at_b);
  const auto pack = [&](std::size_t thread, const auto& value_at) {
    U32s words(sums);
    for (std::size_t i = 0; i < values; ++i) {
      const Place at = sum_place(thread, i);
      const std::uint32_t bits = test.sums.encode(value_at(at.row, at.column));
      words[test.sums.is_half() ? i / 2 : i] |= test.sums.is_half() ? bits << (16 * (i % 2)) : bits;
    }
    return words;
  };
  for (std::size_t thread = 0; thread < 128; ++thread) {
    const U32s words = pack(thread, [&](std::size_t row, std::size_t n) { return c[row][n]; });
    input.in.insert(input.in.end(), words.begin(), words.end());
    // Register r of lane 4 g + t: row g + 8 (r % 2), the (r / 2)th half of k, there the t-th 4
    // bytes.
    for (std::size_t r = 0; r < 4; ++r) {
      const std::size_t lane = thread % 32;
      const std::size_t row = 16 * (thread / 32) + lane / 4 + 8 * (r % 2);
      const std::size_t per_word = 4 / test.a.bytes;
      std::uint32_t word = 0;
      for (std::size_t i = 0; i < per_word; ++i) {
        const std::size_t k = depth / 2 * (r / 2) + per_word * (lane % 4) + i;
        word |= test.a.encode(a[row][k]) << (8 * test.a.bytes * i);
      }
      input.in.push_back(word);
    }
  }
  const std::string body = fmt::format(
      "wgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned.m64n{}k{}.{}.{}.{} {}, {}, %d9, "
      "%p{}{};\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;",
      test.columns, depth, test.sums.name, test.a.name, test.b.name, wgmma_registers("a", sums),
      test.has_a_registers ? "{%x0, %x1, %x2, %x3}" : "%d8", accumulates ? 1 : 2, test.constants);
  const WgmmaRun run = run_wgmma(sums, body, input);
  ASSERT_EQ(run.result.status, LaunchStatus::completed) << describe(run.result.faults);
  EXPECT_TRUE(run.result.faults.empty()) << describe(run.result.faults);
  U32s expected;
  for (std::size_t thread = 0; thread < 128; ++thread) {
    const U32s words = pack(thread, [&](std::size_t row, std::size_t n) {
      int sum = 0;
      for (std::size_t k = 0; k < depth; ++k) sum += a[row][k] * b[n][k];
      return sign * sum + (accumulates ? c[row][n] : 0);
    });
    expected.insert(expected.end(), words.begin(), words.end());
  }
  EXPECT_EQ(run.out, expected);
}

/// Core matrices of 8 rows and 16 bytes, all of the first half of k, then all of the second.
Layout plain(std::size_t rows, std::size_t bytes) {
  return [=](std::size_t row, std::size_t k) {
    const std::size_t half = k * bytes / 16;
    return (half * rows / 8 + row / 8) * 128 + row % 8 * 16 + k * bytes % 16;
  };
}
/// Rows of `width` bytes, swizzled; `first` is the 16-byte column where k = 0 is.
Layout swizzled(std::size_t width, std::size_t bytes, std::size_t first = 0) {
  return [=](std::size_t row, std::size_t k) {
    const std::size_t column = first + k * bytes / 16;
    const std::size_t turn = row * width / 128 % (width / 16);
    return row * width + (column ^ turn) * 16 + k * bytes % 16;
  };
}
/// Along M or N: tiles of `width` bytes (of M or N) and 8 k, two for k 0-7 and 8-15, then the next.
Layout transposed(std::size_t width) {
  return [=](std::size_t row, std::size_t k) {
    const std::size_t per_row = width / 2;
    const std::size_t column = row % per_row / 8;
    const std::size_t turn = k % 8 * width / 128 % (width / 16);
    return (row / per_row * 2 + k / 8) * (8 * width) + k % 8 * width + (column ^ turn) * 16 +
           row % 8 * 2;
  };
}

constexpr std::uint64_t mode_of(std::size_t width) {
  return width == 128 ? 1 : width == 64 ? 2 : width == 32 ? 3 : 0;
}

WgmmaInput plain_input(std::size_t columns) {
  WgmmaInput input;
  // Strides: 128 bytes to the next 8 rows, all rows of a half of k to the other half.
  input.a_descriptor = matrix_descriptor(kOperandA, 64 * 16, 128, 0);
  input.b_descriptor =
      matrix_descriptor(kOperandB, static_cast<std::uint32_t>(columns) * 16, 128, 0);
  return input;
}

TEST(Wgmma, MultipliesEveryTypeFromPlainTiles) {
  const std::vector<Case> cases{
      {"bf16", 8, kBf16, kBf16, {"f32"}, ", 1, 1, 0, 0", false},
      {"f16", 24, kF16, kF16, {"f32"}, ", 1, 1, 0, 0", false},
      {"f16 sums", 16, kF16, kF16, {"f16"}, ", 1, 1, 0, 0", false},
      {"tf32", 40, kTf32, kTf32, {"f32"}, ", 1, 1", false},
      {"e4m3", 8, kE4, kE4, {"f32"}, ", 1, 1", false},
      {"e5m2 by e4m3", 16, kE5, kE4, {"f32"}, ", 1, 1", false},
      {"e4m3 by e5m2 to f16", 16, kE4, kE5, {"f16"}, ", 1, 1", false},
      {"s8", 24, kS8, kS8, {"s32"}, "", false},
      {"u8 by s8", 32, kU8, kS8, {"s32"}, "", false},
      {"s8 by u8", 48, kS8, kU8, {"s32"}, "", false},
      {"bf16, widest", 256, kBf16, kBf16, {"f32"}, ", 1, 1, 0, 0", false},
  };
  for (const Case& test : cases) {
    expect_product(test, plain_input(test.columns), plain(64, test.a.bytes),
                   plain(test.columns, test.b.bytes));
  }
}

TEST(Wgmma, TakesAFromRegisters) {
  const std::vector<Case> cases{
      {"bf16", 8, kBf16, kBf16, {"f32"}, ", 1, 1, 0", true},
      {"f16 sums", 64, kF16, kF16, {"f16"}, ", 1, 1, 0", true},
      {"tf32", 16, kTf32, kTf32, {"f32"}, ", 1, 1", true},
      {"e5m2", 16, kE5, kE5, {"f32"}, ", 1, 1", true},
      {"e5m2 to f16", 16, kE5, kE5, {"f16"}, ", 1, 1", true},
      {"u8", 96, kU8, kU8, {"s32"}, "", true},
  };
  for (const Case& test : cases) {
    expect_product(test, plain_input(test.columns), plain(64, test.a.bytes),
                   plain(test.columns, test.b.bytes));
  }
}

TEST(Wgmma, ReadsSwizzledTilesAlongK) {
  for (const std::size_t width : {32U, 64U, 128U}) {
    WgmmaInput input;
    const auto stride = static_cast<std::uint32_t>(8 * width);
    input.a_descriptor = matrix_descriptor(kOperandA, 16, stride, mode_of(width));
    input.b_descriptor = matrix_descriptor(kOperandB, 16, stride, mode_of(width));
    const std::string name = fmt::format("{} bytes", width);
    expect_product({name, 48, kF16, kF16, {"f32"}, ", 1, 1, 0, 0", false}, input,
                   swizzled(width, 2), swizzled(width, 2));
    expect_product({name, 8, kE4, kE4, {"f32"}, ", 1, 1", false}, input, swizzled(width, 1),
                   swizzled(width, 1));
  }
}

/// The third step of k in rows of 128 bytes: the descriptor starts 64 bytes further.
TEST(Wgmma, GoesAlongKByMovingTheStart) {
  WgmmaInput input;
  input.a_descriptor = matrix_descriptor(kOperandA + 64, 16, 1024, 1);
  input.b_descriptor = matrix_descriptor(kOperandB + 64, 16, 1024, 1);
  const auto from_start = [](std::size_t row, std::size_t k) {
    return swizzled(128, 2, 4)(row, k) - 64;
  };
  expect_product({"k from 32", 16, kBf16, kBf16, {"f32"}, ", 1, 1, 0, 0", false}, input, from_start,
                 from_start);
}

/// A tile that begins 4 rows of 128 bytes after a multiple of 1024.
TEST(Wgmma, CountsThePatternFromTheBaseOffset) {
  WgmmaInput input;
  input.a_descriptor = matrix_descriptor(kOperandA, 16, 1024, 1);
  input.b_descriptor = matrix_descriptor(kOperandB + 512, 16, 1024, 1, 4);
  expect_product({"base offset 4", 16, kBf16, kBf16, {"f32"}, ", 1, 1, 0, 0", false}, input,
                 swizzled(128, 2), swizzled(128, 2));
}

TEST(Wgmma, ReadsTransposedTiles) {
  for (const std::size_t width : {16U, 32U, 64U, 128U}) {
    WgmmaInput input;
    const auto group = static_cast<std::uint32_t>(8 * width);
    // Without a swizzle the strides change their roles.
    const std::uint32_t leading = width == 16 ? group : 2 * group;
    const std::uint32_t stride = width == 16 ? 2 * group : group;
    input.a_descriptor = matrix_descriptor(kOperandA, leading, stride, mode_of(width));
    input.b_descriptor = matrix_descriptor(kOperandB, leading, stride, mode_of(width));
    const std::string name = fmt::format("{} bytes", width);
    expect_product({name, 128, kBf16, kBf16, {"f32"}, ", 1, 1, 1, 1", false}, input,
                   transposed(width), transposed(width));
    expect_product({name + ", A in registers", 64, kF16, kF16, {"f32"}, ", 1, 1, 1", true}, input,
                   transposed(width), transposed(width));
  }
}

TEST(Wgmma, NegatesAAndBAndStartsFromZero) {
  const auto test = [](const std::string& constants) {
    return Case{constants, 8, kBf16, kBf16, {"f32"}, constants, false};
  };
  const Layout a = plain(64, 2);
  const Layout b = plain(8, 2);
  expect_product(test(", -1, 1, 0, 0"), plain_input(8), a, b, -1);
  expect_product(test(", 1, -1, 0, 0"), plain_input(8), a, b, -1);
  expect_product(test(", -1, -1, 0, 0"), plain_input(8), a, b, 1);
  expect_product(test(", 1, 1, 0, 0"), plain_input(8), a, b, 1, false);
}

/// 2^24 + 1 + 1 in f32, one after the other, is 2^24: each sum is rounded. In f16 the sum of 2048,
/// 1 and 1 is 2050: it is rounded once, at the end.
TEST(Wgmma, RoundsLikeMma) {
  for (const bool is_half : {false, true}) {
    WgmmaInput input = plain_input(8);
    const std::size_t sums = is_half ? 2 : 4;
    const Element& element = is_half ? kF16 : kBf16;
    Matrix a(64, std::vector<int>(16, 0));
    for (auto& row : a) row[3] = row[9] = 1;
    place(input, kOperandA, a, element, plain(64, 2));
    place(input, kOperandB, Matrix(8, std::vector<int>(16, 1)), element, plain(8, 2));
    const std::uint32_t start = is_half ? to_f16(2048) * 0x10001U : to_f32(1 << 24);
    input.in.assign(128 * (sums + 4), start);
    const std::string body = fmt::format(
        "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k16.{}.{} {}, %d8, %d9, %p1, "
        "1, 1, 0, 0; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        is_half ? "f16" : "f32", is_half ? "f16.f16" : "bf16.bf16", wgmma_registers("a", sums));
    const WgmmaRun run = run_wgmma(sums, body, input);
    EXPECT_EQ(run.out, U32s(128 * sums, is_half ? to_f16(2050) * 0x10001U : start));
  }
}

/// s8: 32 products of 127 * 127 = 16129 make 516128. From 2^31 - 1 that wraps, or stays.
TEST(Wgmma, WrapsOrClampsIntegers) {
  for (const bool is_clamped : {false, true}) {
    WgmmaInput input = plain_input(8);
    input.image.assign(input.image.size(), 127);
    input.in.assign(128 * 8, 0x7fffffffU);
    const std::string body = fmt::format(
        "wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned.m64n8k32{}.s32.s8.s8 {}, %d8, %d9, "
        "%p1; wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;",
        is_clamped ? ".satfinite" : "", wgmma_registers("a", 4));
    const WgmmaRun run = run_wgmma(4, body, input);
    EXPECT_EQ(run.out, U32s(128 * 4, is_clamped ? 0x7fffffffU : 0x7fffffffU + 516128U));
  }
}

}  // namespace
}  // namespace cpverify::sim
