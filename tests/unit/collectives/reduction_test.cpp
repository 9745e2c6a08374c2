// Sums whose order matters, worked out by hand. bf16 has 8 significant bits: from 256 on its values
// are 2 apart, and ties go to a multiple of 4: 257 becomes 256, 259 becomes 260.

#include "collectives/reduction.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/reduction.hpp"
#include "gpu/nccl_api.hpp"
#include "numerics/float16.hpp"

namespace cpverify::collectives {
namespace {

using gpu::NcclDataType;
using gpu::NcclRedOp;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;

/// Every rank has its value in all of `count` elements.
std::vector<float> reduce_bf16(const ReductionSpec& spec, const std::vector<float>& values,
                               const Reduction& reduction) {
  std::vector<std::vector<std::uint16_t>> inputs;
  std::vector<const std::byte*> pointers;
  inputs.reserve(values.size());
  for (const float value : values) {
    inputs.emplace_back(reduction.count, numerics::f32_to_bf16(value));
    pointers.push_back(reinterpret_cast<const std::byte*>(inputs.back().data()));
  }
  std::vector<std::uint16_t> output(reduction.count);
  reduce(spec, reduction, pointers, reinterpret_cast<std::byte*>(output.data()));
  std::vector<float> result;
  result.reserve(output.size());
  for (const std::uint16_t bits : output) result.push_back(numerics::bf16_to_f32(bits));
  return result;
}

Reduction sum_of(std::size_t count, int last_rank = -1) {
  return {NcclDataType::bfloat16, NcclRedOp::sum, count, last_rank};
}

ReductionSpec order(ReductionOrder order) {
  ReductionSpec spec;
  spec.order = order;
  return spec;
}

const std::vector<float> kLargeFirst{256, 1, 1, 1};

// Chunk j of 4 goes round from rank j + 1:
// 0: 1+1+1 = 3, 3+256 = 259 -> 260.  1: 1+1 = 2, 2+256 = 258, 258+1 = 259 -> 260.
// 2: 1+256 -> 256, 256+1 -> 256, again 256.  3: 256+1 -> 256, and so on.
TEST(Reduction, ARingAddsFromTheRankBehindTheChunk) {
  EXPECT_THAT(reduce_bf16({}, kLargeFirst, sum_of(4)), ElementsAre(260, 260, 256, 256));
  EXPECT_THAT(reduce_bf16({}, kLargeFirst, sum_of(8)),
              ElementsAre(260, 260, 260, 260, 256, 256, 256, 256));
}

// Position j + 1 of the ring 2 3 0 1. 0: ranks 3 0 1 2 -> 256. 1: 0 1 2 3 -> 256.
// 2: 1 2 3 0 -> 3+256 -> 260. 3: 2 3 0 1 -> 258+1 -> 260.
TEST(Reduction, ARingFollowsItsPermutation) {
  ReductionSpec spec;
  spec.ring = {2, 3, 0, 1};
  EXPECT_THAT(reduce_bf16(spec, kLargeFirst, sum_of(4)), ElementsAre(256, 256, 260, 260));
}

TEST(Reduction, ChannelsAndChunksDivideTheBuffer) {
  ReductionSpec spec;
  // Two parts of 2 elements: chunks 0 and 1 of each.
  spec.channels = 2;
  EXPECT_THAT(reduce_bf16(spec, kLargeFirst, sum_of(4)), Each(260));
  // Chunks of 3 elements: chunk 2 begins at element 6, the loop's second round at 12.
  spec.channels = 1;
  spec.chunk_elems = 3;
  const std::vector<float> result = reduce_bf16(spec, kLargeFirst, sum_of(13));
  EXPECT_EQ(result[5], 260);
  EXPECT_EQ(result[6], 256);
  EXPECT_EQ(result[11], 256);
  EXPECT_EQ(result[12], 260);
}

// The block of a rank ends there: of rank 0 after 1 2 3 0, of rank 3 after 0 1 2 3.
TEST(Reduction, ABlockOfReduceScatterEndsAtItsRank) {
  EXPECT_THAT(reduce_bf16({}, kLargeFirst, sum_of(2, 0)), Each(260));
  EXPECT_THAT(reduce_bf16({}, kLargeFirst, sum_of(2, 3)), Each(256));
}

TEST(Reduction, RankAscendingRoundsOnce) {
  // 259 -> 260, whatever the order of the ranks.
  EXPECT_THAT(reduce_bf16(order(ReductionOrder::rank_ascending), kLargeFirst, sum_of(4)),
              Each(260));
  EXPECT_THAT(reduce_bf16(order(ReductionOrder::rank_ascending), {1, 1, 256, 1}, sum_of(4)),
              Each(260));
}

// 4 ranks: 0 has child 2, which has 1 and 3. First half: (256+1)+1 -> 256 at 2, 1+256 -> 256.
// Mirrored: 3 has child 1, which has 2 and 0. Second half: (1+256)+1 -> 256 at 1, 1+256 -> 256.
// With 256 on rank 0: 1+1+1 = 3 at 2, 256+3 -> 260; mirrored (1+1)+256 = 258 at 1, 1+258 -> 260.
// With 256 on rank 3: (1+1)+256 = 258 at 2, 1+258 -> 260; mirrored 3 at 1, 256+3 -> 260.
TEST(Reduction, ATreeAddsItsChildrenToItsOwnValue) {
  const ReductionSpec tree = order(ReductionOrder::tree);
  EXPECT_THAT(reduce_bf16(tree, {1, 1, 256, 1}, sum_of(2)), ElementsAre(256, 256));
  EXPECT_THAT(reduce_bf16(tree, kLargeFirst, sum_of(2)), ElementsAre(260, 260));
  EXPECT_THAT(reduce_bf16(tree, {1, 1, 1, 256}, sum_of(2)), ElementsAre(260, 260));
}

// 3 ranks: 0 has child 2, 2 has child 1 (3 does not exist). First half: 1+256 -> 256 at 2, then
// 1+256 -> 256. The second tree is shifted by one: root 1 has child 0, which has 2: 1+1 = 2, 256+2.
TEST(Reduction, ATreeOfAnOddNumberOfRanksIsShifted) {
  EXPECT_THAT(reduce_bf16(order(ReductionOrder::tree), {1, 256, 1}, sum_of(2)),
              ElementsAre(256, 258));
}

// Every rank counts once, for every number of ranks: powers of 2 add up exactly.
TEST(Reduction, EveryOrderCountsEveryRankOnce) {
  for (std::size_t ranks = 1; ranks <= 7; ++ranks) {
    std::vector<float> values;
    float expected = 0;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      values.push_back(static_cast<float>(1U << rank));
      expected += values.back();
    }
    for (const ReductionOrder each : kReductionOrders) {
      EXPECT_THAT(reduce_bf16(order(each), values, sum_of(9)), Each(expected)) << name(each);
    }
  }
}

TEST(Reduction, AnAdversaryFindsBothSumsAndFindsThemAgain) {
  ReductionSpec spec = order(ReductionOrder::adversarial);
  spec.seed = 3;
  const std::vector<float> result = reduce_bf16(spec, kLargeFirst, sum_of(64));
  EXPECT_THAT(result, Contains(256));
  EXPECT_THAT(result, Contains(260));
  EXPECT_EQ(reduce_bf16(spec, kLargeFirst, sum_of(64)), result);
  spec.seed = 4;
  EXPECT_NE(reduce_bf16(spec, kLargeFirst, sum_of(64)), result);
}

// Each value is divided first: 64 and 0.25. From 64 on bf16 values are 0.5 apart: 64.25 -> 64,
// 64.75 -> 65.
TEST(Reduction, AnAverageDividesBeforeItAdds) {
  const Reduction average{NcclDataType::bfloat16, NcclRedOp::avg, 4, -1};
  const std::vector<float> result = reduce_bf16({}, kLargeFirst, average);
  EXPECT_EQ(result[0], 65);
  EXPECT_EQ(result[3], 64);
}

template <class Value>
Value reduce_one(NcclDataType type, NcclRedOp op, const std::vector<Value>& values) {
  std::vector<const std::byte*> pointers;
  pointers.reserve(values.size());
  for (const Value& value : values) pointers.push_back(reinterpret_cast<const std::byte*>(&value));
  Value output{};
  reduce({}, {type, op, 1, -1}, pointers, reinterpret_cast<std::byte*>(&output));
  return output;
}

TEST(Reduction, KnowsEveryOperationAndWrapsIntegers) {
  const std::vector<std::int8_t> bytes{100, 100, -3};
  // 197 - 256; 100 * 100 * -3 = -30000 = -118 * 256 + 208, and 208 - 256 = -48; 197 / 3 wrapped.
  EXPECT_EQ(reduce_one(NcclDataType::int8, NcclRedOp::sum, bytes), -59);
  EXPECT_EQ(reduce_one(NcclDataType::int8, NcclRedOp::prod, bytes), -48);
  EXPECT_EQ(reduce_one(NcclDataType::int8, NcclRedOp::max, bytes), 100);
  EXPECT_EQ(reduce_one(NcclDataType::int8, NcclRedOp::min, bytes), -3);
  EXPECT_EQ(reduce_one<std::int64_t>(NcclDataType::int64, NcclRedOp::avg, {7, 4, 4}), 5);
  EXPECT_EQ(reduce_one<std::uint32_t>(NcclDataType::uint32, NcclRedOp::sum, {0xffffffffU, 2}), 1U);
  EXPECT_EQ(reduce_one<float>(NcclDataType::float32, NcclRedOp::prod, {0.5F, 6}), 3);
  EXPECT_EQ(reduce_one<double>(NcclDataType::float64, NcclRedOp::min, {0.5, -6}), -6);
  // f16 has 11 bits: 2048 + 1 -> 2048.
  EXPECT_EQ(reduce_one<std::uint16_t>(NcclDataType::float16, NcclRedOp::sum,
                                      {numerics::f32_to_f16(2048), numerics::f32_to_f16(1)}),
            numerics::f32_to_f16(2048));
}

TEST(Reduction, ARingIsAPermutationOfTheRanks) {
  ReductionSpec spec;
  EXPECT_TRUE(is_valid(spec, 1));
  spec.ring = {1, 0};
  EXPECT_TRUE(is_valid(spec, 2));
  EXPECT_FALSE(is_valid(spec, 3));
  spec.ring = {1, 1};
  EXPECT_FALSE(is_valid(spec, 2));
  spec.ring = {};
  spec.channels = 0;
  EXPECT_FALSE(is_valid(spec, 2));
}

TEST(Reduction, SaysWhatItIs) {
  ReductionSpec spec;
  EXPECT_EQ(text(spec), "ring(in rank order; channels 1; chunk even)");
  spec.ring = {1, 0};
  spec.chunk_elems = 512;
  EXPECT_EQ(text(spec), "ring(1 0; channels 1; chunk 512)");
  EXPECT_EQ(text(order(ReductionOrder::tree)), "tree");
  spec.order = ReductionOrder::adversarial;
  spec.seed = 9;
  EXPECT_EQ(text(spec), "adversarial(9)");
}

}  // namespace
}  // namespace cpverify::collectives
