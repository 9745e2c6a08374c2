// Shards of prefill and decode ranks together, worked by hand, for the oracle.
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/pcp_dcp_integers.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

using Integers = std::vector<std::int64_t>;
using Shards = std::vector<std::size_t>;

// World ranks are cp_rank * tp + tp_rank.
TEST(ProductShards, AreCountedByOneGroupOrTheOtherFirst) {
  EXPECT_EQ(product_shards({2, 2, 2, KvSharding::pcp_dcp}), (Shards{0, 1, 2, 3}));
  EXPECT_EQ(product_shards({2, 2, 4, KvSharding::dcp_over_pcp}), (Shards{0, 2, 1, 3}));
  EXPECT_EQ(product_shards({2, 2, 2, KvSharding::dcp_over_pcp}), (Shards{0, 0, 1, 1}));
  EXPECT_EQ(product_shards({2, 2, 1, KvSharding::pcp_dcp}), (Shards{0, 0, 1, 1}));
  EXPECT_EQ(product_shards({2, 4, 2, KvSharding::pcp_dcp}), (Shards{0, 1, 0, 1, 2, 3, 2, 3}));
}

/// Of vLLM's table: 37 and 70 tokens before one new one, on two prefill ranks by two.
std::vector<Integers> context_lengths(std::uint32_t interleave) {
  Problem problem =
      problem_of({{.scheduled = 1, .computed = 37}, {.scheduled = 1, .computed = 70}}, 2);
  problem.scenario.topology = {2, 2, 2, KvSharding::pcp_dcp, interleave};
  problem.scenario.cache.block_size = 16;
  std::vector<Integers> lengths;
  for (const RankIntegers& rank : expected_integers(problem, 0, StrategyKind::pcp_dcp)) {
    lengths.push_back(rank.arrays.at("kv_lens_context"));
  }
  return lengths;
}

TEST(ProductOracle, HasTheLengthsOfVllm) {
  EXPECT_EQ(context_lengths(1), (std::vector<Integers>{{10, 18}, {9, 18}, {9, 17}, {9, 17}}));
  EXPECT_EQ(context_lengths(16), (std::vector<Integers>{{16, 22}, {16, 16}, {5, 16}, {0, 16}}));
}

// Seven tokens after two on two prefill ranks: chunks of 2, rank 0 has {0, 1} and {6}, the latter
// also after the six before it; all have context, and no row starts a request.
TEST(ProductOracle, ShowsRowsTheNewTokensBeforeThem) {
  Problem problem = problem_of({{.scheduled = 7, .computed = 2}}, 2);
  problem.scenario.topology = {2, 1, 1, KvSharding::pcp_dcp};
  const auto ranks = expected_integers(problem, 0, StrategyKind::pcp_dcp);
  EXPECT_EQ(ranks[0].arrays.at("local_index"), (Integers{0, 1, 6, -1}));
  EXPECT_EQ(ranks[0].arrays.at("kv_lens_new"), (Integers{2, 7}));
  EXPECT_EQ(ranks[0].arrays.at("block_table_new"),
            (Integers{0, 1, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(ranks[0].arrays.at("merge_index"), (Integers{0, 1, -1, -1, -1, -1, 2}));
  EXPECT_EQ(ranks[1].arrays.at("merge_index"), (Integers{-1, -1, 0, 1, 2, 3, -1}));
}

}  // namespace
}  // namespace cpverify::reference
