#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "numerics/float16.hpp"
#include "support/rng.hpp"
#include "unit/sim/lane_program.hpp"

/// mma forms other than the ones of f16 and bf16 with f32 sums. Operands are small integers, so
/// that every order of summation gives the same: what is tested is where each element goes.
namespace cpverify::sim {
namespace {

struct Shape {
  std::string name;  ///< Of the instruction behind "mma.sync.aligned.".
  std::size_t k = 8;
  std::size_t a_registers = 4;
  std::size_t b_registers = 2;
  std::size_t sum_registers = 4;
};

std::string list(std::size_t first, std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i)
    text += fmt::format("{}%r{}", i == 0 ? "" : ", ", first + i);
  return text + "}";
}

/// Words of each lane: A, B, C in; D out.
std::vector<U32s> run_mma(const Shape& form, const std::vector<U32s>& words) {
  SimulatedDevice device;
  const std::size_t in = form.a_registers + form.b_registers + form.sum_registers;
  U32s flat;
  for (const U32s& lane : words) flat.insert(flat.end(), lane.begin(), lane.end());
  const std::uint64_t input = device.upload(flat);
  const std::uint64_t output = device.upload(U32s(32 * form.sum_registers, 0));
  std::string body = fmt::format(
      "mov.u32 %r31, %laneid; ld.param.u64 %d1, [p0]; mad.wide.u32 %d1, %r31, {}, %d1; "
      "ld.param.u64 %d2, [p1]; mad.wide.u32 %d2, %r31, {}, %d2;\n",
      4 * in, 4 * form.sum_registers);
  for (std::size_t i = 0; i < in; ++i)
    body += fmt::format("ld.global.u32 %r{0}, [%d1+{1}];\n", i, 4 * i);
  const std::size_t c = form.a_registers + form.b_registers;
  body += fmt::format("mma.sync.aligned.{} {}, {}, {}, {};\n", form.name,
                      list(c, form.sum_registers), list(0, form.a_registers),
                      list(form.a_registers, form.b_registers), list(c, form.sum_registers));
  for (std::size_t i = 0; i < form.sum_registers; ++i) {
    body += fmt::format("st.global.u32 [%d2+{}], %r{};\n", 4 * i, c + i);
  }
  device.load(kernel_text(2, body + "ret;"));
  const LaunchResult result =
      device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{input, output});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const U32s out = device.download<std::uint32_t>(output, 32 * form.sum_registers);
  std::vector<U32s> lanes;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const auto begin = out.begin() + static_cast<std::ptrdiff_t>(lane * form.sum_registers);
    lanes.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(form.sum_registers));
  }
  return lanes;
}

struct Matrices {
  std::vector<std::vector<int>> a, b, c, d;
};

Matrices random_matrices(std::size_t k, int low, int high) {
  Rng rng{k};
  const auto fill = [&](std::size_t rows, std::size_t columns, int least, int most) {
    std::vector<std::vector<int>> m(rows, std::vector<int>(columns));
    for (auto& row : m) {
      for (int& value : row) {
        value = least + static_cast<int>(rng.next() % static_cast<std::uint64_t>(most - least + 1));
      }
    }
    return m;
  };
  Matrices m{fill(16, k, low, high), fill(k, 8, low, high), fill(16, 8, -9, 9), {}};
  m.d = m.c;
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 8; ++j) {
      for (std::size_t x = 0; x < k; ++x) m.d[i][j] += m.a[i][x] * m.b[x][j];
    }
  }
  return m;
}

std::uint32_t f32_bits(int value) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(value));
}
std::uint32_t f16_bits(int value) {
  return numerics::f32_to_f16(static_cast<float>(value));
}
/// 0, 1, 2, 3, 4 and their negatives. e4m3: 1 = 0x38, 2 = 0x40, 3 = 0x44, 4 = 0x48.
std::uint32_t e4m3_bits(int value) {
  constexpr std::array<std::uint32_t, 5> kCodes{0x00, 0x38, 0x40, 0x44, 0x48};
  return value < 0 ? 0x80 | kCodes[static_cast<std::size_t>(-value)]
                   : kCodes[static_cast<std::size_t>(value)];
}
/// e5m2: 1 = 0x3c, 2 = 0x40, 3 = 0x42, 4 = 0x44.
std::uint32_t e5m2_bits(int value) {
  constexpr std::array<std::uint32_t, 5> kCodes{0x00, 0x3c, 0x40, 0x42, 0x44};
  return value < 0 ? 0x80 | kCodes[static_cast<std::size_t>(-value)]
                   : kCodes[static_cast<std::size_t>(value)];
}
std::uint32_t byte_bits(int value) {
  return static_cast<std::uint32_t>(value) & 0xffU;
}

using Encode = std::uint32_t (*)(int);

