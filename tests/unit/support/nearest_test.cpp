#include "support/nearest.hpp"

#include <gtest/gtest.h>

namespace cpverify {
namespace {

TEST(EditDistance, CountsEachKindOfSlipOnce) {
  EXPECT_EQ(edit_distance("block_size", "block_size"), 0U);
  EXPECT_EQ(edit_distance("blok_size", "block_size"), 1U);    // One letter missing.
  EXPECT_EQ(edit_distance("blockk_size", "block_size"), 1U);  // One too many.
  EXPECT_EQ(edit_distance("block-size", "block_size"), 1U);   // One wrong.
  EXPECT_EQ(edit_distance("blcok_size", "block_size"), 1U);   // Neighbours swapped.
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("abc", ""), 3U);
}

TEST(Nearest, SuggestsOnlyWhatIsLikely) {
  EXPECT_EQ(nearest("num_head_q", {"num_heads_kv", "num_heads_q"}), "num_heads_q");
  EXPECT_EQ(nearest("zzz", {"num_heads_q", "cp"}), "");
  EXPECT_EQ(nearest("xp", {"cp"}), "cp");
  EXPECT_EQ(nearest("x", {"cp"}), "");  // Two of two letters differ.
}

TEST(Nearest, CompletesAWordThatWasBroken) {
  EXPECT_EQ(nearest("zig", {"single", "zigzag"}), "zigzag");
  EXPECT_EQ(nearest("z", {"single", "zigzag"}), "");  // One letter says too little.
}

TEST(Nearest, PrefersTheFirstOnATie) {
  EXPECT_EQ(nearest("aax", {"aay", "aaz"}), "aay");
}

TEST(DidYouMean, IsEmptyWithoutAGuess) {
  EXPECT_EQ(did_you_mean("stratgies", {"strategies"}), "; did you mean 'strategies'?");
  EXPECT_EQ(did_you_mean("qqqq", {"strategies"}), "");
}

}  // namespace
}  // namespace cpverify
