// The promises of kernels/contracts/merge.md, for every type and every compiler that built the
// kernels, on the simulated machine. Expected values are worked out by hand or in fp64.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/kernels/kernel_bench.hpp"
#include "contract/kernels/merge_case.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/launch.hpp"
#include "plan/merge_launches.hpp"

namespace cpverify::tests {
namespace {

using testing::Each;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
/// ln 2, ln 8 and ln 10, rounded to f32.
constexpr float kLn2 = 0.6931472F;
constexpr float kLn8 = 2.0794415F;
constexpr float kLn10 = 2.3025851F;

struct Subject {
  std::string module;
  DType dtype = DType::f32;
};

std::ostream& operator<<(std::ostream& out, const Subject& subject) {
  return out << subject.module << ' ' << name(subject.dtype);
}

std::vector<Subject> subjects() {
  std::vector<Subject> all;
  for (const std::string& folder : kernel_folders()) {
    for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
      all.push_back({folder + "merge", dtype});
    }
  }
  return all;
}

std::string test_name(const testing::TestParamInfo<Subject>& info) {
  const bool is_nvcc = info.param.module.find("nvcc") != std::string::npos;
  return fmt::format("{}_{}", is_nvcc ? "nvcc" : "clang", name(info.param.dtype));
}

void expect_no_faults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    ADD_FAILURE() << fault.source_file << ':' << fault.source_line << ": " << fault.detail;
  }
}

class MergeContract : public testing::TestWithParam<Subject> {
 protected:
  [[nodiscard]] static const std::string& module() { return GetParam().module; }
  [[nodiscard]] static DType dtype() { return GetParam().dtype; }

  [[nodiscard]] static MergeResult merge(const Partials& partials,
                                         plan::LseBase base = plan::LseBase::natural) {
    MergeResult result = run_merge(module(), partials, base);
    expect_no_faults(result.faults);
    return result;
  }
  [[nodiscard]] static MergeResult merge_row(const std::vector<float>& lses,
                                             const std::vector<float>& values) {
    return merge(one_row(dtype(), lses, values));
  }
};

// Weights 2 : 8 of the values 0 and 10: (0 * 2 + 10 * 8) / 10 = 8, and the sum of exponentials
// is 10.
TEST_P(MergeContract, WeighsByTheExponentialsOfTheLses) {
  const MergeResult natural = merge_row({kLn2, kLn8}, {0.0F, 10.0F});
  EXPECT_THAT(natural.out, Each(testing::FloatNear(8.0F, 1e-5F)));
  EXPECT_NEAR(natural.lse.at(0), kLn10, 1e-6F);
  // The same weights to base 2: log2 of 2, 8 and 10 are 1, 3 and 3.3219281.
  const MergeResult base2 =
      merge(one_row(dtype(), {1.0F, 3.0F}, {0.0F, 10.0F}), plan::LseBase::two);
  EXPECT_THAT(base2.out, Each(testing::FloatNear(8.0F, 1e-5F)));
  EXPECT_NEAR(base2.lse.at(0), 3.3219281F, 1e-6F);
}

// Weights of exactly 1: (1 + 2 + 6) / 3 = 3; 3 * (1 / 3 rounded) is within an ulp of 1.
TEST_P(MergeContract, TakesTheMeanOfPartialsWithEqualLses) {
  const MergeResult two = merge_row({-3.5F, -3.5F}, {1.0F, 4.0F});
  EXPECT_THAT(two.out, Each(2.5F));
  EXPECT_NEAR(two.lse.at(0), -3.5F + kLn2, 1e-6F);
  const MergeResult three = merge_row({20.0F, 20.0F, 20.0F}, {1.0F, 2.0F, 6.0F});
  EXPECT_THAT(three.out, Each(testing::FloatNear(3.0F, 1e-6F)));
  EXPECT_NEAR(three.lse.at(0), 21.098612F, 2e-6F);  // 20 + ln 3.
}

TEST_P(MergeContract, LeavesASinglePartialAsItIs) {
  const MergeResult result = merge_row({-0.40625F}, {1.5F});
  EXPECT_THAT(result.out, Each(1.5F));
  EXPECT_EQ(result.lse.at(0), -0.40625F);
  EXPECT_EQ(bits_of(merge_row({2.0F}, {-0.0F}).out), bits_of(std::vector<float>(8, 0.0F)));
}

// e^-11 = 1.6701701e-5; times 32768 that is 0.54728; (1 + 0.54728) / (1 + 1.67e-5) = 1.547254.
TEST_P(MergeContract, KeepsSmallWeights) {
  const MergeResult result = merge_row({0.0F, -11.0F}, {1.0F, 32768.0F});
  const float tolerance =
      dtype() == DType::bf16 ? 0x1p-8F : (dtype() == DType::f16 ? 5e-4F : 3e-6F);
  EXPECT_THAT(result.out, Each(testing::FloatNear(1.547254F, tolerance)));
  EXPECT_NEAR(result.lse.at(0), 1.670156e-5F, 1e-7F);  // ln(1 + 1.6701701e-5)
}

// e^-90 is below 2^-126 (about e^-87.3).
TEST_P(MergeContract, DoesNotReadAPartialWhoseWeightUnderflows) {
  const MergeResult result = merge_row({-90.0F, 0.0F, -3000.0F}, {kNan, 7.0F, kInfinity});
  EXPECT_THAT(result.out, Each(7.0F));
  EXPECT_EQ(result.lse.at(0), 0.0F);
}

