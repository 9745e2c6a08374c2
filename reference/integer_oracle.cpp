#include "reference/integer_oracle.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/dcp_integers.hpp"
#include "reference/kv_deal.hpp"
#include "reference/pcp_dcp_integers.hpp"
#include "reference/pcp_deal.hpp"
#include "reference/pcp_head_tail_integers.hpp"
#include "reference/pcp_virtual_batch_integers.hpp"
#include "reference/ring_integers.hpp"
#include "reference/row_integers.hpp"
#include "reference/step_integers.hpp"
#include "reference/ulysses_integers.hpp"
#include "reference/virtual_deal.hpp"
#include "reference/zigzag_integers.hpp"

namespace cpverify::reference {

namespace {

/// Every rank computes the whole step.
std::vector<RankIntegers> whole_step_integers(const Problem& problem, const Step& step,
                                              std::uint32_t cp) {
  const StepSizes sizes = step_sizes(problem, step);
  const RankIntegers integers = single_integers(step, sizes);
  std::vector<RankIntegers> result;
  for (std::uint32_t cp_rank = 0; cp_rank < cp; ++cp_rank) {
    for (std::uint32_t tp_rank = 0; tp_rank < problem.scenario.topology.tp; ++tp_rank) {
      result.push_back(integers);
      add_tensor_shapes(result.back(), problem, sizes, rank_heads(problem.scenario, tp_rank));
    }
  }
  return result;
}

/// The part of the cache that every world rank has; empty when all have all of it.
std::vector<std::size_t> shards_of_ranks(const TopologySpec& topology, StrategyKind strategy) {
  if (strategy == StrategyKind::pcp_dcp) return product_shards(topology);
  if (strategy == StrategyKind::pcp_head_tail && topology.cp > 1) return product_shards(topology);
  std::vector<std::size_t> shards;
  const bool is_decode_group =
      strategy == StrategyKind::dcp || strategy == StrategyKind::dcp_virtual;
  if (!is_decode_group || topology.dcp == 1) return shards;
  for (std::size_t rank = 0; rank < topology.tp; ++rank) shards.push_back(rank % topology.dcp);
  return shards;
}

}  // namespace

std::vector<RankIntegers> expected_integers(const Problem& problem, std::uint32_t step_index,
                                            StrategyKind strategy) {
  const Step& step = problem.steps.at(step_index);
  const std::uint32_t cp = problem.scenario.topology.cp;
  switch (strategy) {
    case StrategyKind::zigzag:
    case StrategyKind::zigzag_combined:
      if (!is_zigzag_on(problem, step)) return whole_step_integers(problem, step, cp);
      return zigzag_integers(problem, step, strategy == StrategyKind::zigzag_combined);
    case StrategyKind::interleave:
      if (!is_interleave_on(problem, step)) return whole_step_integers(problem, step, cp);
      return interleave_integers(problem, step);
    case StrategyKind::contiguous:
      if (!is_contiguous_on(problem, step)) return whole_step_integers(problem, step, cp);
      return contiguous_integers(problem, step);
    case StrategyKind::ring:
    case StrategyKind::ring_contiguous:
      if (is_ring_on(problem, step)) return ring_integers(problem, step, strategy);
      return whole_step_integers(problem, step, cp);
    case StrategyKind::ulysses:
      if (cp > 1) return ulysses_integers(problem, step);
      break;
    case StrategyKind::dcp:
    case StrategyKind::dcp_virtual:
      if (problem.scenario.topology.dcp > 1) return dcp_integers(problem, step, strategy);
      break;
    case StrategyKind::pcp_dcp:
      return pcp_dcp_integers(problem, step);
    case StrategyKind::pcp_head_tail:
      if (cp > 1) return pcp_head_tail_integers(problem, step);
      break;
    case StrategyKind::pcp_virtual_batch:
      if (is_pcp_on(problem, step)) return pcp_virtual_batch_integers(problem, step);
      return whole_step_integers(problem, step, problem.scenario.topology.cp);
    case StrategyKind::single:
    case StrategyKind::launch:
      break;
  }
  return whole_step_integers(problem, step, 1);
}

std::int64_t visible_keys(const StepRow& row, std::int64_t new_token_index) {
  return row.computed + new_token_index + 1;
}

std::vector<SlotOwner> expected_slots(const Problem& problem, std::uint32_t step) {
  std::vector<SlotOwner> result(
      static_cast<std::size_t>(problem.num_blocks * problem.block_tokens()));
  for (const CachedToken& token : problem.cached) {
    result.at(static_cast<std::size_t>(token.slot)) = {
        .is_written = true, .request = token.request, .position = token.position};
  }
  for (std::uint32_t index = 0; index <= step; ++index) {
    for (const StepRow& row : problem.steps.at(index).rows) {
      std::int64_t position = row.computed;
      for (const std::int64_t slot : row.slots) {
        result.at(static_cast<std::size_t>(slot)) = {
            .is_written = true, .request = row.request, .position = position++};
      }
    }
  }
  return result;
}

RankSlots::RankSlots(const Problem& problem, std::uint32_t step, StrategyKind strategy) {
  const std::vector<SlotOwner> all = expected_slots(problem, step);
  shards_ = shards_of_ranks(problem.scenario.topology, strategy);
  if (shards_.empty()) {
    by_shard_.push_back(all);
    return;
  }
  const std::size_t count = problem.scenario.topology.kv_shards();
  const std::vector<ShardSlot> dealt =
      strategy == StrategyKind::dcp_virtual ? deal_virtual_slots(problem) : deal_slots(problem);
  const std::size_t own_slots = all.size() / count;
  by_shard_.resize(count, std::vector<SlotOwner>(own_slots));
  for (std::size_t slot = 0; slot < all.size(); ++slot) {
    by_shard_.at(dealt[slot].shard).at(static_cast<std::size_t>(dealt[slot].slot)) = all[slot];
  }
}

const std::vector<SlotOwner>& RankSlots::of(RankId rank) const {
  return shards_.empty() ? by_shard_.front() : by_shard_.at(shards_.at(rank.value()));
}

}  // namespace cpverify::reference
