// Every wrong merge kernel of kernels/mutants gives the value that its defect explains, and the
// correct kernel on the same partials the right one.

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/kernels/merge_case.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/fault.hpp"
#include "plan/merge_launches.hpp"

namespace cpverify::tests {
namespace {

using testing::Contains;
using testing::Each;
using testing::Field;
using testing::FloatNear;
using testing::IsEmpty;
using testing::IsNan;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLn2 = 0.6931472F;
constexpr float kLn8 = 2.0794415F;
constexpr float kLn10 = 2.3025851F;

MergeResult correct(const Partials& partials, plan::LseBase base = plan::LseBase::natural) {
  return run_merge("kernels/merge", partials, base);
}

MergeResult mutant(const std::string& name, const Partials& partials,
                   plan::LseBase base = plan::LseBase::natural) {
  return run_merge("kernels/mutants/merge_" + name, partials, base);
}

/// 0 with weight 2 and 10 with weight 8: 8, and an LSE of ln 10.
Partials two_and_eight() {
  return one_row(DType::f32, {kLn2, kLn8}, {0.0F, 10.0F});
}

void expect_eight(const MergeResult& result) {
  EXPECT_THAT(result.out, Each(FloatNear(8.0F, 1e-5F)));
  EXPECT_THAT(result.lse, Each(FloatNear(kLn10, 1e-6F)));
}

// Taken for base 2 the weights are 2^ln 2 = 1.61681 and 2^ln 8 = 4.22644: 10 * 4.22644 / 5.84324 =
// 7.23303, LSE log2(5.84324) = 2.54677.
TEST(MergeMutants, LseBaseSwappedWeighsNaturalLsesTooEvenly) {
  expect_eight(correct(two_and_eight()));
  const MergeResult wrong = mutant("lse_base_swapped", two_and_eight());
  EXPECT_THAT(wrong.out, Each(FloatNear(7.23303F, 1e-4F)));
  EXPECT_THAT(wrong.lse, Each(FloatNear(2.546769F, 1e-5F)));
  EXPECT_THAT(wrong.faults, IsEmpty());
}

// Base 2: LSEs 1 and 3. Taken for natural ones the weights are e : e^3, so 10 / (1 + e^-2)
// = 8.80797.
TEST(MergeMutants, LseBaseSwappedWeighsBaseTwoLsesTooUnevenly) {
  const Partials partials = one_row(DType::f32, {1.0F, 3.0F}, {0.0F, 10.0F});
  EXPECT_THAT(correct(partials, plan::LseBase::two).out, Each(FloatNear(8.0F, 1e-5F)));
  const MergeResult wrong = mutant("lse_base_swapped", partials, plan::LseBase::two);
  EXPECT_THAT(wrong.out, Each(FloatNear(8.80797F, 1e-4F)));
}

// (0 + 10) / 2 = 5; LSE = ln 8 + ln 2 = 2.7725887. An empty partial is still left out.
TEST(MergeMutants, PlainMeanForgetsTheLses) {
  const MergeResult wrong = mutant("plain_mean", two_and_eight());
  EXPECT_THAT(wrong.out, Each(5.0F));
  EXPECT_THAT(wrong.lse, Each(FloatNear(2.7725887F, 1e-6F)));
  const Partials one_empty = one_row(DType::f32, {-kInfinity, 1.0F}, {kNan, 4.0F});
  EXPECT_THAT(mutant("plain_mean", one_empty).out, Each(4.0F));
}

// The first partial keeps the weight 1 that it had as the largest so far, and so does the
// second: 5. In descending order the maximum never moves, and all is well.
TEST(MergeMutants, MissingRescaleShowsWhereTheMaximumRises) {
  const MergeResult wrong = mutant("missing_rescale", two_and_eight());
  EXPECT_THAT(wrong.out, Each(FloatNear(5.0F, 1e-5F)));
  expect_eight(mutant("missing_rescale", one_row(DType::f32, {kLn8, kLn2}, {10.0F, 0.0F})));
}

TEST(MergeMutants, UnguardedEmptyRowMakesNans) {
  const Partials empty = one_row(DType::bf16, {-kInfinity, -kInfinity}, {0.0F, 0.0F});
  EXPECT_THAT(correct(empty).faults, IsEmpty());
  const MergeResult wrong = mutant("unguarded_empty_row", empty);
  EXPECT_THAT(wrong.out, Each(IsNan()));
  EXPECT_THAT(wrong.lse, Each(IsNan()));
  EXPECT_THAT(wrong.faults, Contains(Field(&Fault::kind, FaultKind::nan_produced)));
  expect_eight(mutant("unguarded_empty_row", two_and_eight()));
}

TEST(MergeMutants, MultipliedEmptyLetsNansThrough) {
  for (const float payload : {kNan, kInfinity}) {
    const Partials partials = one_row(DType::bf16, {-kInfinity, 1.0F}, {payload, 10.0F});
    EXPECT_THAT(correct(partials).out, Each(10.0F));
    const MergeResult wrong = mutant("multiplied_empty", partials);
    EXPECT_THAT(wrong.out, Each(IsNan()));
    EXPECT_THAT(wrong.lse, Each(1.0F));  // Nothing to see in the LSE.
  }
  const Partials zeros = one_row(DType::bf16, {-kInfinity, 1.0F}, {0.0F, 10.0F});
  EXPECT_EQ(bits_of(mutant("multiplied_empty", zeros).out), bits_of(correct(zeros).out));
}

// 2 rows, 2 heads: row 0 head 1 and row 1 head 0 change places. Weights 2 : 8 become 8 : 2, 8
// becomes 2, and the other way round; the diagonal keeps its weights of 1 : 1.
TEST(MergeMutants, LseTransposedTakesTheLsesOfOtherRows) {
  Partials partials{{DType::f32, 2, 2, 8}, 2, {}, {}};
  partials.out.assign(32, 0.0F);
  partials.out.insert(partials.out.end(), 32, 10.0F);
  partials.lse = {0.0F, kLn2, kLn8, 0.0F, 0.0F, kLn8, kLn2, 0.0F};
  const MergeResult right = correct(partials);
  const MergeResult wrong = mutant("lse_transposed", partials);
  const std::vector<float> expected_right{5.0F, 8.0F, 2.0F, 5.0F};
  const std::vector<float> expected_wrong{5.0F, 2.0F, 8.0F, 5.0F};
  for (std::size_t row_head = 0; row_head < 4; ++row_head) {
    EXPECT_NEAR(right.out.at(row_head * 8), expected_right[row_head], 1e-5F);
    EXPECT_NEAR(wrong.out.at(row_head * 8), expected_wrong[row_head], 1e-5F);
  }
  EXPECT_THAT(wrong.faults, IsEmpty());
}

// Between 8 and 16 bf16 has steps of 2^-4: 10 + 2^-5 - 2^-10 becomes 10 and 10 - 2^-5 + 2^-10
// becomes 10: weights 1 : 1 instead of e^(2^-4 - 2^-9) = 1.06242 : 1. Values 100 and 0: 50 instead
// of 100 * 1.06242 / 2.06242 = 51.5132.
TEST(MergeMutants, Lse16BitLosesSmallDifferences) {
  const Partials partials =
      one_row(DType::f32, {10.0F + 0x1p-5F - 0x1p-10F, 10.0F - 0x1p-5F + 0x1p-10F}, {100.0F, 0.0F});
  EXPECT_THAT(correct(partials).out, Each(FloatNear(51.5132F, 1e-3F)));
  const MergeResult wrong = mutant("lse_16_bit", partials);
  EXPECT_THAT(wrong.out, Each(50.0F));
  EXPECT_THAT(wrong.lse, Each(FloatNear(10.0F + kLn2, 1e-6F)));
  const Partials empty = one_row(DType::f32, {-kInfinity, kNan}, {kNan, kNan});
  EXPECT_THAT(mutant("lse_16_bit", empty).lse, Each(-kInfinity));
}

// Three ranks of one head each: the heads' values 1, 2, 3 with a share of 1 come out as 3, 2, 1.
TEST(MergeMutants, BlocksReversedGivesRanksTheHeadsOfOthers) {
  Partials partials{{DType::bf16, 1, 3, 8}, 3, {}, {}};
  for (const float value : {1.0F, 2.0F, 3.0F}) partials.out.insert(partials.out.end(), 8, value);
  partials.out.insert(partials.out.end(), 48, kNan);
  partials.lse = {0.0F, 1.0F, 2.0F};
  partials.lse.insert(partials.lse.end(), 6, -kInfinity);
  const MergeResult right = run_scale("kernels/merge", partials, 0, DType::bf16);
  const MergeResult wrong =
      run_scale("kernels/mutants/merge_blocks_reversed", partials, 0, DType::bf16);
  EXPECT_THAT(right.lse, testing::ElementsAre(0.0F, 1.0F, 2.0F));
  EXPECT_THAT(wrong.lse, testing::ElementsAre(2.0F, 1.0F, 0.0F));
  for (std::size_t block = 0; block < 3; ++block) {
    EXPECT_EQ(right.out.at(block * 8), static_cast<float>(block + 1));
    EXPECT_EQ(wrong.out.at(block * 8), static_cast<float>(3 - block));
  }
  EXPECT_THAT(wrong.faults, IsEmpty());
}

// Packed partials pass through other entries, with the same decisions.
TEST(MergeMutants, AreFoundInPackedMergesToo) {
  const Partials partials = draw_partials({DType::bf16, 5, 4, 32}, 2);
  const MergeResult right = run_packed("kernels/merge", partials, 0);
  for (const char* name :
       {"lse_base_swapped", "plain_mean", "missing_rescale", "unguarded_empty_row",
        "multiplied_empty", "lse_transposed", "lse_16_bit", "blocks_reversed"}) {
    const MergeResult wrong = run_packed(std::string{"kernels/mutants/merge_"} + name, partials, 0);
    EXPECT_NE(bits_of(wrong.out), bits_of(right.out)) << name;
  }
}

}  // namespace
}  // namespace cpverify::tests
