// Defects of the integers that a plan uploads.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "mutants/injection.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::mutants {
namespace {

/// Row of the step that each flattened new token belongs to. [T]
std::vector<std::size_t> rows_of_tokens(const Step& step) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    rows.insert(rows.end(), static_cast<std::size_t>(step.rows[row].scheduled), row);
  }
  return rows;
}

/// Whether the step is split by a strategy that has such a buffer.
bool is_split_with(const Plan& plan, const RankPlan& rank, std::string_view buffer) {
  return plan.is_cp_on && find_buffer(rank, buffer) != nullptr;
}

/// Replaces the KV lengths of one attention call and what follows from them.
void set_kv_lens(RankPlan& rank, const std::string& suffix, std::vector<std::int64_t> kv_lens) {
  buffer_of(rank, "cu_seqlens_k" + suffix).values = plan::prefix_sums(kv_lens);
  buffer_of(rank, "kv_lens" + suffix).values = std::move(kv_lens);
}

/// Recomputes each entry of the reorder index from its rank and its row within that rank.
template <class Place>
bool rewrite_reorder_index(RankPlan& rank, const Place& place) {
  const std::int64_t max_rows = scalar_of(rank, "max_rows");
  bool has_changed = false;
  for (std::int64_t& index : buffer_of(rank, "reorder_index").values) {
    const std::int64_t moved =
        index == plan::kPadRow ? index : place(index / max_rows, index % max_rows);
    has_changed |= moved != index;
    index = moved;
  }
  return has_changed;
}

}  // namespace

std::size_t drop_prefix_from_kv_lens(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    if (!is_split_with(plan, rank, "kv_lens_prev")) {
      return false;
    }
    const std::vector<StepRow>& rows = injection.step_of(plan).rows;
    const bool has_prefix =
        std::any_of(rows.begin(), rows.end(), [](const StepRow& row) { return row.computed > 0; });
    for (const char* suffix : {"_prev", "_next"}) {
      std::vector<std::int64_t> kv_lens = buffer_of(rank, std::string{"kv_lens"} + suffix).values;
      for (std::size_t row = 0; row < rows.size(); ++row) {
        kv_lens[row] -= rows[row].computed;
      }
      set_kv_lens(rank, suffix, std::move(kv_lens));
    }
    return has_prefix;
  });
}

std::size_t swap_ranks_in_reorder_index(const Injection& injection) {
  const std::int64_t first = injection.value("first");
  const std::int64_t second = injection.value("second");
  return injection.for_each_rank([first, second](const Plan& plan, RankPlan& rank) {
    if (!is_split_with(plan, rank, "logical_rows")) {
      return false;
    }
    const std::int64_t max_rows = scalar_of(rank, "max_rows");
    const auto cp_size = static_cast<std::int64_t>(buffer_of(rank, "logical_rows").values.size());
    if (first >= cp_size || second >= cp_size) {
      return false;
    }
    return rewrite_reorder_index(rank, [=](std::int64_t owner, std::int64_t row) {
      const std::int64_t taken = owner == first ? second : owner == second ? first : owner;
      return taken * max_rows + row;
    });
  });
}

std::size_t use_physical_rows_in_reorder_index(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    if (!is_split_with(plan, rank, "physical_rows")) {
      return false;
    }
    const std::int64_t physical_rows = scalar_of(rank, "physical_rows");
    return rewrite_reorder_index(rank, [physical_rows](std::int64_t owner, std::int64_t row) {
      return owner * physical_rows + row;
    });
  });
}

// The engine's batch object keeps its CP metadata when a later forward falls back to the non-CP
// path, so attention runs with the earlier split's lengths. Here: those of the early blocks, cut
// or extended by empty rows to this step's number of rows.
std::size_t keep_stale_metadata(const Injection& injection) {
  const std::vector<Plan>& plans = injection.plans();
  return injection.for_each_rank([&plans](const Plan& plan, RankPlan& rank) {
    if (plan.is_cp_on || plan.step == 0 || !plans.at(plan.step - 1).is_cp_on) {
      return false;
    }
    const RankPlan& stale = plans[plan.step - 1].ranks.at(rank.rank.value());
    bool has_changed = false;
    for (const std::string name : {"cu_seqlens_q", "cu_seqlens_k", "kv_lens"}) {
      Buffer& buffer = buffer_of(rank, name);
      const Buffer* source = find_buffer(stale, name + "_prev");
      if (source == nullptr) return false;
      std::vector<std::int64_t> values = source->values;
      values.resize(buffer.values.size(), name == "kv_lens" ? 0 : values.back());
      has_changed |= values != buffer.values;
      buffer.values = std::move(values);
    }
    return has_changed;
  });
}

