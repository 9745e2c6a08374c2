#include "reference/dcp_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/kv_deal.hpp"
#include "reference/step_integers.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

/// A rank of a decode group.
struct Shard {
  const Problem* problem = nullptr;
  const Step* step = nullptr;
  StepSizes sizes;
  std::size_t index = 0;

  [[nodiscard]] std::int64_t held(std::int64_t length) const {
    return deal_length(*problem, length).at(index);
  }
};

/// Slots in the rank's own pool; -1 where another shard holds the token.
Integers local_slots(const Shard& shard) {
  const std::vector<ShardSlot> dealt = deal_slots(*shard.problem);
  Integers result;
  for (const StepRow& row : shard.step->rows) {
    for (const std::int64_t slot : row.slots) {
      const ShardSlot& place = dealt.at(static_cast<std::size_t>(slot));
      result.push_back(place.shard == shard.index ? place.slot : -1);
    }
  }
  result.resize(static_cast<std::size_t>(shard.sizes.padded_tokens), -1);
  return result;
}

/// Row t of the gathered heads is made of row t of every rank's queries, rank 0 first.
Integers head_order(const Shard& shard) {
  Integers result;
  for (std::int64_t row = 0; row < shard.sizes.padded_tokens; ++row) {
    for (std::uint32_t rank = 0; rank < shard.problem->scenario.topology.dcp; ++rank) {
      result.push_back(rank * shard.sizes.padded_tokens + row);
    }
  }
  return result;
}

bool has_context(const Step& step) {
  return std::ranges::any_of(step.rows, [](const StepRow& row) { return row.computed > 0; });
}

/// Context and new tokens apart.
void add_split(RankIntegers& result, const Shard& shard) {
  Integers scheduled;
  Integers context;
  Integers merged;
  std::int64_t longest = 0;
  std::size_t row_number = 0;
  for (const auto& tokens : new_tokens(*shard.step)) {
    const StepRow& row = shard.step->rows[row_number++];
    scheduled.push_back(static_cast<std::int64_t>(tokens.size()));
    longest = std::max(longest, scheduled.back());
    context.push_back(shard.held(row.computed));
    for (const NewToken& token : tokens) merged.push_back(row.computed > 0 ? token.flat : -1);
  }
  Integers table;
  for (const auto& tokens : new_tokens(*shard.step)) {
    Integers line;
    for (const NewToken& token : tokens) line.push_back(token.flat);
    line.resize(static_cast<std::size_t>(longest), 0);
    table.insert(table.end(), line.begin(), line.end());
  }
  add_vector(result, "cu_seqlens_q", prefix_sums(scheduled));
  add_vector(result, "kv_lens_new", scheduled);
  result.arrays["block_table_new"] = table;
  result.shapes["block_table_new"] = {shard.sizes.num_rows, longest};
  if (!has_context(*shard.step)) return;
  merged.resize(static_cast<std::size_t>(shard.sizes.padded_tokens), -1);
  add_vector(result, "head_order", head_order(shard));
  add_vector(result, "kv_lens_context", context);
  add_vector(result, "merge_index", merged);
}

/// Every query on its own.
void add_cached(RankIntegers& result, const Shard& shard) {
  std::vector<std::size_t> rows;
  Integers starts{0};
  Integers lengths;
  Integers table;
  std::size_t row_number = 0;
  for (const auto& tokens : new_tokens(*shard.step)) {
    const StepRow& row = shard.step->rows[row_number];
    for (const NewToken& token : tokens) {
      rows.push_back(row_number);
      starts.push_back(token.flat + 1);
      lengths.push_back(shard.held(visible_keys(row, token.index)));
      Integers line(row.block_table.begin(), row.block_table.end());
      line.resize(static_cast<std::size_t>(shard.sizes.max_pages), 0);
      table.insert(table.end(), line.begin(), line.end());
    }
    ++row_number;
  }
  add_vector(result, "head_order", head_order(shard));
  add_vector(result, "cu_seqlens_q", starts, rows);
  add_vector(result, "kv_lens_local", lengths, rows);
  result.arrays["block_table_rows"] = table;
  result.shapes["block_table_rows"] = {length(lengths), shard.sizes.max_pages};
}

