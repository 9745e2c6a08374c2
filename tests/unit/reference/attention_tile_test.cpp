#include "reference/attention_tile.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace cpverify::reference {
namespace {

using Eigen::Index;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// `count` keys of dimension 4 whose scores against a query of ones are 0; v_j = j + 1.
KeyValueHead equal_keys(Index count) {
  KeyValueHead keys;
  keys.k = RowMatrix::Zero(count, 4);
  keys.abs_k = keys.k;
  keys.v.resize(count, 8);
  for (Index key = 0; key < count; ++key) keys.v.row(key).setConstant(static_cast<double>(key + 1));
  return keys;
}

QueryTile ones(Index rows, Index first_num_keys) {
  QueryTile tile;
  tile.q = RowMatrix::Ones(rows, 4);
  tile.first_num_keys = first_num_keys;
  return tile;
}

TEST(AttentionTile, RowWithoutKeysIsZeroWithAnLseOfMinusInfinity) {
  AttentionTile attention;
  TileResult result;
  attention.compute(ones(2, 0), equal_keys(1), result);
  EXPECT_EQ(result.lse[0], -kInfinity);
  EXPECT_TRUE((result.out.row(0).array() == 0.0).all());
  EXPECT_EQ(result.max_abs_score[0], 0.0);
  EXPECT_EQ(result.lse[1], 0.0);
  EXPECT_TRUE((result.out.row(1).array() == 1.0).all());
}

TEST(AttentionTile, TileOfNothingButEmptyRowsIsEmpty) {
  AttentionTile attention;
  TileResult result;
  attention.compute(ones(1, 0), equal_keys(0), result);
  EXPECT_EQ(result.lse[0], -kInfinity);
  EXPECT_TRUE((result.out.array() == 0.0).all());
}

// The mean of 1 .. n is (n+1)/2 and the log-sum-exp of n zeros is log n, at and around every
// boundary of lanes (8) and key tiles.
TEST(AttentionTile, EqualKeysGiveTheMeanAndLogN) {
  AttentionTile attention;
  TileResult result;
  for (const Index n :
       {1, 2, 7, 8, 9, 15, 16, 17, 127, 128, 129, 255, 256, 257, 511, 512, 513, 1025}) {
    attention.compute(ones(1, n), equal_keys(n), result);
    const auto count = static_cast<double>(n);
    EXPECT_DOUBLE_EQ(result.lse[0], std::log(count)) << n;
    EXPECT_NEAR(result.out(0, 0), (count + 1.0) / 2.0, count * 1e-15) << n;
  }
}

// A buffer that still holds the scores of a longer tile must not leak into a shorter one.
TEST(AttentionTile, ForgetsTheTileBefore) {
  AttentionTile used;
  AttentionTile fresh;
  TileResult result;
  TileResult expected;
  used.compute(ones(5, 300), equal_keys(304), result);
  used.compute(ones(2, 3), equal_keys(4), result);
  fresh.compute(ones(2, 3), equal_keys(4), expected);
  EXPECT_TRUE((result.out.array() == expected.out.array()).all());
  EXPECT_TRUE((result.lse == expected.lse).all());
}

// Keys that nobody of the tile sees may hold anything.
TEST(AttentionTile, DoesNotTouchKeysThatNoQuerySees) {
  AttentionTile attention;
  TileResult result;
  KeyValueHead keys = equal_keys(20);
  keys.k.bottomRows(9).setConstant(std::numeric_limits<double>::quiet_NaN());
  keys.abs_k = keys.k;
  keys.v.bottomRows(9).setConstant(std::numeric_limits<double>::quiet_NaN());
  attention.compute(ones(3, 9), keys, result);
  EXPECT_TRUE(result.out.allFinite());
  EXPECT_TRUE(result.lse.allFinite());
  EXPECT_TRUE(result.max_abs_score.allFinite());
}

TEST(AttentionTile, GroupsOfHeadsSeeWhatTheirQuerySees) {
  AttentionTile attention;
  TileResult result;
  QueryTile tile = ones(6, 4);
  tile.group = 3;
  attention.compute(tile, equal_keys(5), result);
  for (const Index row : {0, 1, 2}) EXPECT_DOUBLE_EQ(result.lse[row], std::log(4.0));
  for (const Index row : {3, 4, 5}) EXPECT_DOUBLE_EQ(result.lse[row], std::log(5.0));
}

TEST(AttentionTile, LeavesBoundsOutWhenTheKeysHaveNone) {
  AttentionTile attention;
  TileResult result;
  KeyValueHead keys = equal_keys(3);
  keys.abs_k.resize(0, 0);
  keys.v.conservativeResize(3, 4);
  attention.compute(ones(1, 3), keys, result);
  EXPECT_EQ(result.out.cols(), 4);
  EXPECT_EQ(result.max_abs_score.size(), 0);
}

}  // namespace
}  // namespace cpverify::reference
