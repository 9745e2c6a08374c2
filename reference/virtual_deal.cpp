#include "reference/virtual_deal.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/kv_deal.hpp"

namespace cpverify::reference {

namespace {

std::size_t next_shard(const Problem& problem, std::size_t shard) {
  return shard + 1 == problem.scenario.topology.dcp ? 0 : shard + 1;
}

/// Slots of a request, by walking its blocks.
std::vector<std::int64_t> request_slots(const Problem& problem, const StepRow& row) {
  std::vector<std::int64_t> slots;
  for (const std::int32_t block : row.block_table) {
    const std::int64_t first = block * problem.block_tokens();
    for (std::int64_t i = 0; i < problem.block_tokens(); ++i) slots.push_back(first + i);
  }
  return slots;
}

}  // namespace

std::vector<ShardSlot> deal_virtual_slots(const Problem& problem) {
  std::vector<std::int64_t> held(problem.scenario.topology.dcp, 0);
  std::vector<ShardSlot> result;
  std::size_t shard = 0;
  for (std::int64_t slot = 0; slot < problem.num_blocks * problem.block_tokens(); ++slot) {
    result.push_back({shard, held.at(shard)++});
    shard = next_shard(problem, shard);
  }
  return result;
}

std::vector<std::int64_t> stored_by_shard(const Problem& problem,
                                          const std::vector<ShardSlot>& dealt, const StepRow& row,
                                          std::int64_t length, std::size_t shard) {
  const std::vector<std::int64_t> slots = request_slots(problem, row);
  std::vector<std::int64_t> result;
  std::size_t turn = 0;
  for (std::int64_t position = 0; position < length; ++position) {
    const ShardSlot& place =
        dealt.at(static_cast<std::size_t>(slots.at(static_cast<std::size_t>(position))));
    const bool is_by_position = problem.scenario.dcp.owner == DcpOwner::position;
    if ((is_by_position ? turn : place.shard) == shard) result.push_back(place.slot);
    turn = next_shard(problem, turn);
  }
  return result;
}

}  // namespace cpverify::reference
