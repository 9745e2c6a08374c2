#include "layout/ulysses.hpp"

#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;

UlyssesSplit split_of(std::int64_t num_tokens, std::uint32_t cp_size) {
  Step step;
  step.rows.resize(1);
  step.rows[0].scheduled = num_tokens;
  return make_ulysses_split(step, cp_size);
}

// ceil(13 / 4) = 4 rows each; the last rank has token 12 and three pads.
TEST(Ulysses, GivesRanksConsecutiveTokens) {
  const UlyssesSplit split = split_of(13, 4);
  EXPECT_EQ(split.max_rows, 4);
  EXPECT_EQ(split.all_rows(), 16);
  EXPECT_THAT(ulysses_tokens(split, CpRank{1}), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(ulysses_tokens(split, CpRank{3}), ElementsAre(12, -1, -1, -1));
  EXPECT_EQ(split_of(0, 4).max_rows, 0);
}

// Heads 6..11 of tp rank 1 on two ranks: 6..8 and 9..11, which read KV heads 2 and 3.
TEST(Ulysses, DealsHeadsOut) {
  EXPECT_EQ(exchanged_query_heads({6, 6}, 2, CpRank{1}).first, 9U);
  EXPECT_EQ(exchanged_query_heads({6, 6}, 2, CpRank{1}).count, 3U);
  EXPECT_EQ(exchanged_kv_heads({2, 2}, 2, CpRank{1}).first, 3U);
  EXPECT_EQ(exchanged_kv_heads({2, 2}, 2, CpRank{1}).count, 1U);
}

TEST(Ulysses, GivesNeighboursCopiesOfOneKvHead) {
  for (const std::uint32_t rank : {0U, 1U, 2U, 3U}) {
    const HeadRange heads = exchanged_kv_heads({4, 2}, 4, CpRank{rank});
    EXPECT_EQ(heads.first, 4 + rank / 2);
    EXPECT_EQ(heads.count, 1U);
  }
}

// Three tokens on two ranks, four heads: token t starts at run 2t, rank 1's heads one run later.
TEST(Ulysses, SendsRunsOfHeads) {
  EXPECT_THAT(ulysses_send_index(split_of(3, 2), CpRank{0}, 4), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(ulysses_send_index(split_of(3, 2), CpRank{1}, 4), ElementsAre(4, -1, 5, -1));
}

// docs/strategies/ulysses.md, worked example.
TEST(Ulysses, SendsOneKvHeadToSeveralRanks) {
  EXPECT_THAT(ulysses_send_index(split_of(13, 4), CpRank{3}, 2),
              ElementsAre(24, -1, -1, -1, 24, -1, -1, -1, 25, -1, -1, -1, 25, -1, -1, -1));
}

// Runs arrive rank by rank, two rows each: row 0 takes runs 0, 2, 4, row 1 runs 1, 3, 5.
TEST(Ulysses, PutsReturnedHeadsSideBySide) {
  EXPECT_THAT(ulysses_head_order(split_of(6, 3)), ElementsAre(0, 2, 4, 1, 3, 5));
}

}  // namespace
}  // namespace cpverify::layout