TEST(MmaTf32, ElementsGoWhereTheManualSays) {
  // .tf32 fragments: a0 (g, t), a1 (g + 8, t), a2 (g, t + 4), a3 (g + 8, t + 4); b0 (t, g),
  // b1 (t + 4, g); c0 (g, 2t), c1 (g, 2t + 1), c2 and c3 in row g + 8.
  for (const std::size_t k : {4U, 8U}) {
    const Matrices m = random_matrices(k, -9, 9);
    const std::size_t halves = k / 4;
    std::vector<U32s> words(32);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t g = lane / 4;
      const std::size_t t = lane % 4;
      for (std::size_t h = 0; h < halves; ++h) {
        // The low 13 bits do not count.
        words[lane].push_back(f32_bits(m.a[g][t + 4 * h]) | 0x1fffU);
        words[lane].push_back(f32_bits(m.a[g + 8][t + 4 * h]) | 0x1U);
      }
      for (std::size_t h = 0; h < halves; ++h) words[lane].push_back(f32_bits(m.b[t + 4 * h][g]));
      for (std::size_t i = 0; i < 4; ++i) {
        words[lane].push_back(f32_bits(m.c[g + 8 * (i / 2)][2 * t + i % 2]));
      }
    }
    const Shape form{fmt::format("m16n8k{}.row.col.f32.tf32.tf32.f32", k), k, 2 * halves, halves,
                     4};
    const auto got = run_mma(form, words);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(got[lane][i], f32_bits(m.d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]));
      }
    }
  }
}

/// 8-bit fragments: element i of A is in row g for i < 4 and 8 <= i < 12, else g + 8, and in column
/// 4t + i % 4, 16 more for i >= 8. Element i of B is in row 4t + i % 4, 16 more for i >= 4.
void expect_bytes(const Shape& form, const Matrices& m, Encode a, Encode b, Encode sum) {
  std::vector<U32s> words(32);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::size_t g = lane / 4;
    const std::size_t t = lane % 4;
    words[lane].assign(form.a_registers + form.b_registers, 0);
    for (std::size_t i = 0; i < 4 * form.a_registers; ++i) {
      const std::size_t row = i < 4 || (i >= 8 && i < 12) ? g : g + 8;
      const std::size_t column = 4 * t + i % 4 + (i >= 8 ? 16 : 0);
      words[lane][i / 4] |= a(m.a[row][column]) << (8 * (i % 4));
    }
    for (std::size_t i = 0; i < 4 * form.b_registers; ++i) {
      const std::size_t row = 4 * t + i % 4 + (i >= 4 ? 16 : 0);
      words[lane][form.a_registers + i / 4] |= b(m.b[row][g]) << (8 * (i % 4));
    }
    for (std::size_t i = 0; i < 4; ++i) {
      words[lane].push_back(sum(m.c[g + 8 * (i / 2)][2 * t + i % 2]));
    }
  }
  const auto got = run_mma(form, words);
  for (std::size_t lane = 0; lane < 32; ++lane) {
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(got[lane][i], sum(m.d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]))
          << form.name << " lane " << lane << " register " << i;
    }
  }
}

std::uint32_t word_bits(int value) {
  return static_cast<std::uint32_t>(value);
}

TEST(MmaInteger, BytesGoWhereTheManualSays) {
  const auto both = [](const std::string& types, int low, int high) {
    expect_bytes({"m16n8k32.row.col.s32." + types + ".s32", 32, 4, 2, 4},
                 random_matrices(32, low, high), byte_bits, byte_bits, word_bits);
    expect_bytes({"m16n8k16.row.col.s32." + types + ".s32", 16, 2, 1, 4},
                 random_matrices(16, low, high), byte_bits, byte_bits, word_bits);
  };
  both("s8.s8", -128, 127);
  both("u8.u8", 0, 255);
  both("u8.s8", 0, 127);
  both("s8.u8", 0, 127);
}