TEST_P(MergeContract, TakesNanAndInfiniteLsesForEmpty) {
  for (const float empty : {-kInfinity, kInfinity, kNan, -kNan}) {
    const MergeResult last = merge_row({1.0F, empty}, {10.0F, kNan});
    EXPECT_THAT(last.out, Each(10.0F)) << empty;
    EXPECT_EQ(last.lse.at(0), 1.0F) << empty;
    const MergeResult first = merge_row({empty, 1.0F, empty}, {kInfinity, 10.0F, 0.0F});
    EXPECT_THAT(first.out, Each(10.0F)) << empty;
    EXPECT_EQ(first.lse.at(0), 1.0F) << empty;
  }
}

TEST_P(MergeContract, GivesZeroAndMinusInfinityWhereAllAreEmpty) {
  for (const std::vector<float>& lses :
       {std::vector<float>{-kInfinity}, {-kInfinity, -kInfinity}, {kInfinity, kNan, -kInfinity}}) {
    const MergeResult result = merge_row(lses, std::vector<float>(lses.size(), kNan));
    EXPECT_EQ(bits_of(result.out), bits_of(std::vector<float>(8, 0.0F)));
    EXPECT_EQ(result.lse.at(0), -kInfinity);
  }
}

TEST_P(MergeContract, ReadsNothingOfAnEmptyPartial) {
  // Partial 1 has LSEs only.
  const plan::MergeShape shape{dtype(), 2, 1, 32};
  MergeBench bench{module()};
  plan::PartialMerge merge = plan::dense_merge(shape, 2);
  merge.partials = bench.upload(dtype(), std::vector<float>(64, 3.0F));
  merge.lses = bench.upload(DType::f32, {1.0F, 2.0F, -kInfinity, kNan});
  merge.out = bench.allocate(dtype(), 64);
  merge.lse = bench.allocate(DType::f32, 2);
  bench.run(plan::merge_partials_launch(shape, merge));
  EXPECT_THAT(bench.read(merge.out, dtype(), 64), Each(3.0F));
  expect_no_faults(bench.take_faults());
}

// 5 rows are more than one CTA's 4 and leave three of the second's warps idle; 136 dimensions are
// more than the 128 that a warp moves at once.
TEST_P(MergeContract, IsWithinTheBoundForAnyNumberOfPartials) {
  for (const std::int64_t num_partials : {1, 2, 3, 6, 16}) {
    SCOPED_TRACE(num_partials);
    const Partials partials = draw_partials({dtype(), 5, 3, 64}, num_partials);
    expect_merged(partials, merge(partials));
  }
}

TEST_P(MergeContract, IsWithinTheBoundForAnyHeadDim) {
  for (const std::int64_t head_dim : {8, 32, 40, 96, 128, 136, 264}) {
    SCOPED_TRACE(head_dim);
    const Partials partials = draw_partials({dtype(), 3, 2, head_dim}, 4);
    expect_merged(partials, merge(partials));
  }
}

TEST_P(MergeContract, ReadsLsesOfBaseTwoLikeNaturalOnes) {
  const Partials natural = draw_partials({dtype(), 5, 2, 32}, 3);
  Partials base2 = natural;
  for (float& lse : base2.lse) lse *= 1.442695F;
  MergeResult result = merge(base2, plan::LseBase::two);
  for (float& lse : result.lse) lse *= kLn2;
  // A factor of 1.442695 instead of log2(e) moves an LSE of 8 by less than 4e-8 * 8.
  for (std::size_t element = 0; element < result.out.size(); ++element) {
    const ExpectedMerge expected = expected_merge(natural, element);
    ASSERT_LE(std::abs(result.out[element] - expected.out), expected.out_bound + 1e-5);
    if (std::isinf(expected.lse)) continue;
    ASSERT_NEAR(result.lse[element / 32], expected.lse, 1e-5);
  }
}

TEST_P(MergeContract, GivesZeroAndMinusInfinityOfNoPartials) {
  const plan::MergeShape shape{dtype(), 2, 2, 32};
  MergeBench bench{module()};
  plan::PartialMerge merge = plan::dense_merge(shape, 0);
  merge.partials = bench.allocate(dtype(), 8);  // Unwritten, as are the LSEs.
  merge.lses = bench.allocate(DType::f32, 8);
  merge.out = bench.allocate(dtype(), 128);
  merge.lse = bench.allocate(DType::f32, 4);
  bench.run(plan::merge_partials_launch(shape, merge));
  EXPECT_EQ(bits_of(bench.read(merge.out, dtype(), 128)), bits_of(std::vector<float>(128, 0.0F)));
  EXPECT_THAT(bench.read(merge.lse, DType::f32, 4), Each(-kInfinity));
  expect_no_faults(bench.take_faults());
}

// Two partials 2^32 elements apart. The first is empty: only its LSE
// exists.
TEST_P(MergeContract, AddressesPartialsBeyond32Bits) {
  constexpr std::int64_t kFar = std::int64_t{1} << 32;
  const plan::MergeShape shape{dtype(), 1, 1, 32};
  MergeBench bench{module()};
  plan::PartialMerge merge = plan::dense_merge(shape, 2);
  const BufferRef second = bench.upload(dtype(), std::vector<float>(32, 5.0F));
  merge.partials = bench.moved_down(second, kFar * size_bytes(dtype()));
  merge.partial_stride = kFar;
  merge.lses = bench.upload(DType::f32, {-kInfinity, 2.0F});
  merge.out = bench.allocate(dtype(), 32);
  merge.lse = bench.allocate(DType::f32, 1);
  bench.run(plan::merge_partials_launch(shape, merge));
  EXPECT_THAT(bench.read(merge.out, dtype(), 32), Each(5.0F));
  EXPECT_THAT(bench.read(merge.lse, DType::f32, 1), Each(2.0F));
  expect_no_faults(bench.take_faults());
}

INSTANTIATE_TEST_SUITE_P(All, MergeContract, testing::ValuesIn(subjects()), test_name);

}  // namespace
}  // namespace cpverify::tests
