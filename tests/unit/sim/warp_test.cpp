#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "numerics/float16.hpp"
#include "support/rng.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

U32s lanes() {
  U32s values(32);
  for (std::uint32_t lane = 0; lane < 32; ++lane) values[lane] = lane;
  return values;
}

TEST(Shuffle, ModesPickTheirSourceLane) {
  const auto run = [](const std::string& form) {
    return run_lanes<std::uint32_t>("shfl.sync." + form +
                                        ", -1; selp.u32 %r1, 100, 0, %p1; "
                                        "add.u32 %out, %r2, %r1;",
                                    lanes());
  };
  const U32s bfly = run("bfly.b32 %r2|%p1, %a0, 5, 31");
  const U32s up = run("up.b32 %r2|%p1, %a0, 3, 0");
  const U32s down = run("down.b32 %r2|%p1, %a0, 3, 31");
  const U32s idx = run("idx.b32 %r2|%p1, %a0, 7, 31");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(bfly[lane], (lane ^ 5) + 100);
    EXPECT_EQ(up[lane], lane >= 3 ? lane - 3 + 100 : lane);  // Out of range: its own value.
    EXPECT_EQ(down[lane], lane < 29 ? lane + 3 + 100 : lane);
    EXPECT_EQ(idx[lane], 107U);
  }
}

TEST(Shuffle, SegmentsDivideTheWarp) {
  // Segments of 8 lanes: the segment mask is 24 = 0x18, in bits 8-12.
  const U32s idx = run_lanes<std::uint32_t>("shfl.sync.idx.b32 %out, %a0, 2, 0x181f, -1;", lanes());
  const U32s down =
      run_lanes<std::uint32_t>("shfl.sync.down.b32 %out|%p1, %a0, 3, 0x181f, -1;", lanes());
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(idx[lane], lane / 8 * 8 + 2);
    EXPECT_EQ(down[lane], lane % 8 < 5 ? lane + 3 : lane);
  }
}

TEST(Shuffle, TargetMayBeTheSource) {
  const U32s got = run_lanes<std::uint32_t>(
      "mov.b32 %out, %a0; shfl.sync.bfly.b32 %out, %out, 1, 31, -1;", lanes());
  EXPECT_EQ(got[0], 1U);
  EXPECT_EQ(got[31], 30U);
}

