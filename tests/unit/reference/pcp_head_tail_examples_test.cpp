// The worked examples of docs/strategies/pcp_head_tail.md, for the oracle.
#include <cstdint>
#include <initializer_list>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;

/// Blocks of 16 tokens of the tables, 16 / P of each rank.
Problem shared_problem(std::initializer_list<RowSpec> rows, std::uint32_t cp) {
  Problem problem = problem_of(rows, cp);
  problem.scenario.topology.kv_sharding = KvSharding::pcp_dcp;
  problem.scenario.cache.block_size = 16 / cp;
  return problem;
}

std::vector<RankIntegers> head_tail(const Problem& problem) {
  return expected_integers(problem, 0, StrategyKind::pcp_head_tail);
}

// Rank 1: queries 2-3 see keys 0-1 and their own two, 4-5 see 0-3 and their own.
TEST(PcpHeadTailOracle, GivesTheKeysOfEightTokens) {
  const std::vector<RankIntegers> ranks = head_tail(shared_problem({{.scheduled = 8}}, 2));
  ASSERT_EQ(ranks.size(), 2U);
  EXPECT_EQ(ranks[1].arrays.at("local_index"), (Integers{2, 3, 4, 5}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_head_nomask"), (Integers{2}));
  EXPECT_EQ(ranks[1].arrays.at("block_table_head_nomask"), (Integers{0, 1}));
  EXPECT_EQ(ranks[1].arrays.at("block_table_head_mask"), (Integers{2, 3}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_tail_nomask"), (Integers{4}));
  EXPECT_EQ(ranks[1].arrays.at("block_table_tail_nomask"), (Integers{0, 1, 2, 3}));
  EXPECT_EQ(ranks[1].arrays.at("block_table_tail_mask"), (Integers{4, 5}));
  EXPECT_EQ(ranks[0].arrays.count("kv_lens_head_nomask"), 0U);
  EXPECT_EQ(ranks[0].arrays.at("block_table_tail_nomask"), (Integers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ranks[0].arrays.count("kv_lens_context"), 0U);
  EXPECT_EQ(ranks[0].arrays.count("kv_lens_decode"), 0U);
  // Block 1 of the tables: rank 0 has even positions in slots 8-11, rank 1 odd ones.
  EXPECT_EQ(ranks[0].arrays.at("kv_slots"), (Integers{8, -1, 9, -1, 10, -1, 11, -1}));
  EXPECT_EQ(ranks[1].arrays.at("kv_slots"), (Integers{-1, 8, -1, 9, -1, 10, -1, 11}));
}

// A decode at position 3, prefills of 5 and 8.
TEST(PcpHeadTailOracle, RestoresADecodeAndTwoPrefills) {
  const std::vector<RankIntegers> ranks =
      head_tail(shared_problem({{.scheduled = 1, .computed = 3, .state = RowState::decode},
                                {.scheduled = 5},
                                {.scheduled = 8}},
                               2));
  EXPECT_EQ(ranks[0].arrays.at("local_index"), (Integers{0, 1, 2, -1, -1, 6, 7, 12, 13}));
  EXPECT_EQ(ranks[1].arrays.at("positions"), (Integers{3, 2, 3, 4, 0, 2, 3, 4, 5}));
  EXPECT_EQ(ranks[1].arrays.at("restore_index"),
            (Integers{0, 9, 1, 2, 10, 11, 12, 13, 3, 4, 5, 6, 14, 15, 16, 17, 7, 8}));
  EXPECT_EQ(ranks[1].arrays.at("unpad_mask"),
            (Integers{1, 0, 1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(ranks[0].arrays.at("unpad_index"),
            (Integers{0, 2, 3, 4, 5, 6, 10, 11, 12, 13, 14, 15, 16, 17}));
  EXPECT_EQ(ranks[0].arrays.at("q_head_tail_index"), (Integers{0, 1, 2, 5, 6, 3, 4, 7, 8}));
  // Of rank 0, rows 5 and 6 in half order are the pads 6 and 7 of the first prefill.
  EXPECT_EQ(ranks[0].arrays.at("merge_index"), (Integers{-1, 1, 2, 3, 4, -1, -1, 7, 8}));
  EXPECT_EQ(ranks[0].arrays.at("cu_seqlens_q_half"), (Integers{0, 2, 4}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_tail_nomask"), (Integers{6, 6}));
  // The decode sees positions 0-3, two on each rank; position 3 is rank 1's, second slot of
  // block 1.
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_decode"), (Integers{2}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_decode"), (Integers{2}));
  EXPECT_EQ(ranks[0].arrays.at("decode_slots"), (Integers{-1}));
  EXPECT_EQ(ranks[1].arrays.at("decode_slots"), (Integers{9}));
}

TEST(PcpHeadTailOracle, RestoresTwoDecodesAndTwoPrefills) {
  const std::vector<RankIntegers> ranks =
      head_tail(shared_problem({{.scheduled = 1, .computed = 9, .state = RowState::decode},
                                {.scheduled = 1, .computed = 20, .state = RowState::decode},
                                {.scheduled = 3},
                                {.scheduled = 10}},
                               2));
  EXPECT_EQ(ranks[0].arrays.at("restore_index"),
            (Integers{0, 10, 1, 11, 2, 12, 13, 3, 4, 5, 6, 14, 15, 16, 17, 18, 19, 7, 8, 9}));
}

// 3 tokens after 5 beside 2 fresh ones: chunks of one, padded to four each. Queries of all ranks in
// request order: rank 0's rows are 0 and 3 of each request, rank 1's 1 and 2.
TEST(PcpHeadTailOracle, MergesContextIntoTheRanksOwnRows) {
  const std::vector<RankIntegers> ranks =
      head_tail(shared_problem({{.scheduled = 3, .computed = 5}, {.scheduled = 2}}, 2));
  EXPECT_EQ(ranks[0].arrays.at("q_restore_index"), (Integers{0, 4, 5, 1, 2, 6, 7, 3}));
  EXPECT_EQ(ranks[0].arrays.at("cu_seqlens_q_context"), (Integers{0, 4, 8}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_context"), (Integers{3, 0}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_context"), (Integers{2, 0}));
  EXPECT_EQ(ranks[0].arrays.at("context_index"), (Integers{0, -1, -1, -1, -1, -1, -1, -1}));
  // Head row 0 is token 1, tail row 2 (behind the other request's head) token 2.
  EXPECT_EQ(ranks[1].arrays.at("context_index"), (Integers{-1, 0, 2, -1, -1, -1, -1, -1}));
}

// Three tokens on four ranks leave rank 3 with pads.
TEST(PcpHeadTailOracle, GivesARankNothingButPads) {
  const std::vector<RankIntegers> ranks = head_tail(shared_problem({{.scheduled = 3}}, 4));
  ASSERT_EQ(ranks.size(), 4U);
  EXPECT_EQ(ranks[3].row_tokens, (Integers{-1, -1}));
  EXPECT_EQ(ranks[3].arrays.at("merge_index"), (Integers{-1, -1}));
  EXPECT_EQ(ranks[3].arrays.at("kv_lens_head_nomask"), (Integers{3}));
}

// Decodes are not whole on any rank, so this is no step of strategy single.
TEST(PcpHeadTailOracle, ShardsAStepOfDecodes) {
  const std::vector<RankIntegers> ranks =
      head_tail(shared_problem({{.scheduled = 1, .computed = 4, .state = RowState::decode}}, 2));
  EXPECT_TRUE(ranks[0].is_cp_on);
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_decode"), (Integers{3}));
  EXPECT_EQ(ranks[1].arrays.at("kv_lens_decode"), (Integers{2}));
  EXPECT_EQ(ranks[0].arrays.count("kv_slots"), 0U);
  EXPECT_EQ(ranks[0].arrays.at("restore_index"), (Integers{0, 1}));
}

// Of two tensor-parallel ranks each, world ranks 0, 1 have shard 0 and ranks 2, 3 have shard 1.
TEST(PcpHeadTailOracle, GivesTensorParallelRanksTheShardOfTheirPrefillRank) {
  Problem problem = shared_problem({{.scheduled = 4}}, 2);
  problem.scenario.topology.tp = 2;
  const RankSlots slots{problem, 0, StrategyKind::pcp_head_tail};
  // Slot 8 of a rank's pool is position 0 or 1.
  EXPECT_EQ(slots.of(RankId{1}).at(8).position, 0);
  EXPECT_EQ(slots.of(RankId{2}).at(8).position, 1);
  EXPECT_EQ(&slots.of(RankId{2}), &slots.of(RankId{3}));
  EXPECT_FALSE(slots.of(RankId{2}).at(10).is_written);
}

}  // namespace
}  // namespace cpverify::reference
