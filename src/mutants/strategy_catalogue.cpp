#include <cstdint>
#include <string_view>
#include <vector>

#include "mutants/catalogue.hpp"
#include "mutants/defects.hpp"
#include "mutants/injection.hpp"

// The defects that only some strategies or models can have.
namespace cpverify::mutants {
namespace {

ParameterInfo hop(std::int64_t default_value) {
  return {"hop", "messages that the rank has received before", default_value};
}

std::vector<Defect> exchange_defects() {
  return {
      {{"ring_reversed",
        "a rank sends to its left neighbour and receives from its right one",
        "strategy ring on three ranks or more",
        {rank_parameter(kEvery), step_parameter()}},
       send_against_the_ring},
      {{"ring_other_block",
        "attention of a hop reads the buffer of the block that is arriving",
        "strategy ring and a hop whose block some query of the rank sees",
        {hop(1), rank_parameter(kEvery), step_parameter()}},
       attend_other_block},
      {{"ring_round_skipped",
        "what a hop's block gave is not merged",
        "strategy ring and a hop whose block some query of the rank sees",
        {hop(1), rank_parameter(kEvery), step_parameter()}},
       skip_round},
      {{"ring_unmasked",
        "queries see the later keys of their rank's own block",
        "strategy ring",
        {rank_parameter(kEvery), step_parameter()}},
       unmask_own_block},
      {{"ulysses_heads_swapped",
        "the heads of two ranks come back in each other's place",
        "strategy ulysses",
        {rank_parameter(kEvery), step_parameter()}},
       swap_returned_heads},
      {{"ulysses_kv_heads_in_turn",
        "KV heads are dealt out to ranks in turn, where neighbours share one",
        "strategy ulysses with several KV heads, and fewer than ranks",
        {rank_parameter(kEvery), step_parameter()}},
       deal_kv_heads_in_turn},
  };
}

std::vector<Defect> virtual_defects() {
  const std::vector<ParameterInfo> places{rank_parameter(kEvery), step_parameter()};
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
  const std::vector<ParameterInfo> places{rank_parameter(kEvery), step_parameter()};
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
        {rank_parameter(kEvery), step_parameter()}},
       shift_hidden_restore},
      {{"pcp_pads_written",
        "pad rows are written to the slot of the step's first token",
        "strategy pcp_virtual_batch, CP on and ranks of different counts",
        {rank_parameter(kEvery), step_parameter()}},
       write_pad_rows},
      {{"pcp_chunk_as_decode",
        "a last chunk of one token passes for a decode where it is computed",
        "strategy pcp_virtual_batch and a prompt whose last chunk is one token",
        {rank_parameter(kEvery), step_parameter()}},
       take_chunk_for_decode},
      {{"pcp_rows_see_request",
        "rows have the KV length of their whole request",
        "strategy pcp_virtual_batch and a step with CP on",
        {rank_parameter(kEvery), step_parameter()}},
       show_whole_request},
  };
}

std::vector<Defect> head_tail_defects() {
  return {
      {{"head_tail_not_restored",
        "gathered rows are taken for the padded batch in request order",
        "strategy pcp_head_tail and a step with CP on",
        {rank_parameter(kEvery), step_parameter()}},
       leave_gathered_order},
      {{"head_tail_swapped",
        "tails are computed as heads and heads as tails",
        "strategy pcp_head_tail and a prefill",
        {rank_parameter(kEvery), step_parameter()}},
       swap_heads_and_tails},
      {{"head_tail_pads_merged",
        "pad queries are merged into the results",
        "strategy pcp_head_tail and a prefill of no multiple of 2*cp tokens",
        {rank_parameter(kEvery), step_parameter()}},
       merge_pad_rows},
      {{"head_tail_unmasked",
        "queries see the later keys of their own chunk",
        "strategy pcp_head_tail and a prefill",
        {rank_parameter(kEvery), step_parameter()}},
       unmask_own_chunks},
      {{"head_tail_context_twice",
        "the cached context is merged twice",
        "strategy pcp_head_tail and a prefill with a prefix",
        {rank_parameter(kEvery), step_parameter()}},
       merge_context_twice},
      {{"head_tail_context_dropped",
        "the cached context is not merged",
        "strategy pcp_head_tail and a prefill with a prefix",
        {rank_parameter(kEvery), step_parameter()}},
       drop_context},
      {{"head_tail_empty_weighs",
        "what has no earlier chunk has an LSE of 0 in place of -inf for it",
        "strategy pcp_head_tail and a prefill",
        {rank_parameter(kEvery), step_parameter()}},
       weigh_empty_part},
      {{"head_tail_decode_slots",
        "slots of decodes are taken from the padded map side by side",
        "strategy pcp_head_tail and two decodes in a step",
        {rank_parameter(kEvery), step_parameter()}},
       slice_padded_decode_slots},
      {{"head_tail_decode_blind",
        "a decode sees the tokens before it and not itself",
        "strategy pcp_head_tail and a decode",
        {rank_parameter(kEvery), step_parameter()}},
       hide_decode_token},
  };
}

std::vector<Defect> feature_defects() {
  const std::vector<ParameterInfo> places{rank_parameter(kEvery), step_parameter()};
  return {
      {{"soft_cap_missing", "scores are not capped", "a model with soft_cap", places},
       lose_soft_cap},
      {{"soft_cap_not_scaled_back",
        "capped scores, which lie in -1 to 1, are multiplied by softmax_scale in place of the cap",
        "a model with soft_cap", places},
       scale_capped_scores},
      {{"soft_cap_after_mask", "the cap is applied to masked scores too, which makes them finite",
        "a model with soft_cap, and attention_kernel fma", places},
       use_capped_mask},
      {{"sink_missing", "no call counts the sinks", "a model with sinks", places}, lose_sinks},
      {{"sink_on_every_part", "every part of a row counts its sink",
        "a model with sinks and a strategy that merges partial results, such as dcp", places},
       count_sinks_everywhere},
      {{"window_off_by_one",
        "the window has one key more",
        "a model with sliding_window, which stays above 0",
        {{"shift", "keys that the window has more", 1}, rank_parameter(kEvery), step_parameter()}},
       shift_window},
      {{"window_missing", "every query sees all keys before it", "a model with sliding_window",
        places},
       lose_window},
      {{"window_of_call",
        "the window is counted back from a query's number in its call, without what comes before "
        "the call",
        "a model with sliding_window, and attention_kernel fma or mma", places},
       use_local_window},
  };
}

}  // namespace

std::vector<Defect> strategy_defects() {
  std::vector<Defect> defects = exchange_defects();
  for (const std::vector<Defect>& more : {virtual_defects(), product_defects(), pcp_defects(),
                                          head_tail_defects(), feature_defects()}) {
    defects.insert(defects.end(), more.begin(), more.end());
  }
  return defects;
}

}  // namespace cpverify::mutants