TEST(Shuffle, MaskThatIsNotTheExecutingLanesIsReported) {
  SimulatedDevice device;
  device.load(kernel_text(0,
                          "mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 16; "
                          "@%p1 shfl.sync.idx.b32 %r2, %r1, 0, 31, -1;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::warp_divergence);
  // Lanes that do not exist need not take part.
  const LaunchResult half = device.run("k", shape({1, 1, 1}, {16, 1, 1}), Parameters{});
  EXPECT_TRUE(half.faults.empty()) << describe(half.faults);
}

TEST(Vote, CountsActiveLanesOnly) {
  EXPECT_EQ(run_lanes<std::uint32_t>("setp.lt.u32 %p1, %a0, 4; vote.sync.ballot.b32 %out, %p1, -1;",
                                     lanes())[9],
            0xfU);
  EXPECT_EQ(run_lanes<std::uint32_t>("setp.lt.u32 %p1, %a0, 8; setp.lt.u32 %p2, %a0, 4; "
                                     "mov.u32 %out, 0; @%p1 vote.sync.ballot.b32 %out, %p2, 0xff;",
                                     lanes())[7],
            0xfU);
  const auto vote = [](const std::string& form) {
    return run_lanes<std::uint32_t>(
        "setp.lt.u32 %p1, %a0, 4; setp.lt.u32 %p4, %a0, 99; "
        "vote.sync." +
            form + ", -1; selp.u32 %out, 1, 0, %p2;",
        lanes())[0];
  };
  EXPECT_EQ(vote("all.pred %p2, %p1"), 0U);
  EXPECT_EQ(vote("all.pred %p2, %p4"), 1U);
  EXPECT_EQ(vote("any.pred %p2, %p1"), 1U);
  EXPECT_EQ(vote("any.pred %p2, !%p4"), 0U);
  EXPECT_EQ(vote("uni.pred %p2, %p1"), 0U);
  EXPECT_EQ(vote("uni.pred %p2, !%p4"), 1U);
}

TEST(Match, FindsEqualValues) {
  const U32s any =
      run_lanes<std::uint32_t>("and.b32 %r1, %a0, 1; match.any.sync.b32 %out, %r1, -1;", lanes());
  EXPECT_EQ(any[0], 0x55555555U);
  EXPECT_EQ(any[1], 0xaaaaaaaaU);
  EXPECT_EQ(run_lanes<std::uint32_t>("match.all.sync.b32 %out|%p1, %a0, -1;", lanes())[0], 0U);
  EXPECT_EQ(run_lanes<std::uint32_t>("match.all.sync.b64 %out|%p1, %a0, -1;", U64s{7})[0], ~0U);
}

TEST(Redux, CombinesTheWarp) {
  const auto reduce = [](const std::string& form) {
    return run_lanes<std::uint32_t>("sub.u32 %r1, %a0, 3; redux.sync." + form + " %out, %r1, -1;",
                                    lanes())[0];
  };
  // -3, -2, ..., 28: sum 32 * 12.5 = 400.
  EXPECT_EQ(reduce("add.s32"), 400U);
  EXPECT_EQ(reduce("min.s32"), static_cast<std::uint32_t>(-3));
  EXPECT_EQ(reduce("min.u32"), 0U);
  EXPECT_EQ(reduce("max.s32"), 28U);
  EXPECT_EQ(reduce("max.u32"), static_cast<std::uint32_t>(-1));
  EXPECT_EQ(reduce("and.b32"), 0U);
  EXPECT_EQ(reduce("or.b32"), ~0U);
}

/// Stores 128 halves, loads matrices with `form` and stores each register.
TEST(Ldmatrix, LaneLReceivesElementsOfRowLOver4) {
  // Element (row, column) of matrix m is 64m + 8row + column: 16 bits each, rows of 16 bytes.
  const std::string fill =
      ".shared .align 16 .b8 tile[512]; mov.u32 %r20, tile; shl.b32 %r21, %r31, 4; "
      "add.u32 %r21, %r21, %r20; shl.b32 %r22, %r31, 3; mov.u32 %r23, 0;\n"
      "FILL: add.u32 %r24, %r22, %r23; shl.b32 %r25, %r23, 1; add.u32 %r25, %r25, %r21; "
      "st.shared.u16 [%r25], %r24; add.u32 %r23, %r23, 1; setp.lt.u32 %p9, %r23, 8; "
      "@%p9 bra FILL; bar.warp.sync -1;\n";
  const U32s plain = run_lanes<std::uint32_t>(
      fill +
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r21]; "
      "mov.b32 %out, %r3;");
  const U32s trans = run_lanes<std::uint32_t>(
      fill +
      "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1, %r2, %r3, %r4}, [%r21]; "
      "mov.b32 %out, %r2;");
  const U32s one =
      run_lanes<std::uint32_t>(fill + "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%out}, [%r21];");
  const U32s two = run_lanes<std::uint32_t>(
      fill + "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r1, %out}, [%r21];");
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    const std::uint32_t row = lane / 4;
    const std::uint32_t column = lane % 4 * 2;
    const auto element = [](std::uint32_t m, std::uint32_t r, std::uint32_t c) {
      return 64 * m + 8 * r + c;
    };
    EXPECT_EQ(plain[lane], element(2, row, column + 1) << 16 | element(2, row, column));
    EXPECT_EQ(trans[lane], element(1, column + 1, row) << 16 | element(1, column, row));
    EXPECT_EQ(one[lane], element(0, row, column + 1) << 16 | element(0, row, column));
    EXPECT_EQ(two[lane], element(1, column + 1, row) << 16 | element(1, column, row));
  }
}

/// d = a * b + c by the fragment layout of the manual, as an f32 fma chain over ascending k.
template <class Widen>
std::vector<U32s> plain_mma(const std::vector<U32s>& a, const std::vector<U32s>& b,
                            const std::vector<U32s>& c, std::uint32_t k_count, Widen widen) {
  const auto half = [&](const std::vector<U32s>& registers, std::uint32_t i, std::uint32_t lane,
                        std::uint32_t which) {
    return widen(static_cast<std::uint16_t>(registers[i][lane] >> (16 * which)));
  };
  std::vector<U32s> d(4, U32s(32));
  for (std::uint32_t row = 0; row < 16; ++row) {
    for (std::uint32_t column = 0; column < 8; ++column) {
      const std::uint32_t lane = row % 8 * 4 + column / 2;
      const std::uint32_t slot = row / 8 * 2 + column % 2;
      float sum = std::bit_cast<float>(c[slot][lane]);
      for (std::uint32_t k = 0; k < k_count; ++k) {
        const float x = half(a, row / 8 + k / 8 * 2, row % 8 * 4 + k % 8 / 2, k % 2);
        const float y = half(b, k / 8, column * 4 + k % 8 / 2, k % 2);
        sum = std::fma(x, y, sum);
      }
      d[slot][lane] = std::bit_cast<std::uint32_t>(sum);
    }
  }
  return d;
}

