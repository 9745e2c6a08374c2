// The promises of kernels/contracts/merge.md about the two-way merge, and about the kernels that
// stand before and after a reduce-scatter or all-to-all.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
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
#include "numerics/convert.hpp"
#include "plan/merge_launches.hpp"

namespace cpverify::tests {
namespace {

using testing::Each;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLn2 = 0.6931472F;
constexpr float kLn8 = 2.0794415F;
constexpr float kLn10 = 2.3025851F;

void expect_no_faults(const std::vector<Fault>& faults) {
  for (const Fault& fault : faults) {
    ADD_FAILURE() << fault.source_file << ':' << fault.source_line << ": " << fault.detail;
  }
}

/// Types of prefix, suffix and out.
struct StateTypes {
  DType prefix = DType::f32;
  DType suffix = DType::f32;
  DType out = DType::f32;
};

std::vector<StateTypes> state_types() {
  std::vector<StateTypes> all{{DType::f32, DType::f32, DType::f32}};
  for (const DType narrow : {DType::f16, DType::bf16}) {
    all.push_back({narrow, narrow, narrow});
    all.push_back({narrow, DType::f32, DType::f32});
    all.push_back({narrow, DType::f32, narrow});
    all.push_back({DType::f32, DType::f32, narrow});
  }
  return all;
}

/// A two-way merge of rows of one head, 8 equal elements each.
struct StatesCase {
  StateTypes types;
  std::vector<float> prefix;
  std::vector<float> prefix_lse;
  std::vector<float> suffix;
  std::vector<float> suffix_lse;
  std::vector<std::int32_t> index;
  bool is_in_place = false;
};

constexpr float kUntouched = 77.0F;

std::vector<float> eight_each(const std::vector<float>& values) {
  std::vector<float> rows;
  for (const float value : values) rows.insert(rows.end(), 8, value);
  return rows;
}

/// `out` and `lse` have as many rows as the suffix; if not in place, of kUntouched.
MergeResult run_states(const std::string& module, const StatesCase& states) {
  MergeBench bench{module};
  const auto num_suffix_rows = static_cast<std::int64_t>(states.suffix.size());
  const std::vector<float> untouched(states.suffix.size(), kUntouched);
  plan::StatesMerge merge;
  merge.prefix = bench.upload(states.types.prefix, eight_each(states.prefix));
  merge.prefix_lse = bench.upload(DType::f32, states.prefix_lse);
  merge.suffix = bench.upload(states.types.suffix, eight_each(states.suffix));
  merge.suffix_lse = bench.upload(DType::f32, states.suffix_lse);
  merge.out =
      states.is_in_place ? merge.suffix : bench.upload(states.types.out, eight_each(untouched));
  merge.lse = states.is_in_place ? merge.suffix_lse : bench.upload(DType::f32, untouched);
  merge.index = bench.upload_index(states.index);
  merge.prefix_dtype = states.types.prefix;
  merge.suffix_dtype = states.types.suffix;
  const plan::MergeShape shape{states.types.out, static_cast<std::int64_t>(states.index.size()), 1,
                               8};
  bench.run(plan::merge_states_launch(shape, merge));
  MergeResult result{bench.read(merge.out, states.types.out, num_suffix_rows * 8),
                     bench.read(merge.lse, DType::f32, num_suffix_rows), bench.take_faults()};
  expect_no_faults(result.faults);
  return result;
}

/// One row of one side.
struct StateRow {
  float lse = 0.0F;
  float value = 0.0F;
};

MergeResult run_state(const std::string& module, StateTypes types, StateRow prefix,
                      StateRow suffix) {
  return run_states(
      module, {types, {prefix.value}, {prefix.lse}, {suffix.value}, {suffix.lse}, {0}, false});
}

class MergeStates : public testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string module() { return GetParam() + "merge"; }
};

// As for N partials: 0 with weight 2 and 10 with weight 8 give 8, whichever is the prefix.
TEST_P(MergeStates, WeighsBothSides) {
  for (const StateTypes types : state_types()) {
    const MergeResult up = run_state(module(), types, {kLn2, 0.0F}, {kLn8, 10.0F});
    EXPECT_THAT(up.out, Each(testing::FloatNear(8.0F, 1e-5F)));
    EXPECT_NEAR(up.lse.at(0), kLn10, 1e-6F);
    const MergeResult down = run_state(module(), types, {kLn8, 10.0F}, {kLn2, 0.0F});
    EXPECT_THAT(down.out, Each(testing::FloatNear(8.0F, 1e-5F)));
    EXPECT_NEAR(down.lse.at(0), kLn10, 1e-6F);
  }
}

TEST_P(MergeStates, TakesTheOtherSideOfAnEmptyOne) {
  for (const StateTypes types : state_types()) {
    for (const float empty : {-kInfinity, kInfinity, kNan}) {
      const MergeResult suffix = run_state(module(), types, {empty, kNan}, {1.0F, 10.0F});
      EXPECT_THAT(suffix.out, Each(10.0F));
      EXPECT_EQ(suffix.lse.at(0), 1.0F);
      const MergeResult prefix = run_state(module(), types, {1.0F, 10.0F}, {empty, kInfinity});
      EXPECT_THAT(prefix.out, Each(10.0F));
      EXPECT_EQ(prefix.lse.at(0), 1.0F);
    }
  }
}

TEST_P(MergeStates, GivesZeroAndMinusInfinityWhereBothAreEmpty) {
  for (const StateTypes types : state_types()) {
    for (const float empty : {-kInfinity, kInfinity, kNan}) {
      const MergeResult result = run_state(module(), types, {empty, kNan}, {-kInfinity, kNan});
      EXPECT_EQ(bits_of(result.out), bits_of(std::vector<float>(8, 0.0F)));
      EXPECT_EQ(result.lse.at(0), -kInfinity);
    }
  }
}

// Prefix rows 0, 2 and 4 go to suffix rows 3, 0 and 1: 2 with weight 1/2, 4 with 1/2 gives 3, and
// so on. Rows 1 and 3 have no context, and their LSEs would give NaN.
TEST_P(MergeStates, MergesTheRowsThatTheIndexNames) {
  for (const StateTypes types : state_types()) {
    for (const bool is_in_place : {false, true}) {
      if (is_in_place && types.suffix != types.out) continue;
      const StatesCase states{types,
                              {2.0F, kNan, 6.0F, kNan, 8.0F},
                              {1.0F, kNan, 1.0F, kNan, 1.0F},
                              {10.0F, 12.0F, 14.0F, 4.0F},
                              {1.0F, 1.0F, 1.0F, 1.0F},
                              {3, -1, 0, -7, 1},
                              is_in_place};
      const MergeResult result = run_states(module(), states);
      const float left = is_in_place ? 14.0F : kUntouched;
      EXPECT_EQ(result.out, eight_each({8.0F, 10.0F, left, 3.0F}));
      EXPECT_EQ(result.lse.at(2), is_in_place ? 1.0F : kUntouched);
      for (const std::size_t row : {0U, 1U, 3U}) {
        EXPECT_NEAR(result.lse.at(row), 1.0F + kLn2, 1e-6F);
      }
    }
  }
}

TEST_P(MergeStates, IsWithinTheBoundAndKeepsItsBitsInPlace) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    const Partials partials = draw_partials({dtype, 5, 3, 136}, 2);
    const plan::MergeShape& shape = partials.shape;
    const auto out = partials.out.begin() + shape.out_elems();
    const auto lse = partials.lse.begin() + shape.num_lses();
    MergeBench bench{module()};
    plan::StatesMerge merge;
    merge.prefix = bench.upload(dtype, {partials.out.begin(), out});
    merge.prefix_lse = bench.upload(DType::f32, {partials.lse.begin(), lse});
    merge.suffix = bench.upload(dtype, {out, partials.out.end()});
    merge.suffix_lse = bench.upload(DType::f32, {lse, partials.lse.end()});
    merge.index = bench.upload_index({0, 1, 2, 3, 4});
    merge.prefix_dtype = merge.suffix_dtype = dtype;
    merge.out = bench.allocate(dtype, shape.out_elems());
    merge.lse = bench.allocate(DType::f32, shape.num_lses());
    bench.run(plan::merge_states_launch(shape, merge));
    const MergeResult apart{bench.read(merge.out, dtype, shape.out_elems()),
                            bench.read(merge.lse, DType::f32, shape.num_lses()),
                            {}};
    expect_merged(partials, apart);
    merge.out = merge.suffix;
    merge.lse = merge.suffix_lse;
    bench.run(plan::merge_states_launch(shape, merge));
    EXPECT_EQ(bits_of(bench.read(merge.out, dtype, shape.out_elems())), bits_of(apart.out));
    EXPECT_EQ(bits_of(bench.read(merge.lse, DType::f32, shape.num_lses())), bits_of(apart.lse));
    expect_no_faults(bench.take_faults());
  }
}

