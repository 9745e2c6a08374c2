// Defects of prefill context parallelism on batches of prefills and decodes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "mutants/injection.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::mutants {
namespace {

/// The collective with that label, or null.
Collective* find_collective(RankPlan& rank, std::string_view label) {
  for (Operation& operation : rank.operations) {
    auto* collective = std::get_if<Collective>(&operation.body);
    if (collective != nullptr && operation.label == label) return collective;
  }
  return nullptr;
}

}  // namespace

std::size_t shift_hidden_restore(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    Buffer* restore = find_buffer(rank, "hidden_restore");
    const Buffer* gathered = find_buffer(rank, "out_gathered");
    if (!plan.is_cp_on || restore == nullptr || gathered == nullptr) return false;
    bool has_changed = false;
    for (std::int64_t& row : restore->values) {
      if (row == plan::kPadRow) continue;
      has_changed = true;
      row = (row + 1) % gathered->shape.front();
    }
    return has_changed;
  });
}

// Slots are taken through an index that is 0 for pads, and the mask of what may be written is left
// out: pads go where token 0 goes. What ranks but the first have of decodes is not in the write.
std::size_t write_pad_rows(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    Buffer* slots = find_buffer(rank, "kv_slots");
    if (!plan.is_cp_on || slots == nullptr) return false;
    const std::int64_t first = injection.step_of(plan).rows.front().slots.front();
    bool has_changed = false;
    for (std::int64_t& slot : slots->values) {
      if (slot != plan::kPadRow) continue;
      has_changed = true;
      slot = first;
    }
    return has_changed;
  });
}

// A last chunk of a prompt that is one token long passes for a decode where it is computed, and its
// rank sends one prefill row fewer than the others.
std::size_t take_chunk_for_decode(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    Collective* gather = find_collective(rank, "all-gather prefill k and v rows");
    const Buffer* tokens = find_buffer(rank, "local_index");
    const Buffer* local = find_buffer(rank, "kv_local");
    if (gather == nullptr || tokens == nullptr || local == nullptr) return false;
    std::int64_t chunks = 0;
    std::int64_t token = 0;
    for (const StepRow& row : injection.step_of(plan).rows) {
      const bool is_own = std::count(tokens->values.begin(), tokens->values.end(), token) > 0;
      const bool is_short = row.scheduled == 1 && row.state == RowState::prefill;
      if (is_short && row.computed > 0 && is_own) ++chunks;
      token += row.scheduled;
    }
    const std::int64_t elems = chunks * (local->size_elems() / local->shape.front());
    gather->send.offset_elems += elems;
    gather->recv.offset_elems += elems;
    gather->count -= elems;
    return chunks > 0;
  });
}

// Bottom-right alignment then shows a row the later chunks of its request.
std::size_t show_whole_request(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    Buffer* kv_lens = find_buffer(rank, "row_kv_lens");
    const Buffer* tokens = find_buffer(rank, "local_index");
    const Buffer* cu_seqlens = find_buffer(rank, "row_cu_seqlens_q");
    if (!plan.is_cp_on || kv_lens == nullptr || tokens == nullptr || cu_seqlens == nullptr) {
      return false;
    }
    std::vector<std::int64_t> totals;  // Of the request of every token of the step.
    for (const StepRow& row : injection.step_of(plan).rows) {
      totals.insert(totals.end(), static_cast<std::size_t>(row.scheduled),
                    row.computed + row.scheduled);
    }
    bool has_changed = false;
    for (std::size_t row = 0; row < kv_lens->values.size(); ++row) {
      const auto first = static_cast<std::size_t>(cu_seqlens->values[row]);
      if (cu_seqlens->values[row + 1] == cu_seqlens->values[row]) continue;
      const std::int64_t total = totals.at(static_cast<std::size_t>(tokens->values[first]));
      has_changed |= kv_lens->values[row] != total;
      kv_lens->values[row] = total;
    }
    return has_changed;
  });
}

}  // namespace cpverify::mutants
