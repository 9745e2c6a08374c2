#include "layout/row_split.hpp"

#include <cstdint>
#include <initializer_list>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/step.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Lengths {
  std::int64_t computed = 0;
  std::int64_t scheduled = 0;
  RowState state = RowState::prefill;
};

Step step_of(std::initializer_list<Lengths> rows) {
  Step step;
  for (const Lengths& lengths : rows) {
    StepRow& row = step.rows.emplace_back();
    row.computed = lengths.computed;
    row.scheduled = lengths.scheduled;
    row.state = lengths.state;
  }
  return step;
}

std::vector<std::int64_t> flats(const std::vector<StepToken>& tokens) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(tokens.size());
  for (const StepToken& token : tokens) numbers.push_back(token.flat);
  return numbers;
}

std::vector<std::int64_t> positions(const std::vector<StepToken>& tokens) {
  std::vector<std::int64_t> numbers;
  numbers.reserve(tokens.size());
  for (const StepToken& token : tokens) numbers.push_back(token.position);
  return numbers;
}

// Lengths 5 and 3 after prefixes of 0 and 7 on four ranks: token 5 is the first of the second
// request, at position 7, and belongs to rank 1. With 4 physical rows per rank token i is gathered
// row (i mod 4) * 4 + i div 4.
TEST(RowSplit, InterleavesAcrossRequests) {
  const RowSplit split = split_interleaved(step_of({{0, 5}, {7, 3}}), 4);
  EXPECT_THAT(flats(split[0]), ElementsAre(0, 4));
  EXPECT_THAT(positions(split[0]), ElementsAre(0, 4));
  EXPECT_THAT(flats(split[1]), ElementsAre(1, 5));
  EXPECT_THAT(positions(split[1]), ElementsAre(1, 7));
  EXPECT_THAT(positions(split[3]), ElementsAre(3, 9));
  EXPECT_EQ(split[3][1].row, 1U);
  EXPECT_EQ(max_rows(split), 2);
  EXPECT_THAT(gathered_rows(split, 8, 4), ElementsAre(0, 4, 8, 12, 1, 5, 9, 13));
}

// 17 tokens on four ranks: rows 5, 4, 4, 4, eight physical rows.
TEST(RowSplit, InterleavesSeventeenTokens) {
  const RowSplit split = split_interleaved(step_of({{0, 17}}), 4);
  EXPECT_EQ(split[0].size(), 5U);
  EXPECT_EQ(split[3].size(), 4U);
  EXPECT_THAT(gathered_rows(split, 17, 8),
              ElementsAre(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27, 4));
}

// 10 tokens: pieces of 3, 3, 2, 2. A request of 2 behind it: 1, 1, 0, 0.
TEST(RowSplit, CutsEveryRequestIntoPieces) {
  const RowSplit split = split_contiguously(step_of({{0, 10}, {6, 2}}), 4);
  EXPECT_THAT(flats(split[0]), ElementsAre(0, 1, 2, 10));
  EXPECT_THAT(flats(split[1]), ElementsAre(3, 4, 5, 11));
  EXPECT_THAT(positions(split[1]), ElementsAre(3, 4, 5, 7));
  EXPECT_THAT(flats(split[2]), ElementsAre(6, 7));
  EXPECT_THAT(flats(split[3]), ElementsAre(8, 9));
  EXPECT_EQ(max_rows(split), 4);
  EXPECT_THAT(gathered_rows(split, 12, 4), ElementsAre(0, 1, 2, 4, 5, 6, 8, 9, 12, 13, 3, 7));
}

TEST(RowSplit, LeavesRanksWithoutTokens) {
  const RowSplit split = split_contiguously(step_of({{3, 1}}), 3);
  EXPECT_THAT(flats(split[0]), ElementsAre(0));
  EXPECT_THAT(flats(split[1]), IsEmpty());
  EXPECT_THAT(flats(split[2]), IsEmpty());
}

TEST(RowSplit, AppliesToBatchesOfATokenPerRank) {
  EXPECT_FALSE(is_interleave_applicable(step_of({{0, 3}}), 4));
  EXPECT_TRUE(is_interleave_applicable(step_of({{0, 1}, {0, 1}, {0, 1}, {0, 1}}), 4));
  EXPECT_FALSE(is_interleave_applicable(step_of({{0, 9}}), 1));
  const Step mixed = step_of({{9, 1, RowState::decode}, {0, 9}});
  EXPECT_TRUE(is_interleave_applicable(mixed, 4));
  EXPECT_FALSE(is_contiguous_applicable(mixed, 4));
  EXPECT_TRUE(is_contiguous_applicable(step_of({{9, 1}, {0, 9}}), 4));
}

}  // namespace
}  // namespace cpverify::layout
