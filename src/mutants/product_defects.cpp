// Defects of caches that prefill and decode ranks divide together.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "mutants/injection.hpp"
#include "plan/rank_builder.hpp"
#include "plan/shard_reads.hpp"

namespace cpverify::mutants {
namespace {

/// Parameter position in a merge of packed partials; docs/plan.md has the list.
constexpr std::size_t kNumPartials = 3;

/// Place of the rank when the other axis is counted first.
std::uint32_t other_index(const RankPlan& rank, std::uint32_t cp) {
  const std::uint32_t slices = rank.kv_shard.count / cp;
  const std::uint32_t slice = rank.tp_rank % slices;
  const std::uint32_t by_prefill_rank = rank.cp_rank * slices + slice;
  return rank.kv_shard.index == by_prefill_rank ? slice * cp + rank.cp_rank : by_prefill_rank;
}

/// What only the attention of what was in the cache needs.
bool is_of_context(const Operation& operation) {
  constexpr std::array<std::string_view, 12> kLabels{
      "all-gather query rows over tokens",
      "put query rows in the step's order",
      "all-gather query rows over heads",
      "put the heads of a row side by side",
      "zero out_partial",
      "set lse_partial to -inf",
      "attention of the cached shard",
      "pack the partial with its lses",
      "all-to-all packed partials over heads",
      "all-gather packed partials",
      "merge the partials",
      "merge the context into the new tokens' part",
  };
  return std::find(kLabels.begin(), kLabels.end(), operation.label) != kLabels.end();
}

}  // namespace

std::size_t count_shards_by_other_axis(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    if (plan.strategy != StrategyKind::pcp_dcp) return false;
    const Step& step = injection.step_of(plan);
    KvShard believed = rank.kv_shard;
    believed.index = other_index(rank, injection.scenario().topology.cp);
    if (believed.index == rank.kv_shard.index) return false;
    const std::vector<std::int64_t> stored = plan::stored_slots(
        {StrategyKind::pcp_dcp, DcpOwner::position, believed, injection.scenario().block_tokens()},
        step);
    std::copy(stored.begin(), stored.end(), buffer_of(rank, "slot_mapping").values.begin());
    Buffer* context = find_buffer(rank, "kv_lens_context");
    for (std::size_t row = 0; context != nullptr && row < step.rows.size(); ++row) {
      context->values.at(row) = layout::local_length(believed, step.rows[row].computed);
    }
    return true;
  });
}

std::size_t merge_one_prefill_rank(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    if (plan.strategy != StrategyKind::pcp_dcp) return false;
    for (Operation& operation : rank.operations) {
      auto* launch = std::get_if<Launch>(&operation.body);
      if (launch == nullptr || operation.label != "merge the partials") continue;
      const std::uint32_t slices = rank.kv_shard.count / injection.scenario().topology.cp;
      launch->arguments.at(kNumPartials) = static_cast<std::int32_t>(slices);
      return true;
    }
    return false;
  });
}

// The plan of a rank's own rows decides, as in vllm#53573.
std::size_t leave_out_context_of_others(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    if (plan.strategy != StrategyKind::pcp_dcp) return false;
    const Buffer* index = find_buffer(rank, "merge_index");
    if (index == nullptr) return false;
    const bool has_any = std::any_of(index->values.begin(), index->values.end(),
                                     [](std::int64_t row) { return row != plan::kPadRow; });
    if (has_any) return false;
    rank.operations.erase(
        std::remove_if(rank.operations.begin(), rank.operations.end(), is_of_context),
        rank.operations.end());
    return true;
  });
}

}  // namespace cpverify::mutants