// Suffix row 2^28 of 64 elements: element 2^34, and of LSEs byte 2^30.
TEST_P(MergeStates, AddressesSuffixRowsBeyond32Bits) {
  constexpr std::int32_t kRow = 1 << 28;
  const plan::MergeShape shape{DType::bf16, 1, 1, 64};
  MergeBench bench{module()};
  plan::StatesMerge merge;
  merge.prefix = bench.upload(DType::bf16, std::vector<float>(64, 2.0F));
  merge.prefix_lse = bench.upload(DType::f32, {0.0F});
  merge.suffix = bench.moved_down(bench.upload(DType::bf16, std::vector<float>(64, 4.0F)),
                                  std::uint64_t{kRow} * 64 * 2);
  merge.suffix_lse = bench.moved_down(bench.upload(DType::f32, {0.0F}), std::uint64_t{kRow} * 4);
  const BufferRef out = bench.allocate(DType::bf16, 64);
  merge.out = bench.moved_down(out, std::uint64_t{kRow} * 64 * 2);
  merge.lse = bench.moved_down(bench.allocate(DType::f32, 1), std::uint64_t{kRow} * 4);
  merge.index = bench.upload_index({kRow});
  bench.run(plan::merge_states_launch(shape, merge));
  EXPECT_THAT(bench.read(out, DType::bf16, 64), Each(3.0F));
  expect_no_faults(bench.take_faults());
}

