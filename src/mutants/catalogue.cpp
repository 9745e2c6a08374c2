#include "mutants/catalogue.hpp"

#include <cstdint>
#include <string_view>
#include <vector>

#include "mutants/defects.hpp"
#include "mutants/injection.hpp"

namespace cpverify::mutants {
namespace {

constexpr std::string_view kNeedsSplit = "a step with CP on";
constexpr std::string_view kNeedsMerge = "a strategy that merges partial results, such as dcp";
constexpr std::string_view kNeedsMma = "attention_kernel mma (or automatic with a 16-bit dtype)";
constexpr std::string_view kNeedsCopies =
    "attention_kernel mma (or automatic with a 16-bit dtype) or hopper";

ParameterInfo index() {
  return {"index", "which of the rank's collectives, from 0", 0};
}

std::vector<Defect> metadata_defects() {
  return {
      {{"kv_len_without_prefix",
        "the KV lengths of a split leave the cached prefix out",
        "a step with CP on and a prefix",
        {rank_parameter(kEvery), step_parameter()}},
       drop_prefix_from_kv_lens},
      {{"reorder_ranks_swapped",
        "the reorder index takes two ranks' rows for each other's",
        kNeedsSplit,
        {{"first", "a CP rank", 0},
         {"second", "the CP rank it is taken for", 1},
         rank_parameter(kEvery),
         step_parameter()}},
       swap_ranks_in_reorder_index},
      {{"reorder_by_physical_rows",
        "the reorder index counts a rank's rows with its padding",
        "a step with CP on whose largest rank is no multiple of 2*cp",
        {rank_parameter(kEvery), step_parameter()}},
       use_physical_rows_in_reorder_index},
      {{"stale_metadata",
        "attention uses the split's lengths of the step before",
        "a step with CP off right after one with CP on",
        {rank_parameter(kEvery), step_parameter()}},
       keep_stale_metadata},
      {{"pad_row_attended",
        "the last request's KV length includes the pad rows",
        "padding.token_multiple that leaves pad rows",
        {rank_parameter(kEvery), step_parameter()}},
       attend_pad_rows},
      {{"position_restart",
        "positions start at 0 after a prefix",
        "a step with a prefix",
        {rank_parameter(kEvery), step_parameter()}},
       restart_positions},
      {{"row_dropped",
        "a local row holds no token",
        "a step with CP on and that many rows",
        {{"row", "local row that is lost", 0}, rank_parameter(0), step_parameter()}},
       drop_shard_row},
      {{"wrong_slot",
        "a token's K and V go to the next slot",
        "a step with that many tokens",
        {{"token", "flattened token of the step", 0}, rank_parameter(0), step_parameter()}},
       shift_slot},
      {{"tp_head_shift",
        "a tensor-parallel rank takes the query heads of its neighbour",
        "tp above 1 and a shift that stays within the model's heads",
        {{"tp_rank", "tensor-parallel rank that has the defect", 0},
         {"shift", "heads to shift by", 1},
         step_parameter()}},
       shift_query_heads},
  };
}

std::vector<Defect> operation_defects() {
  return {
      {{"gather_buffer_ceil",
        "kv_send and kv_gathered hold ceil(T/cp) rows of each rank",
        "a step with CP on whose largest rank has more rows than that",
        {rank_parameter(kEvery), step_parameter()}},
       size_gather_buffer_by_ceil},
      {{"page_table_too_narrow",
        "the block table is allocated one column short",
        "a block table of two columns or more",
        {rank_parameter(kEvery), step_parameter()}},
       narrow_block_table},
      {{"late_offset_lost",
        "attention of the late blocks starts at row 0",
        kNeedsSplit,
        {rank_parameter(kEvery), step_parameter()}},
       lose_late_offset},
      {{"skipped_collective",
        "a rank does not issue one of its collectives",
        kNeedsSplit,
        {index(), rank_parameter(1), step_parameter()}},
       skip_collective},
      {{"collective_count_differs",
        "a rank sends fewer rows than the others",
        kNeedsSplit,
        {index(), {"rows", "rows that are not sent", 1}, rank_parameter(1), step_parameter()}},
       send_fewer_rows},
      {{"missing_event_wait",
        "a collective runs on a second stream and nothing waits for its end",
        kNeedsSplit,
        {index(), rank_parameter(kEvery), step_parameter()}},
       lose_event_wait},
  };
}

std::vector<Defect> kernel_defects() {
  return {
      {{"causal_off_by_one",
        "every query sees one key of its future",
        "an attention launch",
        {rank_parameter(kEvery), step_parameter()}},
       use_causal_plus_one},
      {{"lse_base2",
        "the kernel returns its LSE in base 2",
        "an attention launch",
        {rank_parameter(kEvery), step_parameter()}},
       use_lse_base2},
      {{"empty_row_finite",
        "the kernel returns 0 as the LSE of a row without keys",
        "an attention launch with such a row, and a merge of it",
        {rank_parameter(kEvery), step_parameter()}},
       use_empty_row_finite},
      {{"missing_barrier",
        "a tile is read before all warps have written it",
        kNeedsMma,
        {rank_parameter(kEvery), step_parameter()}},
       use_missing_barrier},
      {{"page_rounded",
        "the KV length is rounded up to whole pages",
        "attention_kernel fma",
        {rank_parameter(kEvery), step_parameter()}},
       use_page_rounded},
      {{"no_wait",
        "a tile is read before its asynchronous copy has landed",
        kNeedsCopies,
        {rank_parameter(kEvery), step_parameter()}},
       use_no_wait},
      {{"null_block_written",
        "rows without a slot are written all the same",
        "a launch of kv_write",
        {rank_parameter(kEvery), step_parameter()}},
       use_negative_slot},
      {{"no_trailing_barrier",
        "a tile is refilled while other warps may still read it",
        kNeedsMma,
        {rank_parameter(kEvery), step_parameter()}},
       use_no_trailing_barrier},
      {{"rows_share_slot",
        "two rows are written to one slot",
        "a launch of kv_write",
        {rank_parameter(kEvery), step_parameter()}},
       use_one_slot},
      {{"divergent_barrier",
        "only the lanes of even number wait at the barrier",
        kNeedsMma,
        {rank_parameter(kEvery), step_parameter()}},
       use_divergent_barrier},
      {{"divergent_shuffle",
        "all lanes are asked for a sum where some of them run",
        kNeedsMma,
        {rank_parameter(kEvery), step_parameter()}},
       use_divergent_shuffle},
      {{"crowded_barrier",
        "the barrier waits for one warp more than there are",
        kNeedsMma,
        {rank_parameter(kEvery), step_parameter()}},
       use_crowded_barrier},
  };
}

std::vector<Defect> merge_defects() {
  const std::vector<ParameterInfo> places{rank_parameter(kEvery), step_parameter()};
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

}  // namespace

ParameterInfo step_parameter() {
  return {"step", "step that has the defect, -1 for every step", kEvery};
}

ParameterInfo rank_parameter(std::int64_t default_value) {
  return {"rank", "world rank that has the defect, -1 for every rank", default_value};
}

std::vector<Defect> catalogue() {
  std::vector<Defect> defects = metadata_defects();
  for (const std::vector<Defect>& more :
       {operation_defects(), kernel_defects(), merge_defects(), strategy_defects()}) {
    defects.insert(defects.end(), more.begin(), more.end());
  }
  return defects;
}

}  // namespace cpverify::mutants
