#pragma once

#include <cstdint>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "plan/rank_builder.hpp"

/// Exchange over the heads of a group whose ranks hold parts of the same keys. Source: vLLM's and
/// SGLang's decode context parallelism; docs/strategies/dcp.md.
namespace cpverify::plan {

/// A rank's place in the group whose heads it gathers.
struct HeadGroup {
  std::uint32_t group = 0;  ///< Index into Plan::groups.
  std::uint32_t size = 1;
  std::uint32_t own = 0;
  std::uint32_t step = 0;
};

/// What a rank knows of the heads of all ranks of its group: rank 0's heads first.
struct GroupPartial {
  BufferId out;  ///< [R, size * H, D]
  BufferId lse;  ///< f32 [R, size * H]
};

/// Of the rank's own heads.
struct OwnHeads {
  BufferId out;  ///< [R, H, D]; f32 after ag_rs_f32.
  BufferId lse;  ///< f32 [R, H]
};

/// Gathers the query rows of all heads of the group: [R, size * H, D].
[[nodiscard]] BufferId gather_query_heads(RankBuilder& builder, BufferId q, const HeadGroup& group);

/// Workspaces of a partial result in which nothing has been attended to: 0, and LSEs of -inf.
[[nodiscard]] GroupPartial add_partial(RankBuilder& builder, const HeadGroup& group);

/// Merges the partials of all ranks; every rank gets its own heads.
void combine_partials(RankBuilder& builder, DcpCombine combine, const GroupPartial& partial,
                      const OwnHeads& own, const HeadGroup& group);

/// The ranks that have the same heads and other parts of the keys.
struct PrefillGroup {
  std::uint32_t group = 0;  ///< Index into Plan::groups.
  std::uint32_t size = 1;
};

/// Merges the partials of the ranks of both groups: an all-to-all over the heads of one, an
/// all-gather over the other.
void combine_over_prefill(RankBuilder& builder, const GroupPartial& partial, const OwnHeads& own,
                          const HeadGroup& group, const PrefillGroup& prefill);

/// Of one merge of `group.size` partials, as combine_partials() does it.
[[nodiscard]] MergeNumerics combine_numerics(DcpCombine combine, DType dtype,
                                             std::uint32_t partials);

}  // namespace cpverify::plan