/// Index in [rows, heads, head_dim] of element `element` of block `rank` in a tensor
/// [num_ranks][rows, heads / num_ranks, head_dim], or of LSEs with a head_dim of 1.
std::size_t unblocked(const plan::MergeShape& shape, std::size_t num_ranks, std::size_t rank,
                      std::size_t element, std::size_t head_dim) {
  const auto heads = static_cast<std::size_t>(shape.num_heads);
  const std::size_t block_heads = heads / num_ranks;
  const std::size_t row = element / (block_heads * head_dim);
  const std::size_t head = element / head_dim % block_heads + rank * block_heads;
  return (row * heads + head) * head_dim + element % head_dim;
}

/// What a reduce-scatter in fp64 makes of all ranks' scaled blocks, in rows of all heads.
void expect_scaled(const std::string& module, const Partials& partials, DType scaled_dtype) {
  const plan::MergeShape& shape = partials.shape;
  const auto num_ranks = static_cast<std::size_t>(partials.num_partials);
  const auto head_dim = static_cast<std::size_t>(shape.head_dim);
  const auto out_elems = static_cast<std::size_t>(shape.out_elems());
  std::vector<double> sums(out_elems);
  std::vector<double> magnitudes(out_elems);
  for (std::size_t own = 0; own < num_ranks; ++own) {
    const MergeResult result =
        run_scale(module, partials, static_cast<std::int64_t>(own), scaled_dtype);
    expect_no_faults(result.faults);
    for (std::size_t i = 0; i < out_elems; ++i) {
      const std::size_t block_elems = out_elems / num_ranks;
      const std::size_t element =
          unblocked(shape, num_ranks, i / block_elems, i % block_elems, head_dim);
      sums[element] += static_cast<double>(result.out[i]);
      magnitudes[element] += std::abs(static_cast<double>(result.out[i]));
      const std::size_t lse_index = i / head_dim;
      const std::size_t block_lses = block_elems / head_dim;
      const std::size_t row_head =
          unblocked(shape, num_ranks, lse_index / block_lses, lse_index % block_lses, 1);
      const ExpectedMerge expected = expected_merge(partials, row_head * head_dim);
      const double lse = result.lse.at(lse_index);
      ASSERT_TRUE(lse == expected.lse || std::abs(lse - expected.lse) <= expected.lse_bound);
    }
  }
  const double cast = scaled_dtype == DType::f32 ? 0.0 : 0x1p-8;
  for (std::size_t element = 0; element < out_elems; ++element) {
    const ExpectedMerge expected = expected_merge(partials, element);
    // Each scaled value is rounded, and L is off by up to lse_bound.
    const double bound =
        expected.out_bound + magnitudes[element] * (cast + 2.0 * expected.lse_bound);
    ASSERT_LE(std::abs(sums[element] - expected.out), bound) << element;
  }
}

TEST_P(MergeStates, ScalesPartialsSoThatTheirSumIsTheMerge) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t num_ranks : {1, 2, 3, 6}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", name(dtype), num_ranks));
      const Partials partials = draw_partials({dtype, 5, 6, 40}, num_ranks);
      expect_scaled(module(), partials, dtype);
      expect_scaled(module(), partials, DType::f32);
    }
  }
}

// Share 8/10 of 10 and 2/10 of 5, in blocks of one head each: rank 0's block is head 0.
TEST_P(MergeStates, ScalesByTheShareInTheMerge) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    Partials partials{{dtype, 1, 2, 8}, 2, {}, {kLn8, kLn2, kLn2, kLn8}};
    partials.out = eight_each({10.0F, 5.0F, kNan, kNan});
    const MergeResult result = run_scale(module(), partials, 0, DType::f32);
    expect_no_faults(result.faults);
    for (std::size_t dim = 0; dim < 8; ++dim) {
      EXPECT_NEAR(result.out.at(dim), 8.0F, 1e-5F);
      EXPECT_NEAR(result.out.at(8 + dim), 1.0F, 1e-5F);
    }
    EXPECT_THAT(result.lse, Each(testing::FloatNear(kLn10, 1e-6F)));
  }
}

