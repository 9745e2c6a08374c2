#include "layout/coverage.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

SplitSpec spec_of(SplitKind kind, std::uint32_t cp) {
  SplitSpec spec;
  spec.kind = kind;
  spec.cp = cp;
  return spec;
}

SplitSpec dcp_spec(std::uint32_t dcp, std::int64_t interleave_size) {
  SplitSpec spec;
  spec.kind = SplitKind::dcp;
  spec.dcp = dcp;
  spec.interleave_size = interleave_size;
  spec.num_heads_q = dcp;
  return spec;
}

std::vector<std::int64_t> lengths(std::uint32_t shards, std::int64_t interleave_size,
                                  std::int64_t length) {
  std::vector<std::int64_t> all;
  all.reserve(shards);
  for (std::uint32_t shard = 0; shard < shards; ++shard) {
    all.push_back(shard_length(length, shard, shards, interleave_size));
  }
  return all;
}

SplitProblems problems_of(const RequestSplit& split, std::uint32_t num_heads = 1) {
  SplitProblems problems;
  check_pairs(split, num_heads, problems);
  return problems;
}

// Blocks of 2 of 8 tokens behind 4, a window of 3: query x sees x - 2 .. x.
TEST(CheckPairs, KnowWindows) {
  SplitSpec spec = spec_of(SplitKind::zigzag, 2);
  spec.window = 3;
  const BatchSplit batch{spec, {{4, 8, false}}};
  EXPECT_THAT(problems_of(batch.request(0)).kept, IsEmpty());

  RequestSplit longer = batch.request(0);
  longer.parts.front().window = 4;
  const SplitProblems found = problems_of(longer);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found.kept.front().fault, SplitFault::hidden_pair);
  EXPECT_THAT(found.kept.front().message,
              HasSubstr("query 4 of request 0 sees, though it must not, keys [1, 2)"));

  RequestSplit shorter = batch.request(0);
  shorter.parts.front().window = 2;
  ASSERT_FALSE(problems_of(shorter).empty());
  EXPECT_EQ(problems_of(shorter).kept.front().fault, SplitFault::missing_pair);

  RequestSplit without = batch.request(0);
  without.parts.front().window = 0;
  EXPECT_FALSE(problems_of(without).empty());
}

TEST(CheckPairs, KnowWindowsOfAMillionTokens) {
  SplitSpec spec = spec_of(SplitKind::interleave, 128);
  spec.window = 4096;
  const BatchSplit batch{spec, {{0, 1'000'000, false}}};
  EXPECT_TRUE(check_batch(batch).empty());
}

TEST(BatchSplit, RefusesWindowsWhereKeysAreCutUp) {
  for (const SplitKind kind : {SplitKind::dcp, SplitKind::ring, SplitKind::pcp_head_tail}) {
    SplitSpec spec = spec_of(kind, 2);
    spec.window = 4;
    EXPECT_THROW((BatchSplit{spec, {{0, 8, false}}}), InputError) << name(kind);
  }
}

TEST(ShardLength, IsThatOfThePublishedTables) {
  // Two shards: lengths 1, 5, 17, 20, 33, 37 with interleave 1, 4 and 16.
  EXPECT_THAT(lengths(2, 1, 5), ElementsAre(3, 2));
  EXPECT_THAT(lengths(2, 4, 5), ElementsAre(4, 1));
  EXPECT_THAT(lengths(2, 16, 17), ElementsAre(16, 1));
  EXPECT_THAT(lengths(2, 4, 20), ElementsAre(12, 8));
  EXPECT_THAT(lengths(2, 16, 33), ElementsAre(17, 16));
  EXPECT_THAT(lengths(2, 16, 37), ElementsAre(21, 16));
  EXPECT_THAT(lengths(4, 1, 37), ElementsAre(10, 9, 9, 9));
  EXPECT_THAT(lengths(4, 16, 37), ElementsAre(16, 16, 5, 0));
  EXPECT_THAT(lengths(4, 16, 70), ElementsAre(22, 16, 16, 16));
  EXPECT_THAT(lengths(4, 1, 3), ElementsAre(1, 1, 1, 0));
}

