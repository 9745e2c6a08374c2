#include "layout/cost.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

BatchSplit batch_of(SplitKind kind, std::uint32_t cp, std::vector<SplitRow> rows) {
  SplitSpec spec;
  spec.kind = kind;
  spec.cp = cp;
  return {spec, std::move(rows)};
}

std::vector<std::int64_t> pairs(const BatchSplit& batch) {
  std::vector<std::int64_t> all;
  for (const RankCost& rank : cost_of(batch, {}).ranks) all.push_back(rank.pairs);
  return all;
}

// L = 17, C = 4: zigzag 39, 38, 38, 38; interleave 45, 32, 36, 40.
TEST(Cost, CountsThePairsOfThePublishedExamples) {
  EXPECT_THAT(pairs(batch_of(SplitKind::zigzag, 4, {{0, 17, false}})), ElementsAre(39, 38, 38, 38));
  EXPECT_THAT(pairs(batch_of(SplitKind::interleave, 4, {{0, 17, false}})),
              ElementsAre(45, 32, 36, 40));
  // T = 1024: zigzag exactly equal, interleave 130816 to 131584.
  EXPECT_THAT(pairs(batch_of(SplitKind::zigzag, 4, {{0, 1024, false}})),
              ElementsAre(131200, 131200, 131200, 131200));
  EXPECT_EQ(pairs(batch_of(SplitKind::interleave, 4, {{0, 1024, false}})).front(), 130816);
  EXPECT_EQ(pairs(batch_of(SplitKind::interleave, 4, {{0, 1024, false}})).back(), 131584);
}

// 17 tokens, window 3: 1 + 2 + 15 * 3 = 48 pairs, of which the first of 4 ranks has tokens 0-2 and
// 15-16: 1 + 2 + 3 + 2 * 3 = 12.
TEST(Cost, CountsThePairsOfAWindow) {
  SplitSpec spec;
  spec.kind = SplitKind::zigzag;
  spec.cp = 4;
  spec.window = 3;
  EXPECT_THAT(pairs(BatchSplit{spec, {{0, 17, false}}}), ElementsAre(12, 12, 12, 12));
}

std::int64_t enumerated_pairs(const AttentionPart& part) {
  std::int64_t pairs = 0;
  for (std::int64_t x = 0; x < 20; ++x) {
    for (std::int64_t k = 0; k < 20; ++k) {
      const bool is_seen = contains(part.queries, x) && contains(part.keys, k) &&
                           k <= x + part.diagonal.value_or(20) &&
                           (part.window == 0 || k > x + part.diagonal.value_or(0) - part.window);
      pairs += is_seen ? 1 : 0;
    }
  }
  return pairs;
}

TEST(Cost, CountsPairsAsEnumerationDoes) {
  const std::vector<TokenSet> sets{interval(0, 9), interval(4, 12), comb(0, 14, 3, 1),
                                   shard_of(2, 20, 1, 2, 4), interval(5, 5)};
  for (const TokenSet& queries : sets) {
    for (const TokenSet& keys : sets) {
      for (std::int64_t diagonal = -7; diagonal < 8; ++diagonal) {
        for (const std::int64_t window : {0, 1, 3, 30}) {
          const AttentionPart part{0, 0, {0, 1}, queries, keys, diagonal, window};
          EXPECT_EQ(count_pairs(part), enumerated_pairs(part))
              << text(queries) << ' ' << text(keys) << ' ' << diagonal << ' ' << window;
        }
      }
    }
  }
}

