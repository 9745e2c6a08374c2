#include "reference/pcp_dcp_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/kv_deal.hpp"
#include "reference/pcp_deal.hpp"
#include "reference/step_integers.hpp"
#include "reference/virtual_batch_deal.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

/// One rank's place and all that it has to know.
struct ProductRank {
  const Problem* problem = nullptr;
  const Step* step = nullptr;
  const Deal* deal = nullptr;
  StepSizes sizes;
  std::size_t cp_rank = 0;
  std::size_t shard = 0;
  std::int64_t slices = 1;  ///< Ranks whose heads meet.

  [[nodiscard]] const std::vector<Segment>& segments() const { return deal->ranks.at(cp_rank); }
};

bool has_context(const Step& step) {
  return std::ranges::any_of(step.rows, [](const StepRow& row) { return row.computed > 0; });
}

/// Of every token the first place in what the ranks' rows, padded to the most, are together.
void add_rank_maps(RankIntegers& result, const ProductRank& rank) {
  Integers counts;
  Integers restore(static_cast<std::size_t>(rank.sizes.padded_tokens), -1);
  std::int64_t first = 0;
  for (const std::vector<Segment>& segments : rank.deal->ranks) {
    std::int64_t row = first;
    for (const Segment& segment : segments) {
      for (const NewToken& token : segment.tokens) {
        std::int64_t& place = restore.at(static_cast<std::size_t>(token.flat));
        if (place == -1) place = row;
        ++row;
      }
    }
    counts.push_back(row - first);
    first += rank.deal->max_tokens;
  }
  add_vector(result, "rank_rows", counts);
  add_vector(result, "max_rows", {rank.deal->max_tokens});
  add_vector(result, "hidden_restore", restore);
}

Integers stored_slots(const ProductRank& rank) {
  const std::vector<ShardSlot> dealt = deal_slots(*rank.problem);
  Integers result;
  for (const std::int64_t slot : new_slots(*rank.step)) {
    const ShardSlot& place = dealt.at(static_cast<std::size_t>(slot));
    result.push_back(place.shard == rank.shard ? place.slot : -1);
  }
  result.resize(static_cast<std::size_t>(rank.sizes.padded_tokens), -1);
  return result;
}

void add_local_rows(RankIntegers& result, const ProductRank& rank) {
  Integers positions;
  for (const Segment& segment : rank.segments()) {
    for (const NewToken& token : segment.tokens) {
      result.row_tokens.push_back(token.flat);
      positions.push_back(token.position);
    }
  }
  const auto rows = static_cast<std::size_t>(rank.deal->max_tokens);
  result.row_tokens.resize(rows, -1);
  positions.resize(rows, 0);
  add_vector(result, "local_index", result.row_tokens);
  add_vector(result, "positions", positions);
}

/// Every row of the rank with the new tokens of its request that its last token sees.
void add_new_part(RankIntegers& result, const ProductRank& rank) {
  const std::vector<std::vector<NewToken>> tokens = new_tokens(*rank.step);
  Integers counts;
  Integers lengths;
  std::int64_t longest = 1;
  for (const Segment& segment : rank.segments()) {
    counts.push_back(static_cast<std::int64_t>(segment.tokens.size()));
    lengths.push_back(segment.tokens.back().index + 1);
    longest = std::max(longest, lengths.back());
  }
  Integers table;
  for (const Segment& segment : rank.segments()) {
    Integers line;
    for (const NewToken& token : tokens[segment.row]) {
      if (token.index <= segment.tokens.back().index) line.push_back(token.flat);
    }
    line.resize(static_cast<std::size_t>(longest), 0);
    table.insert(table.end(), line.begin(), line.end());
  }
  add_vector(result, "row_cu_seqlens_q", prefix_sums(counts));
  add_vector(result, "kv_lens_new", lengths);
  result.arrays["block_table_new"] = table;
  result.shapes["block_table_new"] = {length(lengths), longest};
}

void add_context(RankIntegers& result, const ProductRank& rank) {
  const std::vector<std::vector<NewToken>> tokens = new_tokens(*rank.step);
  Integers scheduled;
  Integers context;
  Integers merged(static_cast<std::size_t>(rank.sizes.padded_tokens), -1);
  for (std::size_t row = 0; row < tokens.size(); ++row) {
    scheduled.push_back(static_cast<std::int64_t>(tokens[row].size()));
    context.push_back(deal_length(*rank.problem, rank.step->rows[row].computed).at(rank.shard));
  }
  std::int64_t local = 0;
  for (const Segment& segment : rank.segments()) {
    for (const NewToken& token : segment.tokens) {
      const bool has_any = rank.step->rows[segment.row].computed > 0;
      if (has_any) merged.at(static_cast<std::size_t>(token.flat)) = local;
      ++local;
    }
  }
  add_vector(result, "cu_seqlens_q", prefix_sums(scheduled));
  add_vector(result, "kv_lens_context", context);
  add_vector(result, "merge_index", merged);
  if (rank.slices == 1) return;
  Integers order;
  for (std::int64_t row = 0; row < rank.sizes.padded_tokens; ++row) {
    for (std::int64_t slice = 0; slice < rank.slices; ++slice) {
      order.push_back(slice * rank.sizes.padded_tokens + row);
    }
  }
  add_vector(result, "head_order", order);
}