TEST(MmaInteger, SatfiniteClampsAndElseItWraps) {
  // 32 products of 127 * 127 on top of 2^31 - 1.
  std::vector<U32s> words(32, U32s{0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f, 0x7f7f7f7f,
                                   0x7f7f7f7f, 0x7fffffff, 0x7fffffff, 0, 0});
  const auto clamped = run_mma({"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 32, 4, 2, 4}, words);
  EXPECT_EQ(clamped[5], (U32s{0x7fffffff, 0x7fffffff, 516128, 516128}));
  const auto wrapped = run_mma({"m16n8k32.row.col.s32.s8.s8.s32", 32, 4, 2, 4}, words);
  EXPECT_EQ(wrapped[5][0], 0x7fffffffU + 32U * 127U * 127U);
}

TEST(MmaFloat8, BytesGoWhereTheManualSays) {
  const Matrices m = random_matrices(32, -4, 4);
  expect_bytes({"m16n8k32.row.col.f32.e4m3.e4m3.f32", 32, 4, 2, 4}, m, e4m3_bits, e4m3_bits,
               f32_bits);
  expect_bytes({"m16n8k32.row.col.f32.e5m2.e4m3.f32", 32, 4, 2, 4}, m, e5m2_bits, e4m3_bits,
               f32_bits);
  expect_bytes({"m16n8k32.row.col.f32.e4m3.e5m2.f32", 32, 4, 2, 4}, m, e4m3_bits, e5m2_bits,
               f32_bits);
}

TEST(MmaHalf, SumsInF16ArePairs) {
  // a0, a1: row g; a2, a3: row g + 8; a4 to a7 the same, 8 columns on. b0, b1: rows 2t, 2t + 1.
  // c0, c1: row g, columns 2t and 2t + 1, in one register; c2, c3: row g + 8.
  for (const std::size_t k : {8U, 16U}) {
    const Matrices m = random_matrices(k, -5, 5);
    const std::size_t halves = k / 8;
    std::vector<U32s> words(32);
    const auto pair = [](int low, int high) { return f16_bits(low) | f16_bits(high) << 16; };
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t g = lane / 4;
      const std::size_t t = lane % 4;
      for (std::size_t h = 0; h < halves; ++h) {
        const std::size_t column = 2 * t + 8 * h;
        words[lane].push_back(pair(m.a[g][column], m.a[g][column + 1]));
        words[lane].push_back(pair(m.a[g + 8][column], m.a[g + 8][column + 1]));
      }
      for (std::size_t h = 0; h < halves; ++h) {
        words[lane].push_back(pair(m.b[2 * t + 8 * h][g], m.b[2 * t + 8 * h + 1][g]));
      }
      words[lane].push_back(pair(m.c[g][2 * t], m.c[g][2 * t + 1]));
      words[lane].push_back(pair(m.c[g + 8][2 * t], m.c[g + 8][2 * t + 1]));
    }
    const Shape form{fmt::format("m16n8k{}.row.col.f16.f16.f16.f16", k), k, 2 * halves, halves, 2};
    const auto got = run_mma(form, words);
    for (std::size_t lane = 0; lane < 32; ++lane) {
      const std::size_t g = lane / 4;
      const std::size_t t = lane % 4;
      EXPECT_EQ(got[lane][0], pair(m.d[g][2 * t], m.d[g][2 * t + 1]));
      EXPECT_EQ(got[lane][1], pair(m.d[g + 8][2 * t], m.d[g + 8][2 * t + 1]));
    }
  }
}

/// Element (row, column) of an 8x8 matrix is 8 * row + column; lane l has row l / 4.
U32s numbered_matrix() {
  U32s words(32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) words[lane] = 2 * lane | (2 * lane + 1) << 16;
  return words;
}
U32s transposed_matrix() {
  U32s words(32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t row = lane / 4;
    const std::uint32_t column = 2 * (lane % 4);
    words[lane] = (8 * column + row) | (8 * (column + 1) + row) << 16;
  }
  return words;
}

TEST(Stmatrix, WritesRowsOrColumns) {
  // Lanes 0 to 7 address rows of 16 bytes, one after the other; each lane reads back word `lane`.
  const auto run = [](const std::string& trans) {
    return run_lanes<std::uint32_t>(
        ".shared .align 16 .b8 tile[512]; mov.u32 %r1, tile; mad.lo.u32 %r2, %r31, 16, %r1; "
        "stmatrix.sync.aligned.m8n8.x1" +
            trans +
            ".shared.b16 [%r2], {%a0}; bar.warp.sync -1; mad.lo.u32 %r3, %r31, 4, %r1; "
            "ld.shared.u32 %out, [%r3];",
        numbered_matrix());
  };
  EXPECT_EQ(run(""), numbered_matrix());
  EXPECT_EQ(run(".trans"), transposed_matrix());
}

TEST(Stmatrix, X4IsUndoneByLdmatrix) {
  const U32s got = run_lanes<std::uint32_t>(
      ".shared .align 16 .b8 tile[512]; mov.u32 %r1, tile; mad.lo.u32 %r2, %r31, 16, %r1; "
      "add.u32 %r3, %a0, 1000; add.u32 %r4, %a0, 2000; add.u32 %r5, %a0, 3000; "
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%r2], {%a0, %r3, %r4, %r5}; "
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r6, %r7, %r8, %r9}, [%r2]; "
      "sub.u32 %r10, %r9, %r8; sub.u32 %r11, %r7, %r6; setp.ne.u32 %p1, %r10, 1000; "
      "setp.ne.or.u32 %p1, %r11, 1000, %p1; @%p1 trap; mov.u32 %out, %r6;",
      numbered_matrix());
  EXPECT_EQ(got, numbered_matrix());
}

TEST(Stmatrix, OutOfBoundsIsReported) {
  SimulatedDevice device;
  device.load(kernel_text(0,
                          ".shared .align 16 .b8 tile[64]; mov.u32 %r1, %laneid; mov.u32 %r2, "
                          "tile; mad.lo.u32 %r2, %r1, 16, %r2; "
                          "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r2], {%r1};"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::out_of_bounds_write);
}

TEST(Movmatrix, Transposes) {
  EXPECT_EQ(run_lanes<std::uint32_t>("movmatrix.sync.aligned.m8n8.trans.b16 %out, %a0;",
                                     numbered_matrix()),
            transposed_matrix());
}

}  // namespace
}  // namespace cpverify::sim
