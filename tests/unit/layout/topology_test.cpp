#include "layout/topology.hpp"

#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;

std::vector<std::uint32_t> members(const TopologySpec& topology, std::uint32_t tp_rank) {
  std::vector<std::uint32_t> ranks;
  for (const RankId rank : cp_group(topology, TpRank{tp_rank})) {
    ranks.push_back(rank.value());
  }
  return ranks;
}

std::vector<std::uint32_t> first_kv_heads(std::uint32_t num_heads_kv, std::uint32_t tp) {
  ModelSpec model;
  model.num_heads_kv = num_heads_kv;
  std::vector<std::uint32_t> heads;
  for (std::uint32_t rank = 0; rank < tp; ++rank) {
    heads.push_back(kv_heads(model, {1, tp}, TpRank{rank}).first);
  }
  return heads;
}

// Eight GPUs in two data-parallel halves of cp 2 and tp 2: CP groups 0,2 and 1,3 in the first half.
TEST(Topology, StridesCpGroupsByTp) {
  EXPECT_THAT(members({2, 2}, 0), ElementsAre(0, 2));
  EXPECT_THAT(members({2, 2}, 1), ElementsAre(1, 3));
}

// As a set the CP group of cp 4, tp 1 is the world; of cp 1, tp 4 it is one rank.
TEST(Topology, HasGroupsOfCpMembers) {
  EXPECT_THAT(members({4, 1}, 0), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(members({1, 4}, 2), ElementsAre(2));
}

TEST(Topology, FindsBothRanksOfAWorldRank) {
  const TopologySpec topology{3, 4};
  for (std::uint32_t rank = 0; rank < 12; ++rank) {
    const CpRank cp_rank = cp_rank_of(topology, RankId{rank});
    const TpRank tp_rank = tp_rank_of(topology, RankId{rank});
    EXPECT_LT(cp_rank.value(), 3U);
    EXPECT_LT(tp_rank.value(), 4U);
    EXPECT_EQ(world_rank(topology, cp_rank, tp_rank), RankId{rank});
  }
}

TEST(Topology, SplitsQueryHeadsEvenly) {
  ModelSpec model;
  model.num_heads_q = 8;
  const HeadRange heads = query_heads(model, {1, 4}, TpRank{3});
  EXPECT_EQ(heads.first, 6U);
  EXPECT_EQ(heads.count, 2U);
}

TEST(Topology, SplitsKvHeadsWhenThereAreEnough) {
  ModelSpec model;
  model.num_heads_kv = 4;
  EXPECT_EQ(kv_heads(model, {1, 2}, TpRank{1}).first, 2U);
  EXPECT_EQ(kv_heads(model, {1, 2}, TpRank{1}).count, 2U);
}

// 2 heads on 4 ranks: ranks 0 and 1 read head 0, ranks 2 and 3 head 1.
TEST(Topology, CopiesKvHeadsToNeighboursWhenThereAreFewer) {
  EXPECT_THAT(first_kv_heads(2, 4), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(first_kv_heads(1, 4), ElementsAre(0, 0, 0, 0));
}

}  // namespace
}  // namespace cpverify::layout
