#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/pcp_head_tail.hpp"
#include "layout/topology.hpp"
#include "plan/rank_builder.hpp"

/// The attention of strategy pcp_head_tail: of chunks to the new tokens, by halves, and to the
/// sharded cache, by all queries on every rank, whose partials are gathered and merged.
namespace cpverify::plan {

/// Where one rank stands in the split of a step.
struct HeadTailShare {
  layout::HeadTailBatch batch;
  layout::CpRank rank;
  KvShard shard;
  std::uint32_t group = 0;  ///< Index into Plan::groups.
};

/// The rank's rows in half order: decodes, the heads of all prefills, their tails. [local_rows]
struct HeadTailRows {
  CommonBuffers common;
  BufferId q;
  BufferId out;
  BufferId lse;
};

/// K and V of all prefills, padded and in request order, each row a page of one token.
struct RestoredKv {
  BufferRef k;
  BufferRef v;
};

/// Flattened token of each row in half order, -1 for pads.
[[nodiscard]] std::vector<std::int64_t> half_order_tokens(const HeadTailShare& share);

/// Attends every chunk to the earlier chunks of its request and to itself, and merges the two.
void attend_prefills(RankBuilder& builder, const HeadTailShare& share, const HeadTailRows& rows,
                     const RestoredKv& kv);

/// Whether a prefill of the step has tokens in the cache. Equal on all ranks: what it decides has
/// collectives.
[[nodiscard]] bool has_prefill_context(const Step& step);

/// Attends each decode token to all of its keys, whose K and V have been written before.
void attend_decodes(RankBuilder& builder, const HeadTailShare& share, const HeadTailRows& rows,
                    const Step& step);

/// Gathers the queries of all ranks' prefills (`q_local`, in local order), attends them to what
/// their requests had in the cache, and merges what concerns the rank's rows into `rows`.
void merge_cached_context(RankBuilder& builder, const HeadTailShare& share,
                          const HeadTailRows& rows, BufferId q_local, const Step& step);

}  // namespace cpverify::plan