RankIntegers rank_integers(const Shard& shard) {
  const StepSizes& sizes = shard.sizes;
  RankIntegers result;
  result.is_cp_on = true;
  add_common(result, *shard.step, sizes);
  result.arrays["slot_mapping"] = local_slots(shard);
  Integers positions;
  for (const auto& tokens : new_tokens(*shard.step)) {
    for (const NewToken& token : tokens) {
      positions.push_back(token.position);
      result.row_tokens.push_back(token.flat);
    }
  }
  positions.resize(static_cast<std::size_t>(sizes.padded_tokens), 0);
  result.row_tokens.resize(static_cast<std::size_t>(sizes.padded_tokens), -1);
  add_vector(result, "positions", positions);
  if (shard.problem->scenario.dcp.visibility == DcpVisibility::split) {
    add_split(result, shard);
  } else {
    add_cached(result, shard);
  }
  return result;
}

/// Shapes of what is exchanged, by how it is.
void add_exchange_shapes(RankIntegers& result, const Shard& shard, const Heads& heads) {
  const Scenario& scenario = shard.problem->scenario;
  const std::int64_t rows = shard.sizes.padded_tokens;
  const std::int64_t ranks = scenario.topology.dcp;
  const auto dim = static_cast<std::int64_t>(scenario.model.head_dim);
  result.shapes["q_gathered"] = {ranks, rows, heads.query, dim};
  result.shapes["q_all"] = {rows, ranks * heads.query, dim};
  result.shapes["out_partial"] = {rows, ranks * heads.query, dim};
  result.shapes["lse_partial"] = {rows, ranks * heads.query};
  if (scenario.dcp.visibility == DcpVisibility::split) {
    result.shapes["out_context"] = {rows, heads.query, dim};
    result.shapes["lse_context"] = {rows, heads.query};
  }
  if (scenario.dcp.combine == DcpCombine::a2a) {
    // The 32 bits of an LSE take the place of one f32 or of two 16-bit elements.
    const std::int64_t lanes = scenario.model.dtype == DType::f32 ? 1 : 2;
    result.shapes["packed_send"] = {ranks, rows, heads.query, dim + lanes};
    result.shapes["packed_recv"] = result.shapes["packed_send"];
    return;
  }
  result.shapes["lse_gathered"] = {ranks, rows, ranks * heads.query};
  result.shapes["out_scaled"] = {ranks, rows, heads.query, dim};
  result.shapes["lse_merged"] = {ranks, rows, heads.query};
  if (scenario.dcp.combine == DcpCombine::ag_ar) {
    result.shapes["out_summed"] = {ranks, rows, heads.query, dim};
  }
}

}  // namespace

std::vector<RankIntegers> dcp_integers(const Problem& problem, const Step& step) {
  const TopologySpec& topology = problem.scenario.topology;
  std::vector<RankIntegers> result;
  std::size_t index = 0;
  for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
    const Shard shard{&problem, &step, step_sizes(problem, step), index};
    index = index + 1 == topology.dcp ? 0 : index + 1;
    const Heads heads = rank_heads(problem.scenario, tp_rank);
    RankIntegers integers = rank_integers(shard);
    add_tensor_shapes(integers, problem, shard.sizes, heads);
    integers.shapes["k_pool"][1] = problem.scenario.cache.block_size;
    integers.shapes["v_pool"][1] = problem.scenario.cache.block_size;
    integers.shapes["lse"] = {shard.sizes.padded_tokens, heads.query};
    const bool is_exchanged =
        problem.scenario.dcp.visibility == DcpVisibility::cached || has_context(step);
    if (is_exchanged) add_exchange_shapes(integers, shard, heads);
    result.push_back(integers);
  }
  return result;
}

}  // namespace cpverify::reference
