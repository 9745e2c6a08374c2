#include "support/rng.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace cpverify {
namespace {

// First outputs of SplitMix64 from seed 0. Source: the reference generator's published test vector
// (0xe220a8397b1dcdaf is also the first word of Java's SplittableRandom(0)).
TEST(Rng, FollowsSplitMix64) {
  Rng rng{0};
  EXPECT_EQ(rng.next(), 0xe220a8397b1dcdafULL);
  EXPECT_EQ(rng.next(), 0x6e789e6aa1b965f4ULL);
  EXPECT_EQ(rng.next(), 0x06c45d188009454fULL);
}

TEST(Rng, BelowStaysBelowAndReachesEverything) {
  Rng rng{7};
  std::vector<int> seen(5);
  for (int i = 0; i < 1000; ++i) ++seen.at(rng.below(5));
  EXPECT_GT(*std::min_element(seen.begin(), seen.end()), 150);  // 200 expected each.
  EXPECT_EQ(Rng{3}.below(1), 0U);
}

TEST(Rng, ShuffleIsAPermutationAndRepeats) {
  std::vector<int> items(50);
  std::iota(items.begin(), items.end(), 0);
  std::vector<int> again = items;
  const std::vector<int> sorted = items;
  Rng{9}.shuffle(items);
  Rng{9}.shuffle(again);
  EXPECT_EQ(items, again);
  EXPECT_NE(items, sorted);
  EXPECT_TRUE(std::is_permutation(items.begin(), items.end(), sorted.begin()));
  std::vector<int> none;
  Rng{9}.shuffle(none);
  EXPECT_TRUE(none.empty());
}

}  // namespace
}  // namespace cpverify