void add_shapes(RankIntegers& result, const ProductRank& rank, const Heads& heads) {
  const Scenario& scenario = rank.problem->scenario;
  const auto dim = static_cast<std::int64_t>(scenario.model.head_dim);
  const std::int64_t cp = scenario.topology.cp;
  const std::int64_t local = rank.deal->max_tokens;
  const std::int64_t rows = rank.sizes.padded_tokens;
  for (const char* pool : {"k_pool", "v_pool"}) {
    result.shapes[pool][1] = scenario.cache.block_size;
  }
  result.shapes["q_local"] = {local, heads.query, dim};
  result.shapes["kv_local"] = {local, 2, heads.key_value, dim};
  result.shapes["kv_gathered"] = {cp * local, 2, heads.key_value, dim};
  result.shapes["k_full"] = {rows, heads.key_value, dim};
  result.shapes["v_full"] = {rows, heads.key_value, dim};
  result.shapes["out_local"] = {local, heads.query, dim};
  result.shapes["lse_local"] = {local, heads.query};
  result.shapes["out_gathered"] = {cp * local, heads.query, dim};
  if (!has_context(*rank.step)) return;
  // The 32 bits of an LSE take the place of one f32 or of two 16-bit elements.
  const std::int64_t packed = dim + (scenario.model.dtype == DType::f32 ? 1 : 2);
  result.shapes["q_rows_gathered"] = {cp * local, heads.query, dim};
  result.shapes["q_rows"] = {rows, heads.query, dim};
  result.shapes["out_partial"] = {rows, rank.slices * heads.query, dim};
  result.shapes["lse_partial"] = {rows, rank.slices * heads.query};
  result.shapes["out_context"] = {rows, heads.query, dim};
  result.shapes["lse_context"] = {rows, heads.query};
  result.shapes["packed_send"] = {rank.slices, rows, heads.query, packed};
  result.shapes["packed_all"] = {cp, rank.slices, rows, heads.query, packed};
  if (rank.slices == 1) return;
  result.shapes["q_gathered"] = {rank.slices, rows, heads.query, dim};
  result.shapes["q_all"] = {rows, rank.slices * heads.query, dim};
  result.shapes["packed_recv"] = result.shapes["packed_send"];
}

}  // namespace

std::vector<std::size_t> product_shards(const TopologySpec& topology) {
  std::vector<std::size_t> shards(std::size_t{topology.cp} * topology.tp);
  std::size_t next = 0;
  const auto give = [&](std::uint32_t cp_rank, std::uint32_t tp_rank) {
    shards.at(cp_rank * topology.tp + tp_rank) = next;
    next = next + 1 == topology.kv_shards() ? 0 : next + 1;
  };
  if (topology.kv_sharding == KvSharding::dcp_over_pcp) {
    // Prefill ranks are counted first.
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) give(cp_rank, tp_rank);
    }
    return shards;
  }
  // Decode groups are counted first, prefill rank by prefill rank.
  for (std::uint32_t first = 0; first < topology.tp; first += topology.dcp) {
    for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
      for (std::uint32_t i = 0; i < topology.dcp; ++i) give(cp_rank, first + i);
    }
  }
  return shards;
}

std::vector<RankIntegers> pcp_dcp_integers(const Problem& problem, const Step& step) {
  const TopologySpec& topology = problem.scenario.topology;
  const std::vector<std::size_t> shards = product_shards(topology);
  const Deal deal = deal_virtual(step, topology.cp);
  const bool is_over = topology.kv_sharding == KvSharding::dcp_over_pcp;
  const std::int64_t slices =
      !is_over ? topology.dcp : (topology.dcp > topology.cp ? topology.tp : 1);
  std::vector<RankIntegers> result;
  for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      const ProductRank rank{
          &problem, &step, &deal, step_sizes(problem, step), cp_rank, shards.at(result.size()),
          slices};
      const Heads heads = rank_heads(problem.scenario, tp_rank);
      RankIntegers integers;
      integers.is_cp_on = true;
      add_common(integers, step, rank.sizes);
      integers.arrays["slot_mapping"] = stored_slots(rank);
      add_rank_maps(integers, rank);
      add_local_rows(integers, rank);
      add_new_part(integers, rank);
      if (has_context(step)) add_context(integers, rank);
      add_tensor_shapes(integers, problem, rank.sizes, heads);
      add_shapes(integers, rank, heads);
      result.push_back(integers);
    }
  }
  return result;
}

}  // namespace cpverify::reference