TEST_P(MergeStates, ScalesAnEmptyPartialToZeroWithoutReadingIt) {
  for (const float empty : {-kInfinity, kInfinity, kNan}) {
    for (const float other : {2.0F, -kInfinity}) {
      Partials heads{{DType::bf16, 1, 2, 8}, 2, {}, {empty, empty, other, other}};
      heads.out = eight_each({kNan, kNan, 3.0F, 3.0F});
      const MergeResult result = run_scale(module(), heads, 0, DType::bf16);
      expect_no_faults(result.faults);
      EXPECT_EQ(bits_of(result.out), bits_of(std::vector<float>(16, 0.0F)));
      EXPECT_THAT(result.lse, Each(other));
    }
  }
}

// LSE bits that a conversion would change: a signalling NaN with a payload, a denormal, -0.
TEST_P(MergeStates, PacksTheBitsOfTheLse) {
  const std::vector<std::uint32_t> patterns{0x7f812345U, 0xff800000U, 0x00000001U, 0x80000000U};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    // Rows 0 and 1, heads 0 and 1 of two ranks: value 10 * row + head.
    const plan::MergeShape shape{dtype, 2, 2, 32};
    std::vector<float> out;
    for (const float value : {0.0F, 1.0F, 10.0F, 11.0F}) out.insert(out.end(), 32, value);
    MergeBench bench{module()};
    plan::PartialPack pack;
    pack.partial = bench.upload(dtype, out);
    pack.lse = bench.upload_bytes(std::as_bytes(std::span{patterns}));
    pack.packed = bench.allocate(dtype, 4 * plan::packed_row_elems(shape));
    pack.num_ranks = 2;
    bench.run(plan::pack_partial_launch(shape, pack));
    const std::size_t row_bytes = 32 * size_bytes(dtype);
    const std::vector<std::byte> packed = bench.read_bytes(pack.packed, 4 * (row_bytes + 4));
    // Block 0 is head 0 of rows 0 and 1, block 1 is head 1.
    const std::vector<std::size_t> order{0, 2, 1, 3};
    for (std::size_t place = 0; place < 4; ++place) {
      const std::size_t source = order[place];
      std::vector<std::byte> expected =
          numerics::narrow(dtype, std::span{out}.subspan(source * 32, 32));
      const auto lse = std::as_bytes(std::span{patterns}).subspan(source * 4, 4);
      expected.insert(expected.end(), lse.begin(), lse.end());
      const auto first = packed.begin() + static_cast<std::ptrdiff_t>(place * (row_bytes + 4));
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), first)) << place;
    }
    expect_no_faults(bench.take_faults());
  }
}

/// Those of `values` of [rows, heads, head_dim] that rank `rank` has after an exchange over heads.
std::vector<float> block_of(const std::vector<float>& values, const Partials& partials,
                            std::size_t rank, std::size_t head_dim) {
  const auto num_ranks = static_cast<std::size_t>(partials.num_partials);
  std::vector<float> block(values.size() / num_ranks);
  for (std::size_t i = 0; i < block.size(); ++i) {
    block[i] = values.at(unblocked(partials.shape, num_ranks, rank, i, head_dim));
  }
  return block;
}

void expect_packed_like_plain(const std::string& module, const Partials& partials) {
  const MergeResult plain = run_merge(module, partials);
  for (std::int64_t rank = 0; rank < partials.num_partials; ++rank) {
    const MergeResult packed = run_packed(module, partials, rank);
    expect_no_faults(packed.faults);
    const auto place = static_cast<std::size_t>(rank);
    const auto head_dim = static_cast<std::size_t>(partials.shape.head_dim);
    EXPECT_EQ(bits_of(packed.out), bits_of(block_of(plain.out, partials, place, head_dim)));
    EXPECT_EQ(bits_of(packed.lse), bits_of(block_of(plain.lse, partials, place, 1)));
  }
}

TEST_P(MergeStates, PackedPartialsMergeToTheBitsOfPlainOnes) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t num_ranks : {1, 2, 3, 6}) {
      SCOPED_TRACE(fmt::format("{} on {} ranks", name(dtype), num_ranks));
      expect_packed_like_plain(module(), draw_partials({dtype, 5, 6, 136}, num_ranks));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MergeStates, testing::ValuesIn(kernel_folders()),
                         [](const auto& test) {
                           return test.param == "kernels/" ? "clang" : "nvcc";
                         });

}  // namespace
}  // namespace cpverify::tests
