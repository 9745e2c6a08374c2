#include "layout/split_svg.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string drawing(SplitKind kind, std::vector<SplitRow> rows, const std::string& name = "a") {
  SplitSpec spec;
  spec.kind = kind;
  spec.cp = 2;
  spec.dcp = kind == SplitKind::dcp ? 2 : 1;
  spec.num_heads_q = 2;
  std::vector<std::string> names(rows.size(), name);
  return splits_svg({{"title", BatchSplit{spec, std::move(rows)}, std::move(names)}});
}

std::size_t occurrences(const std::string& text, std::string_view word) {
  std::size_t found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++found;
  }
  return found;
}

// Zigzag on two ranks: four blocks, each one strip and one area.
TEST(SplitSvg, DrawsEveryBlockOnce) {
  const std::string svg = drawing(SplitKind::zigzag, {{0, 8, false}});
  EXPECT_EQ(occurrences(svg, "<polygon"), 4U);
  // Background, two ranks of the legend, four blocks, the keys of copy 0.
  EXPECT_EQ(occurrences(svg, "<rect"), 1U + 2U + 4U + 1U);
  EXPECT_THAT(svg, HasSubstr("8 new tokens after 0; 2 copies of the keys"));
}

// 640 pixels for 8 tokens: the first block of two queries is a stair of 80 and 160 pixels. It
// begins at 4 + 3 lines * 18 + 2 strips * 16 = 90.
TEST(SplitSvg, DrawsTheDiagonalAsStairs) {
  EXPECT_THAT(drawing(SplitKind::zigzag, {{0, 8, false}}),
              HasSubstr("<polygon points=\"96.00,90.00 176.00,90.00 176.00,170.00 "
                        "256.00,170.00 256.00,250.00 96.00,250.00\""));
}

TEST(SplitSvg, DrawsTheCombsOfInterleave) {
  EXPECT_EQ(occurrences(drawing(SplitKind::interleave, {{0, 6, false}}), "<polygon"), 6U);
}

TEST(SplitSvg, SaysWhatIsTooFineToDraw) {
  EXPECT_THAT(drawing(SplitKind::dcp, {{1000, 2, false}}), HasSubstr("are not drawn"));
  EXPECT_THAT(drawing(SplitKind::dcp, {{200, 2, false}}), Not(HasSubstr("are not drawn")));
}

TEST(SplitSvg, DrawsAMillionTokensInFewShapes) {
  EXPECT_LT(drawing(SplitKind::zigzag, {{1000, 1'000'000, false}}).size(), 4000U);
}

TEST(SplitSvg, EscapesNames) {
  const std::string svg = drawing(SplitKind::zigzag, {{0, 8, false}}, "<b>\"x\"&\n");
  EXPECT_THAT(svg, HasSubstr("request &lt;b&gt;&quot;x&quot;&amp;?:"));
  EXPECT_THAT(svg, Not(HasSubstr("<b>")));
}

TEST(SplitSvg, SaysHowManyRequestsItLeavesOut) {
  EXPECT_THAT(drawing(SplitKind::zigzag, std::vector<SplitRow>(11, {0, 4, false})),
              HasSubstr("3 requests more are not drawn"));
}

TEST(SplitSvg, TakesRequestsWithoutTokens) {
  EXPECT_EQ(occurrences(drawing(SplitKind::zigzag, {{0, 0, false}}), "<polygon"), 0U);
}

}  // namespace
}  // namespace cpverify::layout
