// Defects of plans that shard the cache.

#include <cstddef>
#include <cstdint>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "mutants/injection.hpp"

namespace cpverify::mutants {
namespace {

/// False when nothing became different.
bool set(std::int64_t& value, std::int64_t wrong) {
  const bool is_different = value != wrong;
  value = wrong;
  return is_different;
}

bool ignore_in_rank(const Step& step, RankPlan& rank) {
  KvShard believed = rank.kv_shard;
  believed.interleave = 1;
  bool has_changed = false;
  if (Buffer* context = find_buffer(rank, "kv_lens_context")) {
    for (std::size_t row = 0; row < step.rows.size(); ++row) {
      const std::int64_t wrong = layout::local_length(believed, step.rows[row].computed);
      has_changed = set(context->values.at(row), wrong) || has_changed;
    }
  }
  if (Buffer* local = find_buffer(rank, "kv_lens_local")) {
    std::size_t query = 0;
    for (const StepRow& row : step.rows) {
      for (std::int64_t i = 1; i <= row.scheduled; ++i) {
        const std::int64_t wrong = layout::local_length(believed, row.computed + i);
        has_changed = set(local->values.at(query++), wrong) || has_changed;
      }
    }
  }
  return has_changed;
}

}  // namespace

std::size_t ignore_interleave(const Injection& injection) {
  return injection.for_each_rank([&](const Plan& plan, RankPlan& rank) {
    return rank.kv_shard.interleave > 1 && ignore_in_rank(injection.step_of(plan), rank);
  });
}

}  // namespace cpverify::mutants