// Two ranks, 9 rows of M = 5 each: one other rank, 5 rows, 2 * 2 KV heads * 64 * 2 bytes.
TEST(Cost, OfZigzagGathersTheLargestRankFromAll) {
  const BatchCost cost =
      cost_of(batch_of(SplitKind::zigzag, 2, {{0, 9, false}}), {4, 2, 64, 2, false});
  ASSERT_THAT(cost.exchanges, SizeIs(2));
  EXPECT_EQ(cost.exchanges[0].sent_bytes, 5 * 2 * 2 * 64 * 2);
  EXPECT_EQ(cost.exchanges[1].sent_bytes, 5 * 4 * 64 * 2);
  // 9 tokens of K and V on each rank.
  EXPECT_EQ(cost.ranks[1].stored_bytes, 9 * 2 * 2 * 64 * 2);
  // 4 D flops per pair of a head.
  EXPECT_DOUBLE_EQ(cost.ranks[0].flops, 4.0 * 64 * static_cast<double>(cost.ranks[0].pairs));
}

TEST(Cost, OfABatchThatIsNotSplitHasNoExchange) {
  const BatchCost cost = cost_of(batch_of(SplitKind::zigzag, 4, {{0, 7, false}}), {});
  EXPECT_THAT(cost.exchanges, IsEmpty());
  EXPECT_DOUBLE_EQ(cost.balance, 1.0);
}

// 8 new tokens, 4 ranks of 2 local heads, head size 64, bf16.
TEST(Cost, OfDcpDependsOnTheCombine) {
  SplitSpec spec;
  spec.kind = SplitKind::dcp;
  spec.dcp = 4;
  spec.num_heads_q = 8;
  const BatchSplit batch{spec, {{100, 8, false}}};
  constexpr std::int64_t kPart = 3LL * 8 * 2 * 64 * 2;  // Three others, 8 tokens, 2 heads.
  const BatchCost ag_rs = cost_of(batch, {2, 1, 64, 2, false});
  ASSERT_THAT(ag_rs.exchanges, SizeIs(3));
  EXPECT_EQ(ag_rs.exchanges[0].sent_bytes, kPart);
  EXPECT_EQ(ag_rs.exchanges[1].sent_bytes, 3 * 8 * (8 * 4));  // fp32 LSE of all 8 heads.
  EXPECT_EQ(ag_rs.exchanges[2].sent_bytes, kPart);
  const BatchCost a2a = cost_of(batch, {2, 1, 64, 2, true});
  ASSERT_THAT(a2a.exchanges, SizeIs(2));
  EXPECT_EQ(a2a.exchanges[1].sent_bytes, kPart + 3LL * 8 * 2 * 4);  // With own heads' LSE.
}

// Rank 3 of contiguous has 4 * 13 + (1 + 2 + 3 + 4) pairs of 136: 58 / 34.
TEST(Cost, SaysHowUnevenContiguousIs) {
  const BatchCost cost = cost_of(batch_of(SplitKind::contiguous, 4, {{0, 16, false}}), {});
  EXPECT_EQ(cost.ranks[3].pairs, 58);
  EXPECT_DOUBLE_EQ(cost.balance, 58.0 / 34.0);
}

// 10^12 flops, 10^9 bytes and 9 * 10^9 bytes sent: on B200 1/2250 s, 1/8000 s and 0.01 s.
TEST(Roofline, IsTheLongestOfThree) {
  BatchCost cost;
  cost.ranks.push_back({1, 1, 1e12, 1, 1, 1'000'000'000, 0});
  cost.exchanges.push_back({"K", "all_gather", 2, 9'000'000'000});
  const Roofline times = roofline(cost, all_devices()[2], 0.0);
  EXPECT_DOUBLE_EQ(times.compute, 1.0 / 2250.0);
  EXPECT_DOUBLE_EQ(times.memory, 1.0 / 8000.0);
  EXPECT_DOUBLE_EQ(times.network, 0.01);
  EXPECT_DOUBLE_EQ(times.overlapped, 0.01);
  EXPECT_DOUBLE_EQ(times.serial, 0.01 + 1.0 / 2250.0);
  EXPECT_DOUBLE_EQ(roofline(cost, all_devices()[2], 9.0).network, 1.0);
}

}  // namespace
}  // namespace cpverify::layout