// A caller that pads the batch adds the pad rows to the last request's length.
std::size_t attend_pad_rows(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    const std::int64_t num_pads =
        buffer_of(rank, "q").shape.front() - injection.step_of(plan).num_tokens();
    // Rank 0 of a split owns the last block, whose keys end where the request ends.
    if (num_pads == 0 || (plan.is_cp_on && rank.cp_rank != 0)) {
      return false;
    }
    const std::string suffix = plan.is_cp_on ? "_next" : "";
    if (find_buffer(rank, "kv_lens" + suffix) == nullptr) return false;
    std::vector<std::int64_t> kv_lens = buffer_of(rank, "kv_lens" + suffix).values;
    kv_lens.back() += num_pads;
    set_kv_lens(rank, suffix, std::move(kv_lens));
    return true;
  });
}

std::size_t restart_positions(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    if (plan.is_cp_on && !is_split_with(plan, rank, "out_local")) return false;
    const Step& step = injection.step_of(plan);
    const std::vector<std::size_t> rows = rows_of_tokens(step);
    const std::vector<std::int64_t>& tokens =
        buffer_of(rank, plan.is_cp_on ? "out_local" : "out").output->row_tokens;
    std::vector<std::int64_t>& positions = buffer_of(rank, "positions").values;
    bool has_changed = false;
    for (std::size_t i = 0; i < positions.size(); ++i) {
      if (tokens[i] == plan::kPadRow) {
        continue;
      }
      const std::int64_t prefix = step.rows[rows[static_cast<std::size_t>(tokens[i])]].computed;
      positions[i] -= prefix;
      has_changed |= prefix > 0;
    }
    return has_changed;
  });
}

std::size_t drop_shard_row(const Injection& injection) {
  const auto row = static_cast<std::size_t>(injection.value("row"));
  return injection.for_each_rank([row](const Plan& plan, RankPlan& rank) {
    if (!is_split_with(plan, rank, "shard_index")) {
      return false;
    }
    std::vector<std::int64_t>& shard_index = buffer_of(rank, "shard_index").values;
    if (row >= shard_index.size() || shard_index[row] == plan::kPadRow) {
      return false;
    }
    shard_index[row] = plan::kPadRow;
    return true;
  });
}

std::size_t shift_slot(const Injection& injection) {
  const auto token = static_cast<std::size_t>(injection.value("token"));
  return injection.for_each_rank([token](const Plan& /*plan*/, RankPlan& rank) {
    std::vector<std::int64_t>& slots = buffer_of(rank, "slot_mapping").values;
    if (token >= slots.size() || slots[token] == plan::kPadRow) {
      return false;
    }
    slots[token] += 1;
    return true;
  });
}

// The rank takes, computes and returns the wrong heads of its own accord: its inputs and claims
// move with its idea of them, its KV heads do not.
std::size_t shift_query_heads(const Injection& injection) {
  const std::int64_t shift = injection.value("shift");
  return injection.for_each_rank([&injection, shift](const Plan& /*plan*/, RankPlan& rank) {
    const std::int64_t first = rank.heads_q.first + shift;
    if (shift == 0 || rank.tp_rank != injection.value("tp_rank") || first < 0 ||
        first + rank.heads_q.count > injection.model().num_heads_q) {
      return false;
    }
    rank.heads_q.first = static_cast<std::uint32_t>(first);
    for (Buffer& buffer : rank.buffers) {
      if (buffer.output) {
        buffer.output->heads = rank.heads_q;
      } else if (buffer.input && (buffer.input->tensor == TensorKind::q ||
                                  buffer.input->tensor == TensorKind::sinks)) {
        buffer.input->heads = rank.heads_q;
      }
    }
    return true;
  });
}

}  // namespace cpverify::mutants
