#include "reference/pcp_virtual_batch_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/pcp_deal.hpp"
#include "reference/step_integers.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

/// Tokens of one request that a rank computes as one row.
using Segment = Piece;

/// Every rank's segments in local order.
struct Deal {
  std::vector<std::vector<Segment>> ranks;
  std::int64_t decode_tokens = 0;
  std::int64_t max_tokens = 0;  ///< Of any rank.
};

/// The segments of one prefill: token after token goes to the chunk it lies in, and a chunk to the
/// rank whose number it has when ranks are counted up and then down again.
void deal_prefill(std::vector<std::vector<Segment>>& ranks, const std::vector<NewToken>& tokens,
                  std::size_t row) {
  const std::size_t chunks = 2 * ranks.size();
  const std::int64_t size = chunk_length(tokens.size(), chunks);
  for (const NewToken& token : tokens) {
    const auto chunk = static_cast<std::size_t>(token.index / size);
    std::vector<Segment>& own = ranks[std::min(chunk, chunks - 1 - chunk)];
    if (own.empty() || own.back().row != row || own.back().block != chunk) {
      own.push_back({row, chunk, {}});
    }
    own.back().tokens.push_back(token);
  }
}

Deal deal_virtual(const Step& step, std::size_t pcp) {
  const std::vector<std::vector<NewToken>> tokens = new_tokens(step);
  std::vector<std::vector<Segment>> prefills(pcp);
  for (const std::size_t row : rows_in(step, RowState::prefill)) {
    deal_prefill(prefills, tokens[row], row);
  }
  Deal deal;
  for (const std::vector<Segment>& own : prefills) {
    std::vector<Segment>& rank = deal.ranks.emplace_back();
    deal.decode_tokens = 0;
    for (const std::size_t row : rows_in(step, RowState::decode)) {
      rank.push_back({row, 0, tokens[row]});
      deal.decode_tokens += static_cast<std::int64_t>(tokens[row].size());
    }
    for (const bool is_fresh : {false, true}) {
      for (const Segment& segment : own) {
        if ((segment.tokens.front().position == 0) == is_fresh) rank.push_back(segment);
      }
    }
    std::int64_t count = 0;
    for (const Segment& segment : rank) count += static_cast<std::int64_t>(segment.tokens.size());
    deal.max_tokens = std::max(deal.max_tokens, count);
  }
  return deal;
}

/// The maps between the gathered rows of all ranks and the step, and the slots that they are for.
struct Maps {
  Integers counts;
  Integers restore;
  Integers gather;
  Integers mask;
  Integers slots;
  Integers decode_slots;
  Integers prefill_slots;

  void add_token(std::int64_t flat, std::int64_t slot, bool is_decode) {
    std::int64_t& place = restore.at(static_cast<std::size_t>(flat));
    const bool is_first = place == -1;
    if (is_first) place = length(gather);
    gather.push_back(flat);
    mask.push_back(is_first ? 1 : 0);
    slots.push_back(is_first ? slot : -1);
    if (!is_decode) prefill_slots.push_back(slot);
    if (is_decode && is_first) decode_slots.push_back(slot);
  }

  void add_pad() {
    gather.push_back(0);
    mask.push_back(0);
    slots.push_back(-1);
    prefill_slots.push_back(-1);
  }
};

Maps maps_of(const Step& step, const Deal& deal, const StepSizes& sizes) {
  const Integers slots = new_slots(step);
  Maps maps;
  maps.restore.resize(static_cast<std::size_t>(sizes.padded_tokens), -1);
  for (const std::vector<Segment>& rank : deal.ranks) {
    const std::int64_t first = length(maps.gather);
    for (const Segment& segment : rank) {
      const bool is_decode = step.rows[segment.row].state == RowState::decode;
      for (const NewToken& token : segment.tokens) {
        maps.add_token(token.flat, slots[static_cast<std::size_t>(token.flat)], is_decode);
      }
    }
    maps.counts.push_back(length(maps.gather) - first);
    while (length(maps.gather) < first + deal.max_tokens) maps.add_pad();
  }
  return maps;
}

