#include "layout/kv_shard.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;

std::vector<std::int64_t> lengths(std::uint32_t shards, std::uint32_t interleave,
                                  std::int64_t length) {
  std::vector<std::int64_t> held;
  for (std::uint32_t index = 0; index < shards; ++index) {
    held.push_back(local_length({shards, index, interleave}, length));
  }
  return held;
}

/// Owner and slot of position x of a request with blocks 7, 3, 9 of 16 tokens per shard, N = 2.
struct Place {
  std::uint32_t owner = 0;
  std::int64_t slot = 0;

  bool operator==(const Place&) const = default;
};

Place place(std::int64_t position, std::uint32_t interleave) {
  constexpr std::int64_t kBlockTokens = 32;
  const std::vector<std::int64_t> table{7, 3, 9};
  const std::int64_t slot =
      table.at(static_cast<std::size_t>(position / kBlockTokens)) * kBlockTokens +
      position % kBlockTokens;
  for (std::uint32_t index = 0; index < 2; ++index) {
    const std::optional<std::int64_t> local =
        local_slot({2, index, interleave}, kBlockTokens, slot);
    if (local) return {index, *local};
  }
  return {9, -1};
}

// Block 7 begins at local slot 7 * 16 = 112, block 3 at 48. With I = 1 position 3 is the second odd
// one: rank 1, offset 1. With I = 4 position 4 begins rank 1's first run: offset 0. Position 36 is
// the fifth of block 3: with I = 1 offset 36 - 32 over 2 = 2, with I = 16 offset 4.
TEST(KvShard, PlacesTokensAsVllmDoes) {
  const std::vector<std::int64_t> positions{0, 1, 3, 4, 15, 16, 31, 32, 36};
  const std::vector<Place> by_1{{0, 112}, {1, 112}, {1, 113}, {0, 114}, {1, 119},
                                {0, 120}, {1, 127}, {0, 48},  {0, 50}};
  const std::vector<Place> by_4{{0, 112}, {0, 113}, {0, 115}, {1, 112}, {1, 119},
                                {0, 120}, {1, 127}, {0, 48},  {1, 48}};
  const std::vector<Place> by_16{{0, 112}, {0, 113}, {0, 115}, {0, 116}, {0, 127},
                                 {1, 112}, {1, 127}, {0, 48},  {0, 52}};
  for (std::size_t i = 0; i < positions.size(); ++i) {
    SCOPED_TRACE(positions[i]);
    EXPECT_EQ(place(positions[i], 1), by_1[i]);
    EXPECT_EQ(place(positions[i], 4), by_4[i]);
    EXPECT_EQ(place(positions[i], 16), by_16[i]);
  }
}

// 37 tokens in runs of 16 over two ranks: 16 + 5 and 16. Over four: 16, 16, 5, 0.
TEST(KvShard, CountsTheTokensOfAShard) {
  EXPECT_THAT(lengths(2, 1, 37), ElementsAre(19, 18));
  EXPECT_THAT(lengths(2, 4, 20), ElementsAre(12, 8));
  EXPECT_THAT(lengths(2, 16, 37), ElementsAre(21, 16));
  EXPECT_THAT(lengths(4, 16, 37), ElementsAre(16, 16, 5, 0));
  EXPECT_THAT(lengths(4, 16, 70), ElementsAre(22, 16, 16, 16));
  EXPECT_THAT(lengths(4, 1, 3), ElementsAre(1, 1, 1, 0));
  EXPECT_THAT(lengths(8, 128, 0), ElementsAre(0, 0, 0, 0, 0, 0, 0, 0));
}

// Walking a request's positions upwards, each shard fills its own slots without a gap, and holds as
// many of the first L as local_length() says.
TEST(KvShard, FillsEveryShardDensely) {
  for (const std::uint32_t shards : {1U, 2U, 3U, 4U, 6U, 8U}) {
    for (const std::uint32_t interleave : {1U, 2U, 4U, 8U, 16U}) {
      const std::int64_t block_tokens = 16 * std::int64_t{shards};
      std::vector<std::int64_t> held(shards, 0);
      for (std::int64_t position = 0; position < 3 * block_tokens; ++position) {
        const std::uint32_t owner = shard_of({shards, 0, interleave}, position);
        const auto slot = local_slot({shards, owner, interleave}, block_tokens, position);
        ASSERT_EQ(slot, std::optional{held[owner]++});
        for (std::uint32_t index = 0; index < shards; ++index) {
          ASSERT_EQ(local_length({shards, index, interleave}, position + 1), held[index]);
        }
      }
    }
  }
}

// Prefill rank 1 of 2, decode rank 0 of 2: shard 1 * 2 + 0 of four, or 0 of two.
TEST(KvShard, NumbersShardsByWhoSharesTheCache) {
  TopologySpec topology{.cp = 2, .tp = 2, .dcp = 2};
  RankPlan rank;
  rank.cp_rank = 1;
  rank.tp_rank = 0;
  EXPECT_EQ(kv_shard_of(topology, rank).count, 2U);
  EXPECT_EQ(kv_shard_of(topology, rank).index, 0U);
  topology.kv_sharding = KvSharding::pcp_dcp;
  EXPECT_EQ(kv_shard_of(topology, rank).count, 4U);
  EXPECT_EQ(kv_shard_of(topology, rank).index, 2U);
  EXPECT_EQ(head_group_size(topology), 2U);
}

// With prefill ranks counted first the same rank is 0 * 2 + 1 of four, or of the two of its group.
TEST(KvShard, CountsPrefillRanksOfADecodeGroupFirst) {
  TopologySpec topology{.cp = 2, .tp = 2, .dcp = 4, .kv_sharding = KvSharding::dcp_over_pcp};
  RankPlan rank;
  rank.cp_rank = 1;
  rank.tp_rank = 0;
  EXPECT_EQ(kv_shard_of(topology, rank).count, 4U);
  EXPECT_EQ(kv_shard_of(topology, rank).index, 1U);
  EXPECT_EQ(head_group_size(topology), 2U);
  rank.tp_rank = 1;
  EXPECT_EQ(kv_shard_of(topology, rank).index, 3U);
  topology.dcp = 2;
  EXPECT_EQ(kv_shard_of(topology, rank).index, 1U);
  EXPECT_EQ(head_group_size(topology), 1U);
}

// Slots of an allocator that knows no blocks: slot 7 is the fourth of rank 1.
TEST(KvShard, DealsSingleSlotsInTurn) {
  EXPECT_EQ(local_slot({2, 1, 1}, 1, 7), 3);
  EXPECT_EQ(local_slot({2, 0, 1}, 1, 7), std::nullopt);
  EXPECT_EQ(local_slot({3, 1, 1}, 1, 7), 2);
}

}  // namespace
}  // namespace cpverify::layout
