#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::mutants {

/// Value of the parameters `rank` and `step` that selects all of them.
inline constexpr std::int64_t kEvery = -1;

/// One defect about to be put into the plans of a run: its parameters, defaults filled in.
class Injection {
 public:
  /// Neither reference is owned; both outlive the object.
  Injection(const Problem& problem, std::vector<Plan>& plans,
            std::map<std::string, std::int64_t> values);

  [[nodiscard]] std::int64_t value(std::string_view parameter) const;
  [[nodiscard]] std::vector<Plan>& plans() const noexcept { return plans_; }
  [[nodiscard]] const Step& step_of(const Plan& plan) const;
  [[nodiscard]] const Scenario& scenario() const noexcept { return problem_.scenario; }
  [[nodiscard]] const ModelSpec& model() const noexcept { return problem_.scenario.model; }

  /// Calls edit(plan, rank plan) -> bool for every selected step and rank; the number of calls that
  /// changed something.
  template <class Edit>
  [[nodiscard]] std::size_t for_each_rank(const Edit& edit) const {
    std::size_t changed = 0;
    for (Plan& plan : plans_) {
      for (RankPlan& rank : plan.ranks) {
        if (is_selected("step", plan.step) && is_selected("rank", rank.rank.value()) &&
            edit(plan, rank)) {
          ++changed;
        }
      }
    }
    return changed;
  }

 private:
  /// A defect without the parameter selects everything.
  [[nodiscard]] bool is_selected(const std::string& parameter, std::uint32_t index) const;

  const Problem& problem_;
  std::vector<Plan>& plans_;
  std::map<std::string, std::int64_t> values_;
};

/// The buffer of that name, or null.
[[nodiscard]] Buffer* find_buffer(RankPlan& rank, std::string_view name) noexcept;
[[nodiscard]] const Buffer* find_buffer(const RankPlan& rank, std::string_view name) noexcept;

/// The buffer of that name, which the plan is known to have.
[[nodiscard]] Buffer& buffer_of(RankPlan& rank, std::string_view name);

/// The only element of a metadata buffer.
[[nodiscard]] std::int64_t scalar_of(RankPlan& rank, std::string_view name);

/// Puts a defect in and returns the number of ranks and steps that it changed.
using Apply = std::size_t (*)(const Injection&);

std::size_t drop_prefix_from_kv_lens(const Injection& injection);
std::size_t swap_ranks_in_reorder_index(const Injection& injection);
std::size_t use_physical_rows_in_reorder_index(const Injection& injection);
std::size_t keep_stale_metadata(const Injection& injection);
std::size_t attend_pad_rows(const Injection& injection);
std::size_t restart_positions(const Injection& injection);
std::size_t drop_shard_row(const Injection& injection);
std::size_t shift_slot(const Injection& injection);
std::size_t shift_query_heads(const Injection& injection);

std::size_t size_gather_buffer_by_ceil(const Injection& injection);
std::size_t narrow_block_table(const Injection& injection);
std::size_t lose_late_offset(const Injection& injection);
std::size_t skip_collective(const Injection& injection);
std::size_t lose_event_wait(const Injection& injection);
std::size_t send_fewer_rows(const Injection& injection);

std::size_t use_causal_plus_one(const Injection& injection);
std::size_t use_lse_base2(const Injection& injection);
std::size_t use_empty_row_finite(const Injection& injection);
std::size_t use_missing_barrier(const Injection& injection);
std::size_t use_page_rounded(const Injection& injection);
std::size_t use_no_wait(const Injection& injection);
std::size_t use_negative_slot(const Injection& injection);
std::size_t use_no_trailing_barrier(const Injection& injection);
std::size_t use_one_slot(const Injection& injection);
std::size_t use_divergent_barrier(const Injection& injection);
std::size_t use_divergent_shuffle(const Injection& injection);
std::size_t use_crowded_barrier(const Injection& injection);

std::size_t use_merge_lse_base_swapped(const Injection& injection);
std::size_t use_merge_plain_mean(const Injection& injection);
std::size_t use_merge_missing_rescale(const Injection& injection);
std::size_t use_merge_unguarded_empty_row(const Injection& injection);
std::size_t use_merge_lse_transposed(const Injection& injection);
std::size_t use_merge_lse_16_bit(const Injection& injection);
std::size_t use_merge_blocks_reversed(const Injection& injection);

std::size_t ignore_interleave(const Injection& injection);

std::size_t store_by_position(const Injection& injection);
std::size_t store_undivided(const Injection& injection);
std::size_t store_remainder(const Injection& injection);
std::size_t store_for_neighbour(const Injection& injection);
std::size_t round_up_lengths(const Injection& injection);
std::size_t leave_table_undivided(const Injection& injection);

std::size_t count_shards_by_other_axis(const Injection& injection);
std::size_t merge_one_prefill_rank(const Injection& injection);
std::size_t leave_out_context_of_others(const Injection& injection);

std::size_t send_against_the_ring(const Injection& injection);
std::size_t attend_other_block(const Injection& injection);
std::size_t skip_round(const Injection& injection);
std::size_t unmask_own_block(const Injection& injection);
std::size_t swap_returned_heads(const Injection& injection);
std::size_t deal_kv_heads_in_turn(const Injection& injection);

std::size_t shift_hidden_restore(const Injection& injection);
std::size_t write_pad_rows(const Injection& injection);
std::size_t take_chunk_for_decode(const Injection& injection);
std::size_t show_whole_request(const Injection& injection);

std::size_t leave_gathered_order(const Injection& injection);
std::size_t swap_heads_and_tails(const Injection& injection);
std::size_t merge_pad_rows(const Injection& injection);
std::size_t unmask_own_chunks(const Injection& injection);
std::size_t merge_context_twice(const Injection& injection);
std::size_t drop_context(const Injection& injection);
std::size_t weigh_empty_part(const Injection& injection);
std::size_t slice_padded_decode_slots(const Injection& injection);
std::size_t hide_decode_token(const Injection& injection);

}  // namespace cpverify::mutants