void add_maps(RankIntegers& result, const Step& step, const Deal& deal, const StepSizes& sizes) {
  Maps maps = maps_of(step, deal, sizes);
  Integers& kv_slots = maps.decode_slots;
  kv_slots.insert(kv_slots.end(), maps.prefill_slots.begin(), maps.prefill_slots.end());
  add_vector(result, "rank_rows", maps.counts);
  add_vector(result, "max_rows", {deal.max_tokens});
  add_vector(result, "decode_rows", {deal.decode_tokens});
  add_vector(result, "hidden_restore", maps.restore);
  add_vector(result, "gather_index", maps.gather);
  add_vector(result, "kv_write_mask", maps.mask);
  add_vector(result, "gathered_slots", maps.slots);
  add_vector(result, "kv_slots", kv_slots);
}

/// The rank's own rows.
void add_rows(RankIntegers& result, const Step& step, const std::vector<Segment>& segments,
              const StepSizes& sizes) {
  Integers counts;
  Integers starts;
  Integers kv_lens;
  Integers table;
  for (const Segment& segment : segments) {
    const StepRow& row = step.rows[segment.row];
    counts.push_back(static_cast<std::int64_t>(segment.tokens.size()));
    starts.push_back(segment.tokens.front().position);
    kv_lens.push_back(visible_keys(row, segment.tokens.back().index));
    Integers pages(row.block_table.begin(), row.block_table.end());
    pages.resize(static_cast<std::size_t>(sizes.max_pages), 0);
    table.insert(table.end(), pages.begin(), pages.end());
  }
  if (segments.empty()) {
    counts = starts = kv_lens = {0};
    table.assign(static_cast<std::size_t>(sizes.max_pages), 0);
  }
  add_vector(result, "row_cu_seqlens_q", prefix_sums(counts));
  add_vector(result, "row_starts", starts);
  add_vector(result, "row_kv_lens", kv_lens);
  result.arrays["row_block_table"] = table;
  result.shapes["row_block_table"] = {length(counts), sizes.max_pages};
}

RankIntegers rank_integers(const Step& step, const StepSizes& sizes, const Deal& deal,
                           std::size_t cp_rank) {
  RankIntegers result;
  result.is_cp_on = true;
  add_common(result, step, sizes);
  add_maps(result, step, deal, sizes);
  add_rows(result, step, deal.ranks[cp_rank], sizes);
  Integers positions;
  for (const Segment& segment : deal.ranks[cp_rank]) {
    for (const NewToken& token : segment.tokens) {
      result.row_tokens.push_back(token.flat);
      positions.push_back(token.position);
    }
  }
  const auto padded_rows = static_cast<std::size_t>(deal.max_tokens);
  result.row_tokens.resize(padded_rows, -1);
  positions.resize(padded_rows, 0);
  add_vector(result, "local_index", result.row_tokens);
  add_vector(result, "positions", positions);
  return result;
}

void add_shapes(RankIntegers& result, const Problem& problem, const Deal& deal,
                const Heads& heads) {
  const auto dim = static_cast<std::int64_t>(problem.scenario.model.head_dim);
  const std::int64_t rows = deal.max_tokens;
  result.shapes["q_local"] = {rows, heads.query, dim};
  result.shapes["kv_local"] = {rows, 2, heads.key_value, dim};
  result.shapes["kv_written"] = {length(result.arrays["kv_slots"]), 2, heads.key_value, dim};
  result.shapes["out_local"] = {rows, heads.query, dim};
  result.shapes["lse_local"] = {rows, heads.query};
  result.shapes["out_gathered"] = {length(result.arrays["gather_index"]), heads.query, dim};
}

}  // namespace

std::vector<RankIntegers> pcp_virtual_batch_integers(const Problem& problem, const Step& step) {
  const TopologySpec& topology = problem.scenario.topology;
  const StepSizes sizes = step_sizes(problem, step);
  const Deal deal = deal_virtual(step, topology.cp);
  std::vector<RankIntegers> result;
  for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
    const RankIntegers integers = rank_integers(step, sizes, deal, cp_rank);
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      const Heads heads = rank_heads(problem.scenario, tp_rank);
      result.push_back(integers);
      add_tensor_shapes(result.back(), problem, sizes, heads);
      add_shapes(result.back(), problem, deal, heads);
    }
  }
  return result;
}

}  // namespace cpverify::reference
