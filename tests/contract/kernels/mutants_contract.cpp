// Every wrong kernel of kernels/mutants does what it is for: without that, a scenario that expects
// the defect to be found would prove nothing.

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/kernels/attention_case.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/fault.hpp"

namespace cpverify::tests {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Field;
using testing::IsEmpty;

constexpr std::int32_t kHeadDim = 64;

AttentionCase mutant_case() {
  return make_case({DType::bf16, kHeadDim, 1, 1, 16}, {{20, 45}});
}

AttentionResult run_mutant(const std::string& name) {
  return run_attention("kernels/mutants/" + name, mutant_case());
}

AttentionResult run_correct(const std::string& kernel) {
  return run_attention("kernels/" + kernel, mutant_case());
}

class AttentionMutants : public testing::TestWithParam<std::string> {};

TEST_P(AttentionMutants, CausalPlusOneDiffersInAllRowsButTheLast) {
  const AttentionResult wrong = run_mutant(GetParam() + "_causal_plus_one");
  const AttentionResult right = run_correct(GetParam());
  EXPECT_THAT(wrong.faults, IsEmpty());
  for (std::size_t row = 0; row + 1 < right.lse.size(); ++row) {
    EXPECT_GT(wrong.lse[row], right.lse[row]) << row;  // One more positive term in the sum.
  }
  EXPECT_EQ(wrong.lse.back(), right.lse.back());
}

TEST_P(AttentionMutants, LseBase2DiffersInTheLseOnly) {
  const AttentionResult wrong = run_mutant(GetParam() + "_lse_base2");
  const AttentionResult right = run_correct(GetParam());
  EXPECT_EQ(wrong.out, right.out);
  for (std::size_t row = 0; row < right.lse.size(); ++row) {
    // The correct kernel's last operation is one product with ln 2.
    EXPECT_EQ(wrong.lse[row] * std::numbers::ln2_v<float>, right.lse[row]) << row;
  }
}

// Of 20 queries on 45 keys with a window of 6, query i sees keys 20 + i .. 25 + i, and with the
// defect max(i - 5, 0) .. 25 + i.
TEST_P(AttentionMutants, LocalWindowShowsKeysBeforeTheWindow) {
  AttentionCase data = mutant_case();
  data.shape.window = 6;
  const AttentionResult wrong =
      run_attention("kernels/mutants/" + GetParam() + "_local_window", data);
  const AttentionResult right = run_attention("kernels/" + GetParam(), data);
  EXPECT_THAT(wrong.faults, IsEmpty());
  for (std::size_t row = 0; row < right.lse.size(); ++row) {
    EXPECT_GT(wrong.lse[row], right.lse[row]) << row;
  }
  // Where the call has all keys, its numbers are positions.
  data = make_case(data.shape, {{45, 45}});
  EXPECT_EQ(run_attention("kernels/mutants/" + GetParam() + "_local_window", data).lse,
            run_attention("kernels/" + GetParam(), data).lse);
}

INSTANTIATE_TEST_SUITE_P(Both, AttentionMutants, testing::Values("attention_fma", "attention_mma"),
                         [](const auto& test) { return test.param; });

/// A read of unwritten memory, put down to the source line of the kernel that reads, not to the
/// helper that wraps the instruction.
auto unwritten_read(MemorySpace space, const std::string& source_file) {
  return Contains(AllOf(Field(&Fault::kind, FaultKind::uninitialised_read),
                        Field(&Fault::space, space), Field(&Fault::source_file, source_file),
                        Field(&Fault::source_line, testing::Gt(0U))));
}

TEST(AttentionFmaMutants, PageRoundedReadsUnwrittenPageTails) {
  EXPECT_THAT(run_mutant("attention_fma_page_rounded").faults,
              unwritten_read(MemorySpace::global, "kernels/attention_fma.cuh"));
}

TEST(AttentionFmaMutants, CappedMaskBringsBackWhatTheMaskTookOut) {
  AttentionCase data = mutant_case();
  const auto lse = [&data](const std::string& module) { return run_attention(module, data).lse; };
  EXPECT_EQ(lse("kernels/mutants/attention_fma_capped_mask"), lse("kernels/attention_fma"));
  data.shape.soft_cap = 2.0F;
  const std::vector<float> wrong = lse("kernels/mutants/attention_fma_capped_mask");
  const std::vector<float> right = lse("kernels/attention_fma");
  // Query i sees 26 + i keys of one tile of 32, or of two: the sixth sees all of one.
  for (std::size_t row = 0; row < right.size(); ++row) {
    EXPECT_EQ(wrong[row] > right[row], row != 6) << row;
  }
}

TEST(AttentionFmaMutants, UnguardedEmptyRowDividesByZero) {
  // Of three queries on one key the first two see none. The right kernel makes no such value.
  const AttentionCase data = make_case({DType::bf16, kHeadDim, 1, 1, 16}, {{3, 1}});
  EXPECT_THAT(run_attention("kernels/attention_fma", data).faults, IsEmpty());
  EXPECT_THAT(run_attention("kernels/mutants/attention_fma_unguarded_empty_row", data).faults,
              Contains(AllOf(Field(&Fault::kind, FaultKind::infinity_produced),
                             Field(&Fault::source_file, "kernels/mutants/wrong_attention.cuh"),
                             Field(&Fault::source_line, testing::Gt(0U)),
                             Field(&Fault::detail, testing::HasSubstr("(0x00000000) is +inf, "
                                                                      "through PTX line")))));
}

TEST(AttentionMmaMutants, MissingBarrierReadsUnwrittenSharedMemory) {
  EXPECT_THAT(run_mutant("attention_mma_missing_barrier").faults,
              unwritten_read(MemorySpace::shared, "kernels/attention_mma.cuh"));
}

TEST(AttentionMmaMutants, NoWaitReadsSharedMemoryBeforeItsCopy) {
  EXPECT_THAT(run_mutant("attention_mma_no_wait").faults,
              unwritten_read(MemorySpace::shared, "kernels/attention_mma.cuh"));
}

}  // namespace
}  // namespace cpverify::tests
