// Defects of prefill context parallelism by padded head and tail chunks.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "mutants/injection.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::mutants {
namespace {

/// Parameter position in an attention launch; docs/plan.md has the list.
constexpr std::size_t kIsCausal = 14;
constexpr std::array<std::string_view, 2> kOwnChunkLabels{"attention of heads to their own chunks",
                                                          "attention of tails to their own chunks"};
constexpr std::string_view kContextMerge = "merge the cached context";

/// The place of the operation with that label, or the end.
std::vector<Operation>::iterator find_labelled(RankPlan& rank, std::string_view label) {
  return std::find_if(rank.operations.begin(), rank.operations.end(),
                      [label](const Operation& operation) { return operation.label == label; });
}

/// Decode rows of a rank of pcp_head_tail, or null where the strategy is another.
const Buffer* decode_rows_of(RankPlan& rank) {
  if (find_buffer(rank, "q_head_tail_index") == nullptr) return nullptr;
  return find_buffer(rank, "decode_rows");
}

}  // namespace

// K, V and outputs stay as the ranks stand one after the other.
std::size_t leave_gathered_order(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    Buffer* restore = find_buffer(rank, "restore_index");
    if (restore == nullptr || decode_rows_of(rank) == nullptr) return false;
    std::vector<std::int64_t> gathered(restore->values.size());
    std::iota(gathered.begin(), gathered.end(), 0);
    const bool has_changed = gathered != restore->values;
    restore->values = std::move(gathered);
    return has_changed;
  });
}

// The way back is the right one, so that rows end where they began.
std::size_t swap_heads_and_tails(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    const Buffer* decode_rows = decode_rows_of(rank);
    if (decode_rows == nullptr) return false;
    std::vector<std::int64_t>& index = buffer_of(rank, "q_head_tail_index").values;
    const auto first = index.begin() + decode_rows->values.front();
    const auto middle = first + std::distance(first, index.end()) / 2;
    std::swap_ranges(first, middle, middle);
    return first != middle;
  });
}

std::size_t merge_pad_rows(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    const Buffer* decode_rows = decode_rows_of(rank);
    Buffer* index = find_buffer(rank, "merge_index");
    if (decode_rows == nullptr || index == nullptr) return false;
    bool has_changed = false;
    for (std::int64_t row = decode_rows->values.front(); row < index->size_elems(); ++row) {
      std::int64_t& entry = index->values.at(static_cast<std::size_t>(row));
      has_changed |= entry == plan::kPadRow;
      entry = row;
    }
    return has_changed;
  });
}

std::size_t unmask_own_chunks(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    bool has_changed = false;
    for (const std::string_view label : kOwnChunkLabels) {
      const auto operation = find_labelled(rank, label);
      if (operation == rank.operations.end()) continue;
      std::get<Launch>(operation->body).arguments.at(kIsCausal) = std::int32_t{0};
      has_changed = true;
    }
    return has_changed;
  });
}

std::size_t merge_context_twice(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    const auto merge = find_labelled(rank, kContextMerge);
    if (merge == rank.operations.end()) return false;
    const Operation again = *merge;
    rank.operations.insert(merge, again);
    return true;
  });
}

std::size_t drop_context(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    const auto merge = find_labelled(rank, kContextMerge);
    if (merge == rank.operations.end()) return false;
    rank.operations.erase(merge);
    return true;
  });
}

// An LSE of 0 is that of one key with score 0. The first rank's heads have no earlier chunk, and
// nothing else writes their LSEs.
std::size_t weigh_empty_part(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    const auto fill = find_labelled(rank, "set lse_nomask to -inf");
    if (!plan.is_cp_on || rank.cp_rank != 0 || fill == rank.operations.end()) return false;
    std::get<Fill>(fill->body).pattern = 0;
    return true;
  });
}

// The padded map has P entries for every decode token, the first of which is its slot.
std::size_t slice_padded_decode_slots(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    Buffer* slots = find_buffer(rank, "decode_slots");
    if (slots == nullptr) return false;
    const std::size_t pcp_size = plan.groups.at(rank.tp_rank).members.size();
    std::vector<std::int64_t> padded;
    for (const std::int64_t slot : slots->values) {
      padded.push_back(slot);
      padded.resize(padded.size() + pcp_size - 1, plan::kPadRow);
    }
    padded.resize(slots->values.size());
    const bool has_changed = padded != slots->values;
    slots->values = std::move(padded);
    return has_changed;
  });
}

// What is right for the context of a prefill, tokens computed before the step, is taken for
// decodes.
std::size_t hide_decode_token(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    Buffer* kv_lens = find_buffer(rank, "kv_lens_decode");
    const Buffer* slots = find_buffer(rank, "decode_slots");
    if (kv_lens == nullptr || slots == nullptr) return false;
    bool has_changed = false;
    for (std::size_t row = 0; row < kv_lens->values.size(); ++row) {
      if (slots->values.at(row) == plan::kPadRow) continue;
      kv_lens->values[row] -= 1;
      has_changed = true;
    }
    return has_changed;
  });
}

}  // namespace cpverify::mutants