// SGLang's example a: L = 17 on four ranks: blocks 3,2,2,2,2,2,2,2; rank 0 has 0-2 and 15-16.
TEST(Split, OfZigzagIsThatOfThePublishedExample) {
  const BatchSplit batch{spec_of(SplitKind::zigzag, 4), {{0, 17, false}}};
  EXPECT_THAT(batch.rows_per_rank(), ElementsAre(5, 4, 4, 4));
  const RequestSplit split = batch.request(0);
  ASSERT_THAT(split.parts, SizeIs(8));
  EXPECT_EQ(split.parts[0].queries, interval(0, 3));
  EXPECT_EQ(split.parts[0].keys, interval(0, 3));
  EXPECT_EQ(split.parts[1].queries, interval(15, 17));
  EXPECT_EQ(split.parts[1].keys, interval(0, 17));
  EXPECT_EQ(split.parts[6].queries, interval(7, 9));
  // M = 5 rounded up to a multiple of 8.
  EXPECT_EQ(batch.workspaces().front().capacity_rows, 8);
  EXPECT_TRUE(check_batch(batch).empty());
}

// L = [7, 7, 7], C = 2: 9 and 12 rows, more than ceil(21 / 2) = 11 on the second rank.
TEST(Split, OfZigzagIsNotLargestOnRankZero) {
  const SplitRow seven{0, 7, false};
  const BatchSplit batch{spec_of(SplitKind::zigzag, 2), {seven, seven, seven}};
  EXPECT_THAT(batch.rows_per_rank(), ElementsAre(9, 12));
}

// L = [2, 1, 6], prefix [4, 0, 10], C = 4: rows 3, 2, 2, 2; request 1 is on rank 2 only.
TEST(Split, OfInterleaveIsThatOfThePublishedExample) {
  const BatchSplit batch{spec_of(SplitKind::interleave, 4),
                         {{4, 2, false}, {0, 1, false}, {10, 6, false}}};
  EXPECT_THAT(batch.rows_per_rank(), ElementsAre(3, 2, 2, 2));
  const RequestSplit second = batch.request(1);
  ASSERT_THAT(second.parts, SizeIs(1));
  EXPECT_EQ(second.parts[0].rank, 2U);
  // Rank 0 has flattened tokens 4 and 8, positions 11 and 15 of request 2: key lengths 12 and 16.
  const RequestSplit third = batch.request(2);
  EXPECT_EQ(first(third.parts[0].queries), 11);
  EXPECT_EQ(last(third.parts[0].queries), 15);
  EXPECT_TRUE(check_batch(batch).empty());
}

TEST(Split, OfInterleaveNeedsAsManyTokensAsRanks) {
  const BatchSplit few{spec_of(SplitKind::interleave, 4), {{0, 3, false}}};
  EXPECT_FALSE(few.is_split());
  EXPECT_TRUE(check_batch(few).empty());
  const SplitRow one{0, 1, false};
  EXPECT_TRUE((BatchSplit{spec_of(SplitKind::interleave, 4), {one, one, one, one}}.is_split()));
}

TEST(Split, OfZigzagIsOffForTheWholeBatchWhenOneRequestIsShort) {
  const BatchSplit batch{spec_of(SplitKind::zigzag, 4), {{100, 7, false}, {0, 4096, false}}};
  EXPECT_FALSE(batch.is_split());
  EXPECT_EQ(batch.request(1).num_replicas, 4U);
  EXPECT_TRUE(check_batch(batch).empty());
}

// vLLM's table for B = 16, N = 2, block 7: with I = 4, x = 4 goes to rank 1, slot 112 + 0.
TEST(Split, OfDcpWritesTheSlotsOfThePublishedTable) {
  const BatchSplit batch{dcp_spec(2, 4), {{4, 1, false}}};
  const RequestSplit split = batch.request(0);
  ASSERT_THAT(split.slots, SizeIs(1));
  EXPECT_EQ(split.slots[0].rank, 1U);
  EXPECT_EQ(split.slots[0].first_slot, 16);  // Block 1 is the first that is handed out.
  // x = 36 with I = 4: rank 1, offset 0 of the second block: 16 * 2.
  const BatchSplit later{dcp_spec(2, 4), {{36, 1, false}}};
  EXPECT_EQ(later.request(0).slots.front().rank, 1U);
  EXPECT_EQ(later.request(0).slots.front().first_slot, 32);
}

