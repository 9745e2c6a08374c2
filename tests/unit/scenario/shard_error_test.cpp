#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/scenario/scenario_text.hpp"

// Groups, heads and slots that a strategy cannot divide as it is asked to.
namespace cpverify {
namespace {

using test::error_of;

using testing::HasSubstr;

// 4 ranks on 2 KV heads: two copies of each head, so that a decode group has 1 or 2 ranks.
TEST(ShardErrors, CheckDecodeGroups) {
  const auto of = [](const std::string& topology, const std::string& rest = "") {
    return error_of(
        "model: {num_heads_q: 8, num_heads_kv: 2, head_dim: 64, dtype: bf16}\n"
        "topology: " +
        topology +
        "\ncache: {block_size: 16}\n"
        "requests: [{id: a, prompt: 1}]\n" +
        rest);
  };
  EXPECT_THAT(of("{cp: 1, tp: 4, dcp: 3}"), HasSubstr("'dcp' is 3, which does not divide tp 4"));
  EXPECT_THAT(of("{cp: 1, tp: 4, dcp: 4}"),
              HasSubstr("'dcp' is 4, and 2 of the 4 tensor-parallel ranks hold a copy"));
  EXPECT_THAT(of("{cp: 1, tp: 4, dcp: 2, kv_interleave: 6}"),
              HasSubstr("'block_size' is 16, which is no multiple of kv_interleave 6"));
  EXPECT_THAT(of("{cp: 2, tp: 4, dcp: 2, kv_sharding: pcp_dcp}", "strategies: [dcp]\n"),
              HasSubstr("kv_sharding pcp_dcp divides the cache among 2"));
  EXPECT_THAT(of("{cp: 2, tp: 4}", "strategies: [pcp_head_tail]\n"),
              HasSubstr("divides the cache among 2 context-parallel ranks, and kv_sharding dcp"));
  EXPECT_THAT(of("{cp: 2, tp: 4, dcp: 2, kv_sharding: pcp_dcp}", "strategies: [pcp_head_tail]\n"),
              HasSubstr("pcp_head_tail, which has no decode groups here, and dcp is 2"));
  EXPECT_THAT(of("{cp: 1, tp: 4, dcp: 2}", "dcp: {visibility: cached, combine: ag_rs_f32}\n"),
              HasSubstr("'combine' is ag_rs_f32"));
}

// Two ranks share a cache of virtual slots.
TEST(ShardErrors, CheckVirtualSlots) {
  const auto of = [](const std::string& topology, const std::string& cache,
                     const std::string& rest) {
    return error_of(
        "model: {num_heads_q: 8, num_heads_kv: 1, head_dim: 64, dtype: bf16}\n"
        "topology: " +
        topology + "\ncache: " + cache + "\nrequests: [{id: a, prompt: 1}]\n" + rest);
  };
  const std::string both = "strategies: [single, dcp_virtual]\n";
  EXPECT_THAT(of("{cp: 1, tp: 2, dcp: 2, kv_interleave: 2}", "{block_size: 16}", both),
              HasSubstr("deals tokens out one by one, and kv_interleave is 2"));
  EXPECT_THAT(of("{cp: 1, tp: 2, dcp: 2}", "{block_size: 16, unit: slot}", both),
              HasSubstr("dcp_virtual, which divides blocks among 2 ranks, and unit slot"));
  EXPECT_THAT(
      of("{cp: 1, tp: 2, dcp: 2}", "{block_size: 16, unit: slot}", "strategies: [single, dcp]\n"),
      HasSubstr("dcp, which divides blocks among 2 ranks, and unit slot"));
  EXPECT_THAT(of("{cp: 2, tp: 2, dcp: 2, kv_sharding: pcp_dcp}", "{block_size: 16}", both),
              HasSubstr("kv_sharding pcp_dcp divides the cache among 2"));
  EXPECT_THAT(of("{cp: 1, tp: 2, dcp: 2}", "{block_size: 16, unit: slot, num_blocks: 9}", ""),
              HasSubstr("'num_blocks' is 9 slots for 2 shards of the cache"));
  EXPECT_THAT(of("{cp: 1}", "{block_size: 16, unit: slots}", ""), HasSubstr("did you mean 'slot'"));
  EXPECT_THAT(of("{cp: 1}", "{block_size: 16, reuse: all}", ""), HasSubstr("never, finished"));
  EXPECT_THAT(of("{cp: 1}", "{block_size: 16}", "dcp: {owner: page}\n"),
              HasSubstr("position, slot"));
}

// Four ranks, prefill by two and tensor parallel by two.
TEST(ShardErrors, CheckShardsOfPrefillAndDecodeRanks) {
  const auto of = [](const std::string& topology, int heads_kv = 1,
                     const std::string& rest = "dcp: {combine: a2a}\n") {
    return error_of("model: {num_heads_q: 8, num_heads_kv: " + std::to_string(heads_kv) +
                    ", head_dim: 64, dtype: bf16}\ntopology: " + topology +
                    "\ncache: {block_size: 16}\nrequests: [{id: a, prompt: 1}]\n"
                    "strategies: [single, pcp_dcp]\n" +
                    rest);
  };
  EXPECT_THAT(of("{cp: 1, tp: 2, dcp: 2, kv_sharding: pcp_dcp}"),
              HasSubstr("pcp_dcp, which splits prefills over cp ranks, and there is one"));
  EXPECT_THAT(of("{cp: 2, tp: 2, dcp: 2}"), HasSubstr("expected kv_sharding pcp_dcp or"));
  EXPECT_THAT(of("{cp: 2, tp: 2, dcp: 2, kv_sharding: pcp_dcp}", 1, ""),
              HasSubstr("and dcp is split, ag_rs; expected visibility split, combine a2a"));
  EXPECT_THAT(of("{cp: 2, tp: 2, dcp: 3, kv_sharding: dcp_over_pcp}"),
              HasSubstr("'dcp' is 3 with kv_sharding dcp_over_pcp; expected cp 2, or all 4 ranks"));
  EXPECT_THAT(of("{cp: 2, tp: 2, kv_sharding: dcp_over_pcp}"),
              HasSubstr("'dcp' is 1 with kv_sharding dcp_over_pcp"));
  EXPECT_THAT(of("{cp: 2, tp: 2, dcp: 4, kv_sharding: dcp_over_pcp}", 2),
              HasSubstr("which must share one KV head; there are 2; expected dcp 2"));
  EXPECT_THAT(error_of("model: {num_heads_q: 8, num_heads_kv: 1, head_dim: 64, dtype: bf16}\n"
                       "topology: {cp: 2, tp: 2, dcp: 2, kv_sharding: dcp_over_pcp}\n"
                       "cache: {block_size: 16}\nrequests: [{id: a, prompt: 1}]\n"
                       "strategies: [single, dcp]\n"),
              HasSubstr("dcp, which has decode groups of tensor-parallel ranks"));
}

TEST(ShardErrors, CheckTheHeadsOfUlysses) {
  const auto of = [](int heads_q, int heads_kv, const std::string& topology) {
    return error_of("model: {num_heads_q: " + std::to_string(heads_q) +
                    ", num_heads_kv: " + std::to_string(heads_kv) +
                    ", head_dim: 64, dtype: bf16}\ntopology: " + topology +
                    "\nstrategies: [single, ulysses]\ncache: {block_size: 16}\n"
                    "requests: [{id: a, prompt: 1}]\n");
  };
  // 8 / tp 2 = 4 query heads on 3 ranks; 6 KV heads on 4 ranks.
  EXPECT_THAT(of(8, 2, "{cp: 3, tp: 2}"),
              HasSubstr("ulysses, which deals 4 query heads of a rank out to 3 context-parallel"));
  EXPECT_THAT(of(12, 6, "{cp: 4}"),
              HasSubstr("ulysses, which deals 6 KV heads of a rank out to 4 context-parallel"));
}

}  // namespace
}  // namespace cpverify
