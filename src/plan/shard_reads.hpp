#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

/// What a rank reads of its part of the cache. Source: docs/strategies/dcp.md, dcp_virtual.md.
namespace cpverify::plan {

/// The first `length` tokens of a row's request, of which a call reads the rank's. Not owned.
struct ShardSequence {
  const StepRow* row = nullptr;
  std::int64_t length = 0;
};

/// Who holds what, and how the strategy tells.
struct ShardScheme {
  StrategyKind strategy = StrategyKind::dcp;
  DcpOwner owner = DcpOwner::position;  ///< Of dcp_virtual.
  KvShard shard;
  std::int64_t block_tokens = 1;  ///< Of a block of the tables.
};

/// Slots in the rank's own pool of the step's tokens, kPadRow where another rank stores them. [T]
[[nodiscard]] std::vector<std::int64_t> stored_slots(const ShardScheme& scheme, const Step& step);

/// Sets what tells the call where the rank's keys of each sequence are: their number, in a metadata
/// buffer `lengths_name`; the rank's pages or slots, where the tables of the cache are not theirs.
/// Sequences are the step's rows, or one for each query with `is_per_query`.
struct ShardReads {
  std::string_view lengths_name;
  std::vector<ShardSequence> sequences;
  bool is_per_query = false;
};
void set_shard_reads(RankBuilder& builder, const ShardScheme& scheme, const ShardReads& reads,
                     AttentionCall& call);

}  // namespace cpverify::plan