// Two of four shards are empty: 20 tokens, interleave 16.
TEST(Split, OfDcpMayHaveEmptyShards) {
  const BatchSplit batch{dcp_spec(4, 16), {{20, 1, true}}};
  EXPECT_THAT(batch.request(0).parts, SizeIs(2 + 4));  // Two shards of context, four head slices.
  EXPECT_TRUE(check_batch(batch).empty());
}

// vllm-ascend's example: P = 2, L = 8: rank 1 has queries 2-3 and 4-5.
TEST(Split, OfHeadTailIsThatOfThePublishedExample) {
  const BatchSplit batch{spec_of(SplitKind::pcp_head_tail, 2), {{0, 8, false}}};
  const RequestSplit split = batch.request(0);
  std::vector<std::string> rank1;
  for (const AttentionPart& part : split.parts) {
    if (part.rank == 1) {
      rank1.push_back(text(part.queries) + " sees " + text(part.keys) +
                      (part.diagonal ? " causal" : ""));
    }
  }
  EXPECT_THAT(rank1, ElementsAre("[2, 4) sees [0, 2)", "[2, 4) sees [2, 4) causal",
                                 "[4, 6) sees [0, 4)", "[4, 6) sees [4, 6) causal"));
  EXPECT_TRUE(check_batch(batch).empty());
}

// Tokens [1, 5, 8], the first a decode: every rank computes 1 + 4 + 4 padded rows.
TEST(Split, OfHeadTailPadsEachRequest) {
  const BatchSplit batch{spec_of(SplitKind::pcp_head_tail, 2),
                         {{3, 1, true}, {0, 5, false}, {0, 8, false}}};
  EXPECT_EQ(batch.workspaces().front().capacity_rows, 9);
  // Rank 0's tail of the second request is padding: positions 0, 1 of [0 1 6 7].
  EXPECT_THAT(batch.rows_per_rank(), ElementsAre(1 + 2 + 4, 1 + 3 + 4));
  EXPECT_TRUE(check_batch(batch).empty());
}

// vLLM's virtual batch: L = 9 on two ranks gives 3 and 6 rows, 13 gives 5 and 8; L = 3 on four
// leaves rank 3 without any.
TEST(Split, OfVirtualBatchIsThatOfThePublishedExamples) {
  EXPECT_THAT(
      (BatchSplit{spec_of(SplitKind::pcp_virtual_batch, 2), {{0, 9, false}}}.rows_per_rank()),
      ElementsAre(3, 6));
  EXPECT_THAT(
      (BatchSplit{spec_of(SplitKind::pcp_virtual_batch, 2), {{0, 13, false}}}.rows_per_rank()),
      ElementsAre(5, 8));
  EXPECT_THAT(
      (BatchSplit{spec_of(SplitKind::pcp_virtual_batch, 4), {{0, 3, false}}}.rows_per_rank()),
      ElementsAre(1, 1, 1, 0));
  // [7] on two ranks: rank 0 computes {0, 1} and {6}, rank 1 {2, 3} and {4, 5}.
  const BatchSplit seven{spec_of(SplitKind::pcp_virtual_batch, 2), {{0, 7, false}}};
  EXPECT_THAT(seven.rows_per_rank(), ElementsAre(3, 4));
  EXPECT_EQ(seven.request(0).parts[1].queries, interval(6, 7));
}

TEST(Coverage, IsExactForAMillionTokensOnManyRanks) {
  for (const SplitKind kind : all_split_kinds()) {
    SplitSpec spec = spec_of(kind, 128);
    spec.num_heads_q = 128;
    if (kind == SplitKind::dcp || kind == SplitKind::dcp_virtual) spec.dcp = 128;
    if (kind == SplitKind::ulysses_ring) spec.ulysses = 8;
    const BatchSplit batch{spec, {{1000, 1'000'000, false}}};
    EXPECT_THAT(check_batch(batch).kept, IsEmpty()) << name(kind);
  }
}

