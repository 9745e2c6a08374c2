#include <array>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/machine_code.hpp"
#include "sim/machine/program.hpp"
#include "support/hash.hpp"
#include "support/rng.hpp"

/// Golden hashes: every form of every instruction runs on edge values and random ones, with all
/// lanes and with some, and must leave the same bits with every compiler, build type, host and
/// width of the host's vectors. When a change of bits is meant, copy the file that the failure
/// names over ours.
namespace cpverify::sim {
namespace {

constexpr std::size_t kLaneCount = 32;
constexpr std::size_t kBatches = 6;
constexpr std::size_t kRegisters = 8;  ///< Of each width are filled, hashed.
constexpr std::size_t kMemoryBytes = 1024;

struct Golden {
  std::string hash;
  std::string text;
};

constexpr std::array<std::string_view, 4> kFiles{"arithmetic.txt", "conversion.txt", "floats.txt",
                                                 "memory.txt"};
constexpr std::string_view kHeading =
    "# hash of the registers and memory that the text leaves; see forms_test.cpp\n";

std::vector<Golden> read_golden(std::string_view name) {
  std::ifstream file{fmt::format("{}/tests/golden/ptx/{}", CPVERIFY_SOURCE_DIR, name)};
  std::vector<Golden> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    lines.push_back({line.substr(0, 16), line.substr(17)});
  }
  return lines;
}

/// Zeros, ones, limits, shift amounts, infinities, NaN, subnormals, and their 16-bit cousins.
constexpr std::array<std::uint64_t, 26> kEdges{
    0,          1,          2,          31,         32,         33,         255,
    256,        0x7fffffff, 0x80000000, 0xffffffff, 0x3f800000, 0xbf800000, 0x7f800000,
    0xff800000, 0x7fffffff, 0xffc12345, 0x80000001, 0x007fffff, 0x00800000, 0x4b000001,
    0x40200000, 0xc0600000, 0x7f7fffff, 0x80000000, 0x477ff000};

/// Values of one register: rotated edges for most lanes, random bits for the rest.
std::vector<std::uint64_t> register_values(std::size_t batch, std::size_t index) {
  Rng rng{1000 * batch + index};
  std::vector<std::uint64_t> values(kLaneCount);
  for (std::size_t lane = 0; lane < kLaneCount; ++lane) {
    const std::uint64_t edge = kEdges[(lane + (7 * batch + 5) * index) % kEdges.size()];
    const std::uint64_t high = (lane + batch) % 3 == 0 ? ~0ULL << 32 : rng.next() << 32;
    values[lane] = (lane + batch) % 4 == 0 ? rng.next() : edge | high;
  }
  return values;
}

/// Loads registers %h1-7, %r1-7, %f1-7, %d1-5 of each lane from memory, sets %d7 to the lane's 16
/// bytes of memory, %d6 to the begin of it, %r8 to its 16 bytes of shared memory, %r9 to the lane.
std::string kernel(const std::string& text) {
  std::string body =
      ".version 7.5\n.target sm_80\n.address_size 64\n"
      ".entry k(.param .u64 in, .param .u64 out, .param .u64 memory, .param .u32 lanes) {\n"
      ".reg .b16 %h<9>; .reg .b32 %r<20>; .reg .f32 %f<9>; .reg .b64 %d<20>; .reg .pred %p<9>;\n"
      ".shared .align 16 .b8 tile[512];\n"
      "mov.u32 %r9, %laneid; ld.param.u64 %d10, [in]; mad.wide.u32 %d10, %r9, 8, %d10;\n"
      "ld.param.u64 %d6, [memory]; mad.wide.u32 %d7, %r9, 16, %d6; mov.u32 %r8, tile;\n"
      "mad.lo.u32 %r8, %r9, 16, %r8; st.shared.v2.u32 [%r8], {%r9, %r8};\n"
      "st.shared.v2.u32 [%r8+8], {%r8, %r9}; ld.param.u32 %r10, [lanes];\n";
  for (std::size_t i = 0; i < kRegisters; ++i) {
    body += fmt::format(
        "ld.global.u64 %d11, [%d10+{}]; cvt.u32.u64 %r{}, %d11; cvt.u16.u64 %h{}, "
        "%d11; mov.b32 %f{}, %r{};\n",
        8 * kLaneCount * i, i, i, i, i);
    if (i < 6) body += fmt::format("mov.u64 %d{}, %d11;\n", i);
  }
  body +=
      "setp.lt.s32 %p0, %r1, 5; setp.gt.u32 %p1, %r2, %r1; setp.eq.u32 %p2, %r3, %r4; "
      "setp.lt.u32 %p3, %r2, 99;\nsetp.ge.u32 %p8, %r9, %r10; @%p8 bra SKIP;\n{\n" +
      text + "\n}\nSKIP: ld.param.u64 %d12, [out]; mad.wide.u32 %d12, %r9, 8, %d12;\n";
  std::size_t slot = 0;
  const auto store = [&](const std::string& make) {
    body += fmt::format("{} st.global.u64 [%d12+{}], %d13;\n", make, 8 * kLaneCount * slot++);
  };
  for (const int i : {0, 5, 6, 7}) {
    store(fmt::format("cvt.u64.u32 %d13, %r{};", i));
    store(fmt::format("cvt.u64.u16 %d13, %h{};", i));
    store(fmt::format("mov.b32 %r11, %f{0}; cvt.u64.u32 %d13, %r11;", i));
  }
  store("mov.u64 %d13, %d0;");
  store("mov.u64 %d13, %d5;");
  store(
      "selp.u32 %r11, 1, 0, %p0; selp.u32 %r12, 2, 0, %p1; or.b32 %r11, %r11, %r12; "
      "cvt.u64.u32 %d13, %r11;");
  return body + "ret;\n}\n";
}

constexpr std::size_t kOutWords = 15 * kLaneCount;

struct Run {
  std::size_t batch = 0;  ///< Of register values.
  std::uint32_t lanes = 0;
  std::size_t warps = 1;
};

void add_run(const Program& program, GlobalMemory& memory, const Run& run, Fnv1a& hash) {
  std::vector<std::uint64_t> in;
  for (std::size_t i = 0; i < kRegisters; ++i) {
    const auto values = register_values(run.batch, i);
    in.insert(in.end(), values.begin(), values.end());
  }
  std::vector<std::byte> bytes(kMemoryBytes);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(37 * i + run.batch);
  struct {
    std::uint64_t in, out, memory, lanes;
  } parameters{memory.allocate(0, in.size() * 8), memory.allocate(0, kOutWords * 8),
               memory.allocate(0, kMemoryBytes), run.lanes};
  ASSERT_FALSE(memory.write(parameters.in, std::as_bytes(std::span{in})).has_value());
  ASSERT_FALSE(memory.write(parameters.memory, bytes).has_value());
  LaunchRequest request;
  request.block = {static_cast<std::uint32_t>(run.warps * kLaneCount), 1, 1};
  request.parameters = std::as_bytes(std::span{&parameters, 1}).first(28);
  const LaunchResult result = launch(memory, *program.find("k"), request);
  // A run that faults would hash what it did not do.
  EXPECT_EQ(result.status, LaunchStatus::completed) << result.detail;
  EXPECT_TRUE(result.faults.empty());
  std::vector<std::byte> out(kOutWords * 8);
  EXPECT_FALSE(memory.read(out, parameters.out).has_value());
  EXPECT_FALSE(memory.read(bytes, parameters.memory).has_value());
  hash.add_bytes(out.data(), out.size());
  hash.add_bytes(bytes.data(), bytes.size());
}

/// How many warps do the same; one, unless the form is of several. The last one's results stay.
std::size_t warps_of(const std::string& text) {
  if (text.find("wgmma") != std::string::npos || text.find("setmaxnreg") != std::string::npos) {
    return 4;
  }
  // Both arrive, or the barrier would be left waiting.
  return text.find("arrive 1, 64") != std::string::npos ||
                 text.find("arrive.aligned 1, 64") != std::string::npos
             ? 2
             : 1;
}

std::string hash_of(const std::string& text, VectorWidth width) {
  SCOPED_TRACE(text);
  GlobalMemory memory;
  const Program program{kernel(text), text, memory, 0, width};
  Fnv1a hash;
  for (std::size_t batch = 0; batch < kBatches; ++batch) {
    add_run(program, memory, {batch, 32, warps_of(text)}, hash);
  }
  // Instructions that name all lanes must not run with some.
  const bool is_warp_wide = text.find(".sync") != std::string::npos ||
                            text.find(".red.popc") != std::string::npos || text.starts_with("bar");
  if (!is_warp_wide) add_run(program, memory, {0, 11, 1}, hash);
  return fmt::format("{:016x}", hash.value());
}

class FormsTest : public ::testing::TestWithParam<VectorWidth> {};

TEST_P(FormsTest, LeaveTheirGoldenBits) {
  if (GetParam() > widest_vectors()) GTEST_SKIP() << "this host has no AVX-512";
  for (const std::string_view name : kFiles) {
    const std::vector<Golden> lines = read_golden(name);
    ASSERT_GT(lines.size(), 100U) << name;
    std::string actual{kHeading};
    std::size_t wrong = 0;
    for (const Golden& line : lines) {
      const std::string hash = hash_of(line.text, GetParam());
      actual += fmt::format("{} {}\n", hash, line.text);
      if (hash == line.hash) continue;
      if (++wrong <= 10) ADD_FAILURE() << line.text << ": " << hash << ", golden is " << line.hash;
    }
    if (wrong == 0) continue;
    const std::string path = fmt::format("{}/{}", CPVERIFY_BINARY_DIR, name);
    std::ofstream{path} << actual;
    ADD_FAILURE() << wrong << " of " << lines.size() << " hashes differ; all are in " << path;
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, FormsTest,
                         ::testing::Values(VectorWidth::bits_256, VectorWidth::bits_512),
                         [](const auto& test) {
                           return test.param == VectorWidth::bits_256 ? "Avx2" : "Avx512";
                         });

/// A new row of the table needs a line here.
TEST(Forms, CoverEveryRowOfTheTable) {
  std::set<std::string_view> covered;
  std::vector<Golden> lines;
  for (const std::string_view name : kFiles) {
    const std::vector<Golden> more = read_golden(name);
    lines.insert(lines.end(), more.begin(), more.end());
  }
  for (const Golden& line : lines) {
    std::stringstream text{line.text};
    for (std::string word; text >> word;) {
      while (word.ends_with(';')) word.pop_back();
      if (word.find('.') == std::string::npos) continue;
      try {
        covered.insert(info(match_syntax(word, {"golden", 1, 1}).op).name);
      } catch (const InputError&) {
        continue;  // An operand.
      }
    }
  }
  for (const OpInfo& row : kOps) {
    const bool is_written = row.syntax.find('/') == std::string_view::npos;
    if (!is_written || row.effect == Effect::exit || row.effect == Effect::branch) continue;
    EXPECT_TRUE(covered.contains(row.name)) << row.name << " (" << row.syntax << ")";
  }
}

}  // namespace
}  // namespace cpverify::sim