/// Runs an mma whose operands are random and compares all four results bit for bit.
template <class Widen, class Narrow>
void expect_mma(const std::string& type, std::uint32_t k_count, Widen widen, Narrow narrow) {
  Rng rng{k_count};
  const auto random_halves = [&] {
    U32s values(32);
    for (std::uint32_t& value : values) {
      const auto part = [&] {
        return std::uint32_t{narrow(static_cast<float>(rng.below(2000)) / 777.0F - 1.3F)};
      };
      value = part() | part() << 16;
    }
    return values;
  };
  const std::uint32_t blocks = k_count / 8;
  std::vector<U32s> a;
  std::vector<U32s> b;
  std::vector<U32s> c;
  for (std::uint32_t i = 0; i < 2 * blocks; ++i) a.push_back(random_halves());
  for (std::uint32_t i = 0; i < blocks; ++i) b.push_back(random_halves());
  for (std::uint32_t i = 0; i < 4; ++i) {
    U32s values(32);
    for (std::uint32_t& value : values) {
      value = std::bit_cast<std::uint32_t>(static_cast<float>(rng.below(1000)) / 99.0F);
    }
    c.push_back(values);
  }
  const std::vector<U32s> want = plain_mma(a, b, c, k_count, widen);
  SimulatedDevice device;
  U32s all;
  for (const auto* group : {&a, &b, &c}) {
    for (const U32s& values : *group) all.insert(all.end(), values.begin(), values.end());
  }
  const std::uint64_t in = device.upload(all);
  const std::uint64_t out = device.allocate(4 * 128);
  std::string body =
      "ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; mov.u32 %r31, %laneid; "
      "mad.wide.u32 %d1, %r31, 4, %d1; mad.wide.u32 %d2, %r31, 4, %d2;\n";
  const std::uint32_t count = 3 * blocks + 4;
  for (std::uint32_t i = 0; i < count; ++i) {
    body += fmt::format("ld.global.b32 %r{}, [%d1+{}];\n", i, 128 * i);
  }
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < count; ++i) names.push_back(fmt::format("%r{}", i));
  const auto list = [&](std::uint32_t begin, std::uint32_t size) {
    return fmt::format("{{{}}}",
                       fmt::join(names.begin() + begin, names.begin() + begin + size, ","));
  };
  body += fmt::format(
      "mma.sync.aligned.m16n8k{0}.row.col.f32.{1}.{1}.f32 {{%f0,%f1,%f2,%f3}}, {2}, "
      "{3}, {4};\n",
      k_count, type, list(0, 2 * blocks), list(2 * blocks, blocks), list(3 * blocks, 4));
  for (int i = 0; i < 4; ++i) body += fmt::format("st.global.f32 [%d2+{}], %f{};\n", 128 * i, i);
  device.load(kernel_text(2, body));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), Parameters{in, out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  const auto got = device.download<std::uint32_t>(out, 128);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(got[i], want[i / 32][i % 32]) << i;
}

TEST(Mma, IsAnFmaChainOverAscendingK) {
  for (const std::uint32_t k : {8U, 16U}) {
    expect_mma("bf16", k, numerics::bf16_to_f32, numerics::f32_to_bf16);
    expect_mma("f16", k, numerics::f16_to_f32, numerics::f32_to_f16);
  }
}

TEST(Mma, ByPartOfAWarpIsReported) {
  SimulatedDevice device;
  device.load(kernel_text(0,
                          "mov.b32 %r0, 0; mov.f32 %f0, 0f00000000;"
                          "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f0,%f1,%f2,%f3}, "
                          "{%r0,%r0,%r0,%r0}, {%r0,%r0}, {%f0,%f0,%f0,%f0};"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {31, 1, 1}), Parameters{});
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].kind, FaultKind::warp_divergence);
}