TEST(Coverage, NamesRankQueryAndKeysOfAMissingKey) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::zigzag, 2), {{0, 8, false}}}.request(0);
  // Rank 1's early block, queries 2 and 3, begins to read at key 1.
  split.parts[2].keys.begin = 1;
  const SplitProblems problems = problems_of(split);
  ASSERT_THAT(problems.kept, SizeIs(1));
  EXPECT_EQ(problems.kept[0].fault, SplitFault::missing_pair);
  EXPECT_THAT(problems.kept[0].ranks, ElementsAre(1U));
  EXPECT_EQ(problems.kept[0].message,
            "rank 1: query 2 of request 0 misses keys [0, 1) (heads 0 to 0, replica 0)");
}

TEST(Coverage, FindsAKeyLengthThatIsOneTooLong) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::zigzag, 2), {{0, 8, false}}}.request(0);
  // Bottom-right masks move with the key length: query 2 sees key 3.
  AttentionPart& part = split.parts[2];
  ++part.keys.end;
  part.diagonal = bottom_right_diagonal(part.queries, part.keys);
  const SplitProblems problems = problems_of(split);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.kept[0].fault, SplitFault::hidden_pair);
  EXPECT_EQ(problems.kept[0].message,
            "rank 1: query 2 of request 0 sees, though it must not, keys [3, 4) (heads 0 to 0, "
            "replica 0)");
}

TEST(Coverage, NamesBothRanksOfADoubledKey) {
  RequestSplit split = BatchSplit{dcp_spec(2, 1), {{9, 1, false}}}.request(0);
  split.parts[1].keys = interval(1, 9);  // Rank 1 reads rank 0's keys too.
  const SplitProblems problems = problems_of(split, 2);
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems.kept[0].fault, SplitFault::doubled_pair);
  EXPECT_THAT(problems.kept[0].ranks, ElementsAre(0U, 1U));
  EXPECT_THAT(problems.kept[0].message, HasSubstr("keys [1, 9) with x mod 2 = 0"));
}

TEST(Coverage, SaysWhenNobodyAttendsAQuery) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::interleave, 4), {{0, 8, false}}}.request(0);
  split.parts.erase(split.parts.begin() + 2);
  const SplitProblems problems = problems_of(split);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.kept[0].ranks, IsEmpty());
  EXPECT_THAT(problems.kept[0].message, HasSubstr("no rank: query 2 of request 0"));
}

TEST(Coverage, LooksAtEveryReplica) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::zigzag, 2), {{5, 1, true}}}.request(0);
  ASSERT_EQ(split.num_replicas, 2U);
  split.parts.pop_back();
  EXPECT_THAT(problems_of(split).kept.front().message, HasSubstr("replica 1"));
}

// For even queries a mask that is one too long shows no key more: the next one is not of the comb.
TEST(Coverage, FindsAShiftedMaskBehindAComb) {
  RequestSplit split;
  split.row = {0, 8, false};
  split.parts.push_back({0, 0, {0, 1}, interval(0, 8), comb(0, 8, 2, 0), 1});
  split.parts.push_back({1, 0, {0, 1}, interval(0, 8), comb(0, 8, 2, 1), 0});
  const SplitProblems problems = problems_of(split);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.kept[0].message, HasSubstr("query 1 of request 0 sees, though it must not"));
}

TEST(Coverage, RefusesANegativeLength) {
  RequestSplit split = BatchSplit{dcp_spec(2, 1), {{4, 1, true}}}.request(0);
  split.stored[1].length = -1;
  SplitProblems problems;
  check_shares(split, split.stored, interval(0, 5), problems);
  ASSERT_THAT(problems.kept, SizeIs(1));
  EXPECT_EQ(problems.kept[0].fault, SplitFault::local_length);
  EXPECT_THAT(problems.kept[0].message, HasSubstr("rank 1: the local length of request 0 is -1"));
}

