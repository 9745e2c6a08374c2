#include "mutants/defects.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/injection.hpp"
#include "support/nearest.hpp"

namespace cpverify::mutants {
namespace {

struct Defect {
  DefectInfo info;
  Apply apply;
};

constexpr std::string_view kNeedsSplit = "a step with CP on";
constexpr std::string_view kNeedsMerge = "a strategy that merges partial results, such as dcp";
constexpr std::string_view kNeedsMma = "attention_kernel mma (or automatic with a 16-bit dtype)";
constexpr std::string_view kNeedsCopies =
    "attention_kernel mma (or automatic with a 16-bit dtype) or hopper";

ParameterInfo step() {
  return {"step", "step that has the defect, -1 for every step", kEvery};
}

ParameterInfo rank(std::int64_t default_value) {
  return {"rank", "world rank that has the defect, -1 for every rank", default_value};
}

ParameterInfo index() {
  return {"index", "which of the rank's collectives, from 0", 0};
}

std::vector<Defect> metadata_defects() {
  return {
      {{"kv_len_without_prefix",
        "the KV lengths of a split leave the cached prefix out",
        "a step with CP on and a prefix",
        {rank(kEvery), step()}},
       drop_prefix_from_kv_lens},
      {{"reorder_ranks_swapped",
        "the reorder index takes two ranks' rows for each other's",
        kNeedsSplit,
        {{"first", "a CP rank", 0},
         {"second", "the CP rank it is taken for", 1},
         rank(kEvery),
         step()}},
       swap_ranks_in_reorder_index},
      {{"reorder_by_physical_rows",
        "the reorder index counts a rank's rows with its padding",
        "a step with CP on whose largest rank is no multiple of 2*cp",
        {rank(kEvery), step()}},
       use_physical_rows_in_reorder_index},
      {{"stale_metadata",
        "attention uses the split's lengths of the step before",
        "a step with CP off right after one with CP on",
        {rank(kEvery), step()}},
       keep_stale_metadata},
      {{"pad_row_attended",
        "the last request's KV length includes the pad rows",
        "padding.token_multiple that leaves pad rows",
        {rank(kEvery), step()}},
       attend_pad_rows},
      {{"position_restart",
        "positions start at 0 after a prefix",
        "a step with a prefix",
        {rank(kEvery), step()}},
       restart_positions},
      {{"row_dropped",
        "a local row holds no token",
        "a step with CP on and that many rows",
        {{"row", "local row that is lost", 0}, rank(0), step()}},
       drop_shard_row},
      {{"wrong_slot",
        "a token's K and V go to the next slot",
        "a step with that many tokens",
        {{"token", "flattened token of the step", 0}, rank(0), step()}},
       shift_slot},
      {{"tp_head_shift",
        "a tensor-parallel rank takes the query heads of its neighbour",
        "tp above 1 and a shift that stays within the model's heads",
        {{"tp_rank", "tensor-parallel rank that has the defect", 0},
         {"shift", "heads to shift by", 1},
         step()}},
       shift_query_heads},
  };
}

std::vector<Defect> operation_defects() {
  return {
      {{"gather_buffer_ceil",
        "kv_send and kv_gathered hold ceil(T/cp) rows of each rank",
        "a step with CP on whose largest rank has more rows than that",
        {rank(kEvery), step()}},
       size_gather_buffer_by_ceil},
      {{"page_table_too_narrow",
        "the block table is allocated one column short",
        "a block table of two columns or more",
        {rank(kEvery), step()}},
       narrow_block_table},
      {{"late_offset_lost",
        "attention of the late blocks starts at row 0",
        kNeedsSplit,
        {rank(kEvery), step()}},
       lose_late_offset},
      {{"skipped_collective",
        "a rank does not issue one of its collectives",
        kNeedsSplit,
        {index(), rank(1), step()}},
       skip_collective},
      {{"collective_count_differs",
        "a rank sends fewer rows than the others",
        kNeedsSplit,
        {index(), {"rows", "rows that are not sent", 1}, rank(1), step()}},
       send_fewer_rows},
      {{"missing_event_wait",
        "a collective runs on a second stream and nothing waits for its end",
        kNeedsSplit,
        {index(), rank(kEvery), step()}},
       lose_event_wait},
  };
}

std::vector<Defect> kernel_defects() {
  return {
      {{"causal_off_by_one",
        "every query sees one key of its future",
        "an attention launch",
        {rank(kEvery), step()}},
       use_causal_plus_one},
      {{"lse_base2",
        "the kernel returns its LSE in base 2",
        "an attention launch",
        {rank(kEvery), step()}},
       use_lse_base2},
      {{"empty_row_finite",
        "the kernel returns 0 as the LSE of a row without keys",
        "an attention launch with such a row, and a merge of it",
        {rank(kEvery), step()}},
       use_empty_row_finite},
      {{"missing_barrier",
        "a tile is read before all warps have written it",
        kNeedsMma,
        {rank(kEvery), step()}},
       use_missing_barrier},
      {{"page_rounded",
        "the KV length is rounded up to whole pages",
        "attention_kernel fma",
        {rank(kEvery), step()}},
       use_page_rounded},
      {{"no_wait",
        "a tile is read before its asynchronous copy has landed",
        kNeedsCopies,
        {rank(kEvery), step()}},
       use_no_wait},
      {{"null_block_written",
        "rows without a slot are written all the same",
        "a launch of kv_write",
        {rank(kEvery), step()}},
       use_negative_slot},
      {{"no_trailing_barrier",
        "a tile is refilled while other warps may still read it",
        kNeedsMma,
        {rank(kEvery), step()}},
       use_no_trailing_barrier},
      {{"rows_share_slot",
        "two rows are written to one slot",
        "a launch of kv_write",
        {rank(kEvery), step()}},
       use_one_slot},
      {{"divergent_barrier",
        "only the lanes of even number wait at the barrier",
        kNeedsMma,
        {rank(kEvery), step()}},
       use_divergent_barrier},
      {{"divergent_shuffle",
        "all lanes are asked for a sum where some of them run",
        kNeedsMma,
        {rank(kEvery), step()}},
       use_divergent_shuffle},
      {{"crowded_barrier",
        "the barrier waits for one warp more than there are",
        kNeedsMma,
        {rank(kEvery), step()}},
       use_crowded_barrier},
  };
}

std::vector<Defect> merge_defects() {
  const std::vector<ParameterInfo> places{rank(kEvery), step()};
  return {
      {{"merge_lse_base_swapped", "a merge of partial results reads natural LSEs as base 2",
        kNeedsMerge, places},
       use_merge_lse_base_swapped},
      {{"merge_plain_mean",
        "a merge of partial results takes the mean of the partials instead of weighing them",
        kNeedsMerge, places},
       use_merge_plain_mean},
      {{"merge_missing_rescale",
        "a merge of partial results does not rescale what it has when a larger LSE comes",
        kNeedsMerge, places},
       use_merge_missing_rescale},
      {{"merge_unguarded_empty_row",
        "a merge of partial results divides by a sum of 0 where all partials are empty",
        kNeedsMerge, places},
       use_merge_unguarded_empty_row},
      {{"merge_lse_transposed", "a merge of partial results takes the LSE of another row and head",
        kNeedsMerge, places},
       use_merge_lse_transposed},
      {{"merge_lse_16_bit", "a merge of partial results rounds LSEs to 16 bits", kNeedsMerge,
        places},
       use_merge_lse_16_bit},
      {{"merge_blocks_reversed",
        "a merge of partial results takes the heads of one rank for those of another", kNeedsMerge,
        places},
       use_merge_blocks_reversed},
      {{"interleave_ignored", "local lengths are counted as if shards took turns token by token",
        "strategy dcp with kv_interleave above 1", places},
       ignore_interleave},
  };
}

ParameterInfo hop(std::int64_t default_value) {
  return {"hop", "messages that the rank has received before", default_value};
}

std::vector<Defect> exchange_defects() {
  return {
      {{"ring_reversed",
        "a rank sends to its left neighbour and receives from its right one",
        "strategy ring on three ranks or more",
        {rank(kEvery), step()}},
       send_against_the_ring},
      {{"ring_other_block",
        "attention of a hop reads the buffer of the block that is arriving",
        "strategy ring and a hop whose block some query of the rank sees",
        {hop(1), rank(kEvery), step()}},
       attend_other_block},
      {{"ring_round_skipped",
        "what a hop's block gave is not merged",
        "strategy ring and a hop whose block some query of the rank sees",
        {hop(1), rank(kEvery), step()}},
       skip_round},
      {{"ring_unmasked",
        "queries see the later keys of their rank's own block",
        "strategy ring",
        {rank(kEvery), step()}},
       unmask_own_block},
      {{"ulysses_heads_swapped",
        "the heads of two ranks come back in each other's place",
        "strategy ulysses",
        {rank(kEvery), step()}},
       swap_returned_heads},
      {{"ulysses_kv_heads_in_turn",
        "KV heads are dealt out to ranks in turn, where neighbours share one",
        "strategy ulysses with several KV heads, and fewer than ranks",
        {rank(kEvery), step()}},
       deal_kv_heads_in_turn},
  };
}

std::vector<Defect> virtual_defects() {
  const std::vector<ParameterInfo> places{rank(kEvery), step()};
  const std::string_view needs = "strategy dcp_virtual on two ranks or more";
  return {
      {{"virtual_owner_by_position",
        "a rank stores the tokens whose position, not slot, says that they are its own",
        "strategy dcp_virtual with owner slot, on single slots", places},
       store_by_position},
      {{"virtual_slot_undivided", "K and V go to the virtual slot's number in the rank's pool",
        needs, places},
       store_undivided},
      {{"virtual_slot_remainder",
        "K and V go to the remainder of the virtual slot and the size of the rank's pool", needs,
        places},
       store_remainder},
      {{"virtual_neighbour_stored", "a rank stores the next rank's tokens", needs, places},
       store_for_neighbour},
      {{"virtual_lengths_rounded_up", "every rank reads as many keys as the first",
        "strategy dcp_virtual and lengths that its ranks do not share evenly", places},
       round_up_lengths},
      {{"virtual_table_undivided", "attention reads pages or slots by their virtual numbers",
        "strategy dcp_virtual and keys in the cache", places},
       leave_table_undivided},
  };
}

std::vector<Defect> product_defects() {
  const std::vector<ParameterInfo> places{rank(kEvery), step()};
  return {
      {{"pcp_dcp_shard_order", "shards are counted along the other of the two groups first",
        "strategy pcp_dcp with several ranks along both", places},
       count_shards_by_other_axis},
      {{"pcp_dcp_one_prefill_rank", "only the partials of the first prefill rank are merged",
        "strategy pcp_dcp and keys in the cache", places},
       merge_one_prefill_rank},
      {{"pcp_dcp_context_by_rank",
        "a rank whose rows have nothing in the cache leaves the others alone with it",
        "strategy pcp_dcp and such a rank, while others have something", places},
       leave_out_context_of_others},
  };
}

std::vector<Defect> pcp_defects() {
  return {
      {{"pcp_restore_off_by_one",
        "the restore index takes the row after a token's own",
        "strategy pcp_virtual_batch and a step with CP on",
        {rank(kEvery), step()}},
       shift_hidden_restore},
      {{"pcp_pads_written",
        "pad rows are written to the slot of the step's first token",
        "strategy pcp_virtual_batch, CP on and ranks of different counts",
        {rank(kEvery), step()}},
       write_pad_rows},
      {{"pcp_chunk_as_decode",
        "a last chunk of one token passes for a decode where it is computed",
        "strategy pcp_virtual_batch and a prompt whose last chunk is one token",
        {rank(kEvery), step()}},
       take_chunk_for_decode},
      {{"pcp_rows_see_request",
        "rows have the KV length of their whole request",
        "strategy pcp_virtual_batch and a step with CP on",
        {rank(kEvery), step()}},
       show_whole_request},
  };
}

std::vector<Defect> head_tail_defects() {
  return {
      {{"head_tail_not_restored",
        "gathered rows are taken for the padded batch in request order",
        "strategy pcp_head_tail and a step with CP on",
        {rank(kEvery), step()}},
       leave_gathered_order},
      {{"head_tail_swapped",
        "tails are computed as heads and heads as tails",
        "strategy pcp_head_tail and a prefill",
        {rank(kEvery), step()}},
       swap_heads_and_tails},
      {{"head_tail_pads_merged",
        "pad queries are merged into the results",
        "strategy pcp_head_tail and a prefill of no multiple of 2*cp tokens",
        {rank(kEvery), step()}},
       merge_pad_rows},
      {{"head_tail_unmasked",
        "queries see the later keys of their own chunk",
        "strategy pcp_head_tail and a prefill",
        {rank(kEvery), step()}},
       unmask_own_chunks},
      {{"head_tail_context_twice",
        "the cached context is merged twice",
        "strategy pcp_head_tail and a prefill with a prefix",
        {rank(kEvery), step()}},
       merge_context_twice},
      {{"head_tail_context_dropped",
        "the cached context is not merged",
        "strategy pcp_head_tail and a prefill with a prefix",
        {rank(kEvery), step()}},
       drop_context},
      {{"head_tail_empty_weighs",
        "what has no earlier chunk has an LSE of 0 in place of -inf for it",
        "strategy pcp_head_tail and a prefill",
        {rank(kEvery), step()}},
       weigh_empty_part},
      {{"head_tail_decode_slots",
        "slots of decodes are taken from the padded map side by side",
        "strategy pcp_head_tail and two decodes in a step",
        {rank(kEvery), step()}},
       slice_padded_decode_slots},
      {{"head_tail_decode_blind",
        "a decode sees the tokens before it and not itself",
        "strategy pcp_head_tail and a decode",
        {rank(kEvery), step()}},
       hide_decode_token},
  };
}

/// Every defect, in the order in which they are listed to users.
std::vector<Defect> catalogue() {
  std::vector<Defect> defects = metadata_defects();
  for (const std::vector<Defect>& more :
       {operation_defects(), kernel_defects(), merge_defects(), exchange_defects(),
        virtual_defects(), product_defects(), pcp_defects(), head_tail_defects()}) {
    defects.insert(defects.end(), more.begin(), more.end());
  }
  return defects;
}

Defect find_defect(const InjectSpec& inject) {
  std::vector<std::string> names;
  const std::vector<Defect> defects = catalogue();
  for (const Defect& defect : defects) {
    if (defect.info.name == inject.defect) {
      return defect;
    }
    names.emplace_back(defect.info.name);
  }
  const std::string guess = did_you_mean(inject.defect, names);
  throw InputError{inject.where, fmt::format("unknown defect '{}'{} known are {}", inject.defect,
                                             guess.empty() ? ";" : guess, fmt::join(names, ", "))};
}

/// Number of things that an index parameter chooses from, or 0 when it is no index of that kind.
std::size_t index_limit(std::string_view parameter, const std::vector<Plan>& plans) {
  if (parameter == "step") {
    return plans.size();
  }
  return parameter == "rank" && !plans.empty() ? plans.front().ranks.size() : 0;
}

void check_value(const InjectSpec& inject, const std::string& parameter, std::int64_t value,
                 const std::vector<Plan>& plans) {
  const std::size_t limit = index_limit(parameter, plans);
  if (limit > 0 && (value < kEvery || value >= static_cast<std::int64_t>(limit))) {
    throw InputError{inject.where, fmt::format("{} of defect '{}' is {}, expected -1 .. {}",
                                               parameter, inject.defect, value, limit - 1)};
  }
  // `shift` is the one parameter with a direction.
  if (limit == 0 && value < 0 && parameter != "shift") {
    throw InputError{inject.where, fmt::format("{} of defect '{}' is {}, expected 0 or more",
                                               parameter, inject.defect, value)};
  }
}

std::map<std::string, std::int64_t> parameter_values(const InjectSpec& inject,
                                                     const DefectInfo& info,
                                                     const std::vector<Plan>& plans) {
  std::map<std::string, std::int64_t> values;
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : info.parameters) {
    values.emplace(parameter.name, parameter.default_value);
    names.emplace_back(parameter.name);
  }
  for (const auto& [name, value] : inject.parameters) {
    const auto found = values.find(name);
    if (found == values.end()) {
      throw InputError{inject.where,
                       fmt::format("defect '{}' has no parameter '{}'; it has {}{}", inject.defect,
                                   name, fmt::join(names, ", "), did_you_mean(name, names))};
    }
    check_value(inject, name, value, plans);
    found->second = value;
  }
  return values;
}

}  // namespace

std::vector<DefectInfo> all_defects() {
  std::vector<Defect> defects = catalogue();
  std::vector<DefectInfo> infos;
  infos.reserve(defects.size());
  for (Defect& defect : defects) {
    infos.push_back(std::move(defect.info));
  }
  return infos;
}

void inject(const InjectSpec& inject, const Problem& problem, std::vector<Plan>& plans) {
  const Defect defect = find_defect(inject);
  const Injection injection{problem, plans, parameter_values(inject, defect.info, plans)};
  if (defect.apply(injection) == 0) {
    throw InputError{inject.where,
                     fmt::format("defect '{}' changes nothing in this scenario; it needs {}",
                                 inject.defect, defect.info.needs)};
  }
}

std::vector<Plan> make_subject_plans(const Problem& problem, StrategyKind strategy) {
  std::vector<Plan> plans;
  plans.reserve(problem.steps.size());
  for (const Step& step : problem.steps) plans.push_back(make_plan(problem, step.index, strategy));
  const Scenario& scenario = problem.scenario;
  if (scenario.inject && strategy == scenario.strategies.back()) {
    inject(*scenario.inject, problem, plans);
  }
  return plans;
}

}  // namespace cpverify::mutants