/// One lane copies 16 bytes from p0 to shared memory; `after` follows, then the word at `tile` is
/// stored to p1.
LaunchResult run_async(const std::string& copy, const std::string& after, std::uint32_t* word,
                       std::size_t written_bytes = 64) {
  SimulatedDevice device;
  const std::uint64_t in = device.allocate(64);
  const std::vector<std::byte> bytes(written_bytes, std::byte{0x11});
  EXPECT_FALSE(device.memory().write(in, bytes).has_value());
  const std::uint64_t out = device.allocate(4);
  device.load(kernel_text(2,
                          ".shared .align 16 .b8 tile[64]; ld.param.u64 %d1, [p0]; "
                          "ld.param.u64 %d2, [p1]; mov.u32 %r1, tile;\n" +
                              copy + after +
                              "ld.shared.u32 %r2, [tile+12]; st.global.u32 [%d2], %r2;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{in, out});
  if (word != nullptr) *word = device.download<std::uint32_t>(out, 1)[0];
  return result;
}

TEST(AsyncCopy, IsVisibleAfterItsWaitOnly) {
  std::uint32_t word = 0;
  const std::string copy = "cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.commit_group; ";
  EXPECT_TRUE(run_async(copy, "cp.async.wait_group 0;", &word).faults.empty());
  EXPECT_EQ(word, 0x11111111U);
  EXPECT_TRUE(run_async(copy, "cp.async.wait_all;", &word).faults.empty());
  for (const std::string missing : {"", "cp.async.wait_group 1;"}) {
    const LaunchResult result = run_async(copy, missing, &word);
    ASSERT_EQ(result.faults.size(), 1U);
    EXPECT_EQ(result.faults[0].kind, FaultKind::uninitialised_read);
    EXPECT_EQ(word, 0xffffffffU);
  }
}

TEST(AsyncCopy, UncommittedCopiesAreNotWaitedForByGroup) {
  const LaunchResult result = run_async("cp.async.ca.shared.global [%r1+12], [%d1], 4; ",
                                        "cp.async.wait_group 0;", nullptr);
  EXPECT_EQ(result.faults.size(), 1U);
  EXPECT_TRUE(
      run_async("cp.async.ca.shared.global [%r1+12], [%d1], 4; ", "cp.async.wait_all;", nullptr)
          .faults.empty());
}

TEST(AsyncCopy, OlderGroupsCompleteWhileNewerOnesMayBePending) {
  std::uint32_t word = 0;
  const LaunchResult result = run_async(
      "cp.async.cg.shared.global [%r1], [%d1], 16; cp.async.commit_group; "
      "cp.async.cg.shared.global [%r1+16], [%d1], 16; cp.async.commit_group; ",
      "cp.async.wait_group 1;", &word);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(word, 0x11111111U);
}

TEST(AsyncCopy, FillsWithZerosBeyondTheSourceSize) {
  std::uint32_t word = 1;
  const std::string wait = "cp.async.wait_all; ";
  EXPECT_TRUE(
      run_async("cp.async.cg.shared.global [%r1], [%d1], 16, 12; ", wait, &word).faults.empty());
  EXPECT_EQ(word, 0U);
  // Size 0 reads nothing: any address will do.
  EXPECT_TRUE(
      run_async("mov.u64 %d3, 0; cp.async.cg.shared.global [%r1], [%d3], 16, 0; ", wait, &word)
          .faults.empty());
  EXPECT_EQ(word, 0U);
}

TEST(AsyncCopy, CarriesUnwrittenBytesAlongInsteadOfReportingThem) {
  // 12 bytes of the source are written: the copy is silent, the read of the last word is not.
  const LaunchResult result =
      run_async("cp.async.cg.shared.global [%r1], [%d1], 16; ",
                "cp.async.wait_all; ld.shared.u32 %r3, [tile]; ", nullptr, 12);
  ASSERT_EQ(result.faults.size(), 1U);
  EXPECT_EQ(result.faults[0].address, 12U);
}

TEST(AsyncCopy, BadAddressesAndSizesAreReported) {
  const auto kind = [](const std::string& copy) {
    const LaunchResult result = run_async(copy, "", nullptr);
    return result.faults.empty() ? FaultKind::deadlock : result.faults[0].kind;
  };
  EXPECT_EQ(kind("cp.async.cg.shared.global [%r1], [%d1+64], 16; "), FaultKind::out_of_bounds_read);
  EXPECT_EQ(kind("cp.async.cg.shared.global [%r1+64], [%d1], 16; "),
            FaultKind::out_of_bounds_write);
  EXPECT_EQ(kind("cp.async.cg.shared.global [%r1], [%d1+8], 16; "), FaultKind::misaligned);
  EXPECT_EQ(kind("cp.async.cg.shared.global [%r1], [%d1], 8; "), FaultKind::illegal_instruction);
  EXPECT_EQ(kind("cp.async.ca.shared.global [%r1], [%d1], 4, 8; "), FaultKind::illegal_instruction);
}

}  // namespace
}  // namespace cpverify::sim