TEST(Coverage, FindsASlotWrittenByWhoDoesNotOwnIt) {
  RequestSplit split = BatchSplit{dcp_spec(2, 1), {{0, 2, false}}}.request(0);
  std::swap(split.slots[0].rank, split.slots[1].rank);
  SplitProblems problems;
  check_slot_owners(split, problems);
  ASSERT_THAT(problems.kept, SizeIs(2));
  EXPECT_THAT(problems.kept[0].message, HasSubstr("which it does not own"));
}

TEST(Coverage, FindsACopyThatIsNotWritten) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::zigzag, 2), {{0, 8, false}}}.request(0);
  split.slots.pop_back();
  SplitProblems problems;
  check_slot_owners(split, problems);
  ASSERT_FALSE(problems.empty());
  EXPECT_THAT(problems.kept[0].message,
              HasSubstr("slots written: no rank: tokens [0, 8) of request 0 are held by nobody"));
}

TEST(Coverage, FindsSlotsThatTwoRequestsShare) {
  const BatchSplit batch{spec_of(SplitKind::single, 1), {{0, 20, false}, {0, 5, false}}};
  RequestSplit second = batch.request(1);
  second.slots[0].first_slot -= 16;  // The last block of the first request.
  SplitProblems problems;
  SlotCheck slots{16, 64};
  slots.add(batch.request(0), problems);
  slots.add(second, problems);
  slots.finish(problems);
  ASSERT_THAT(problems.kept, SizeIs(1));
  EXPECT_EQ(problems.kept[0].message, "rank 0: requests 0 and 1 both write slots [32, 36)");
}

TEST(Coverage, FindsSlotsInTheNullBlock) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::single, 1), {{0, 5, false}}}.request(0);
  split.slots[0].first_slot = 0;
  SplitProblems problems;
  SlotCheck{16, 32}.add(split, problems);
  ASSERT_THAT(problems.kept, SizeIs(1));
  EXPECT_THAT(problems.kept[0].message, HasSubstr("outside the pool's [16, 32)"));
}

// ceil(T / C) = 11 rows are too few for [7, 7, 7] on two ranks.
TEST(Coverage, FindsAWorkspaceThatIsTooSmall) {
  SplitProblems problems;
  check_workspaces({{"local rows", 1, RowUnit::query, 12, 11}}, problems);
  ASSERT_THAT(problems.kept, SizeIs(1));
  EXPECT_EQ(problems.kept[0].message, "rank 1: local rows has 11 rows, 12 are needed");
}

TEST(Coverage, CountsProblemsThatItDoesNotKeep) {
  RequestSplit split = BatchSplit{spec_of(SplitKind::zigzag, 20), {{0, 400, false}}}.request(0);
  split.parts.clear();
  for (std::int64_t i = 0; i < 40; ++i) {
    split.parts.push_back(
        {0, 0, {0, 1}, interval(10 * i, 10 * i + 10), interval(1, 10 * i + 10), 0});
  }
  const SplitProblems problems = problems_of(split);
  EXPECT_THAT(problems.kept, SizeIs(SplitProblems::kKeptMax));
  // One for each part's queries; in the first, query 0 sees nothing yet and is apart.
  EXPECT_EQ(problems.total, 41U);
}

TEST(Split, RefusesSizesThatDoNotGoTogether) {
  EXPECT_THROW((BatchSplit{spec_of(SplitKind::zigzag, 0), {}}), InputError);
  EXPECT_THROW((BatchSplit{spec_of(SplitKind::ulysses, 3), {}}), InputError);
  EXPECT_THROW((BatchSplit{spec_of(SplitKind::zigzag, 2), {{-1, 5, false}}}), InputError);
  EXPECT_THROW((BatchSplit{spec_of(SplitKind::zigzag, 2), {{0, 1'000'000'000, false}}}),
               InputError);
  EXPECT_THROW((BatchSplit{spec_of(SplitKind::ring, 513), {}}), InputError);
  EXPECT_THROW((BatchSplit{spec_of(SplitKind::zigzag, 4096), std::vector<SplitRow>(2442)}),
               InputError);
  EXPECT_TRUE(check_batch(BatchSplit{spec_of(SplitKind::zigzag, 2), {}}).empty());
}

}  // namespace
}  // namespace cpverify::layout
