// Arguments of launches that no strategy's test asks for. That the merges' are in their kernels'
// order is tested by running them, in tests/contract/kernels.

#include "plan/launches.hpp"

#include <cstddef>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "plan/merge_launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

using testing::ElementsAre;

BufferRef buffer(std::uint32_t id) {
  return {BufferId{id}, 0};
}

std::uint32_t buffer_at(const Launch& launch, std::size_t index) {
  return std::get<BufferRef>(launch.arguments.at(index)).buffer.value();
}

std::int32_t number_at(const Launch& launch, std::size_t index) {
  return std::get<std::int32_t>(launch.arguments.at(index));
}

// Context attention: gathered heads of 3 ranks, pages of one token, a table of its own.
TEST(AttentionLaunch, TakesWhatTheCallNamesInsteadOfTheRanksOwn) {
  RankShape shape;
  shape.num_seqs = 9;
  shape.max_pages = 5;
  shape.block_size = 16;
  shape.num_heads_q = 4;
  shape.num_heads_kv = 2;
  shape.head_dim = 64;
  AttentionCall call;
  call.max_seqlen_q = 5;
  call.is_causal = false;
  call.k_pool = buffer(21);
  call.v_pool = buffer(22);
  call.block_table = buffer(23);
  call.num_seqs = 2;
  call.max_pages = 40;
  call.block_size = 1;
  call.num_heads_q = 12;
  call.num_heads_kv = 1;
  const Launch launch = attention_launch(shape, CommonBuffers{}, call);
  EXPECT_THAT(launch.grid, ElementsAre(2, 12, 2));  // 5 queries, 4 to a CTA.
  EXPECT_EQ(buffer_at(launch, 1), 21U);
  EXPECT_EQ(buffer_at(launch, 2), 22U);
  EXPECT_EQ(buffer_at(launch, 5), 23U);
  EXPECT_EQ(number_at(launch, 8), 2);
  EXPECT_EQ(number_at(launch, 9), 40);
  EXPECT_EQ(number_at(launch, 10), 1);
  EXPECT_EQ(number_at(launch, 11), 12);
  EXPECT_EQ(number_at(launch, 12), 1);
  EXPECT_EQ(number_at(launch, 14), 0);
}

TEST(MergeLaunch, HasAWarpForEveryRowAndHead) {
  const MergeShape shape{DType::bf16, 9, 6, 128};
  const Launch launch = merge_partials_launch(shape, dense_merge(shape, 4));
  EXPECT_THAT(launch.grid, ElementsAre(3, 6, 1));
  EXPECT_THAT(launch.block, ElementsAre(128, 1, 1));
  EXPECT_EQ(std::get<std::int64_t>(launch.arguments.at(8)), 9 * 6 * 128);
  EXPECT_EQ(std::get<std::int64_t>(launch.arguments.at(9)), 9 * 6);
}

// 32 bits of LSE are two 16-bit elements or one of f32.
TEST(MergeLaunch, PacksAnLseBehindEveryRow) {
  EXPECT_EQ(packed_row_elems({DType::bf16, 1, 1, 64}), 66);
  EXPECT_EQ(packed_row_elems({DType::f32, 1, 1, 64}), 65);
}

}  // namespace
}  // namespace cpverify::plan
