#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/machine/machine_code.hpp"
#include "support/hash.hpp"
#include "unit/sim/attention_problem.hpp"
#include "unit/sim/simulated_device.hpp"

/// AVX2 and AVX-512 give the same bytes, faults and counts; golden hashes, so that compilers agree
/// too. A hash changes only when the numerics are meant to change.
namespace cpverify::sim {
namespace {

struct Subject {
  const char* ptx;  ///< In tests/data/ptx.
  bool is_mma;
  const char* hash;
};

void PrintTo(const Subject& subject, std::ostream* out) {
  *out << subject.ptx;
}

class VectorWidths : public ::testing::TestWithParam<Subject> {};

std::string hash_of(AttentionRun& run) {
  Fnv1a hash;
  const std::vector<std::uint8_t> bytes = run.output_bytes();
  hash.add_bytes(bytes.data(), bytes.size());
  for (const std::uint64_t count : {run.result.warp_instructions, run.result.thread_instructions,
                                    static_cast<std::uint64_t>(run.result.status)}) {
    hash.add_bytes(&count, sizeof count);
  }
  for (const Fault& fault : run.result.faults) {
    const std::string text = fmt::format("{} {} {} {} {}", static_cast<int>(fault.kind),
                                         fault.ptx_line, fault.address, fault.count, fault.detail);
    hash.add_bytes(text.data(), text.size());
  }
  return fmt::format("{:016x}", hash.value());
}

TEST_P(VectorWidths, GiveTheSameBytesFaultsAndCounts) {
  const AttentionProblem problem = GetParam().is_mma ? AttentionProblem{64, {70, 5}, {75, 40}}
                                                     : AttentionProblem{128, {3, 5}, {20, 37}};
  for (const VectorWidth width : {VectorWidth::bits_256, VectorWidth::bits_512}) {
    if (width > widest_vectors()) continue;
    for (const bool is_race_checked : {false, true}) {
      AttentionRun run{
          problem, read_ptx(GetParam().ptx), GetParam().is_mma, is_race_checked, {{}, width}};
      // Racecheck adds faults of its own to kernels that lack a barrier.
      if (is_race_checked && !run.result.faults.empty()) continue;
      EXPECT_EQ(hash_of(run), GetParam().hash) << "width " << static_cast<int>(width);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernels, VectorWidths,
    ::testing::Values(Subject{"paged_attn.nvcc.ptx", false, "873e670e5c3596e3"},
                      Subject{"paged_attn.clang14.ptx", false, "aec33c5697bfbacc"},
                      Subject{"paged_attn.nvcc_O0.ptx", false, "2e61283abc90765f"},
                      Subject{"paged_attn.nobar.ptx", false, "2d22005dd1eb5ffb"},
                      Subject{"paged_attn.oob.ptx", false, "d7f8deaf4585f0b2"},
                      Subject{"mma_attn.nvcc.ptx", true, "cd561e358a186e8e"},
                      Subject{"mma_attn.clang14.ptx", true, "93dd150ee7ffa6e1"},
                      Subject{"mma_attn.clang14_O0.ptx", true, "6b05fc5ed45d09c7"}),
    [](const auto& test) {
      std::string name = test.param.ptx;
      for (char& c : name) c = c == '.' ? '_' : c;
      return name;
    });

}  // namespace
}  // namespace cpverify::sim
