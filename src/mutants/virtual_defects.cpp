// Defects of caches that are divided by virtual slots.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/injection.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::mutants {
namespace {

bool is_virtual(const Plan& plan, const RankPlan& rank) {
  return plan.strategy == StrategyKind::dcp_virtual && rank.kv_shard.count > 1;
}

/// A new token of the step, in the terms of the allocator.
struct VirtualToken {
  std::int64_t position = 0;
  std::int64_t slot = 0;
};

/// Writes store(rank, token) to the rank's slots of all tokens of the step.
template <class Store>
std::size_t store_by(const Injection& injection, const Store& store) {
  return injection.for_each_rank([&](const Plan& plan, RankPlan& rank) {
    if (!is_virtual(plan, rank)) return false;
    const std::vector<std::int64_t> slots = plan::step_slots(injection.step_of(plan));
    const std::vector<std::int64_t> positions = plan::step_positions(injection.step_of(plan));
    std::vector<std::int64_t>& stored = buffer_of(rank, "slot_mapping").values;
    bool has_changed = false;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const std::int64_t before =
          std::exchange(stored.at(i), store(rank, {positions[i], slots[i]}));
      has_changed = has_changed || before != stored[i];
    }
    return has_changed;
  });
}

bool is_own(const RankPlan& rank, std::int64_t number) {
  return number % rank.kv_shard.count == rank.kv_shard.index;
}

/// Lengths of what a rank reads of the cache, or null.
Buffer* find_lengths(RankPlan& rank) {
  Buffer* context = find_buffer(rank, "kv_lens_context");
  return context != nullptr ? context : find_buffer(rank, "kv_lens_local");
}

/// Tokens of each sequence of which the rank's are read: of every row's request those in the cache
/// before the step, or for every query those that it sees.
std::vector<std::int64_t> whole_lengths(const Step& step, bool is_per_query) {
  std::vector<std::int64_t> lengths;
  for (const StepRow& row : step.rows) {
    if (!is_per_query) lengths.push_back(row.computed);
    for (std::int64_t i = 1; is_per_query && i <= row.scheduled; ++i) {
      lengths.push_back(row.computed + i);
    }
  }
  return lengths;
}

}  // namespace

std::size_t store_by_position(const Injection& injection) {
  return store_by(injection, [](const RankPlan& rank, const VirtualToken& token) {
    return is_own(rank, token.position) ? token.slot / rank.kv_shard.count : plan::kPadRow;
  });
}

std::size_t store_undivided(const Injection& injection) {
  return store_by(injection, [](const RankPlan& rank, const VirtualToken& token) {
    return is_own(rank, token.slot) ? token.slot : plan::kPadRow;
  });
}

std::size_t store_remainder(const Injection& injection) {
  return store_by(injection, [](const RankPlan& rank, const VirtualToken& token) {
    const Buffer* pool = find_buffer(rank, "k_pool");
    const std::int64_t own_slots = pool->shape.at(0) * pool->shape.at(1);
    return is_own(rank, token.slot) ? token.slot % own_slots : plan::kPadRow;
  });
}

std::size_t store_for_neighbour(const Injection& injection) {
  return store_by(injection, [](const RankPlan& rank, const VirtualToken& token) {
    const bool is_neighbours = is_own(rank, token.slot + rank.kv_shard.count - 1);
    return is_neighbours ? token.slot / rank.kv_shard.count : plan::kPadRow;
  });
}

std::size_t round_up_lengths(const Injection& injection) {
  return injection.for_each_rank([&](const Plan& plan, RankPlan& rank) {
    Buffer* lengths = is_virtual(plan, rank) ? find_lengths(rank) : nullptr;
    if (lengths == nullptr) return false;
    const bool is_per_query = lengths->name == "kv_lens_local";
    const std::int64_t count = rank.kv_shard.count;
    std::vector<std::int64_t> wrong = whole_lengths(injection.step_of(plan), is_per_query);
    for (std::int64_t& length : wrong) length = (length + count - 1) / count;
    const bool has_changed = lengths->values != wrong;
    lengths->values = std::move(wrong);
    return has_changed;
  });
}

// A page is told by the virtual slot of its first token, which lies count times as far.
std::size_t leave_table_undivided(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    Buffer* lengths = is_virtual(plan, rank) ? find_lengths(rank) : nullptr;
    if (lengths == nullptr) return false;
    Buffer* pages = find_buffer(rank, "local_pages");
    Buffer& table = pages != nullptr ? *pages : buffer_of(rank, "local_slots");
    const std::int64_t unit = pages != nullptr ? buffer_of(rank, "k_pool").shape.at(1) : 1;
    const auto columns = static_cast<std::size_t>(table.shape.at(1));
    bool has_changed = false;
    for (std::size_t row = 0; row < lengths->values.size(); ++row) {
      const std::int64_t used = (lengths->values[row] + unit - 1) / unit;
      for (std::size_t i = 0; i < static_cast<std::size_t>(used); ++i) {
        std::int64_t& entry = table.values.at(row * columns + i);
        entry = (entry * unit * rank.kv_shard.count + rank.kv_shard.index) / unit;
        has_changed = true;
      }
    }
    return has_changed;
  });
}

}  // namespace cpverify::mutants
