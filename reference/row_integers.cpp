#include "reference/row_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/row_deal.hpp"
#include "reference/step_integers.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

using Hands = std::vector<std::vector<DealtToken>>;  // [cp rank][token in local row order]

/// The whole split as every rank sees it.
struct Split {
  const Problem* problem = nullptr;
  const Step* step = nullptr;
  StepSizes sizes;
  Hands hands;
  std::int64_t gather_rows = 0;
  std::int64_t physical_rows = 0;
};

std::int64_t longest(const Hands& hands) {
  std::size_t most = 0;
  for (const auto& hand : hands) most = std::max(most, hand.size());
  return static_cast<std::int64_t>(most);
}

Integers pages_of(const Split& split, std::size_t row) {
  const StepRow& entry = split.step->rows[row];
  Integers line(entry.block_table.begin(), entry.block_table.end());
  line.resize(static_cast<std::size_t>(split.sizes.max_pages), 0);
  return line;
}

/// Walks the gathered buffer and notes where each flattened token lies in it.
Integers reorder_index(const Split& split) {
  Integers result(static_cast<std::size_t>(split.sizes.padded_tokens), -1);
  std::int64_t rank_start = 0;
  for (const auto& hand : split.hands) {
    std::int64_t gathered = rank_start;
    for (const DealtToken& dealt : hand) {
      result.at(static_cast<std::size_t>(dealt.token.flat)) = gathered++;
    }
    rank_start += split.gather_rows;
  }
  return result;
}

RankIntegers hand_integers(const Split& split, std::size_t cp_rank) {
  RankIntegers result;
  result.is_cp_on = true;
  add_common(result, *split.step, split.sizes);
  Integers positions;
  for (const DealtToken& dealt : split.hands[cp_rank]) {
    result.row_tokens.push_back(dealt.token.flat);
    positions.push_back(dealt.token.position);
  }
  const auto physical = static_cast<std::size_t>(split.physical_rows);
  result.row_tokens.resize(physical, -1);
  positions.resize(physical, 0);
  Integers counts;
  for (const auto& hand : split.hands) counts.push_back(static_cast<std::int64_t>(hand.size()));
  add_vector(result, "shard_index", result.row_tokens);
  add_vector(result, "positions", positions);
  add_vector(result, "reorder_index", reorder_index(split));
  add_vector(result, "logical_rows", counts);
  add_vector(result, "physical_rows", {split.physical_rows});
  return result;
}

/// Every query on its own; and the requests of which the rank has any row, numbered anew.
void add_queries(RankIntegers& result, const Split& split, const std::vector<DealtToken>& hand) {
  Integers starts{0};
  Integers lengths;
  Integers table;
  std::map<std::size_t, std::int64_t> count_of;  // By row of the step, ascending.
  for (const DealtToken& dealt : hand) {
    starts.push_back(starts.back() + 1);
    lengths.push_back(visible_keys(split.step->rows[dealt.row], dealt.token.index));
    const Integers line = pages_of(split, dealt.row);
    table.insert(table.end(), line.begin(), line.end());
    ++count_of[dealt.row];
  }
  add_vector(result, "cu_seqlens_q", starts);
  add_vector(result, "kv_lens", lengths);
  result.arrays["block_table_rows"] = table;
  result.shapes["block_table_rows"] = {length(lengths), split.sizes.max_pages};

  Integers selected;
  Integers counts;
  Integers full;
  for (const auto& [row, count] : count_of) {
    const StepRow& entry = split.step->rows[row];
    selected.push_back(static_cast<std::int64_t>(row));
    counts.push_back(count);
    full.push_back(entry.computed + entry.scheduled);
  }
  Integers place;
  for (const DealtToken& dealt : hand) {
    place.push_back(std::distance(count_of.begin(), count_of.find(dealt.row)));
  }
  add_vector(result, "selected", selected);
  add_vector(result, "selected_counts", counts);
  add_vector(result, "cu_seqlens_q_selected", prefix_sums(counts));
  add_vector(result, "seq_lens_selected", full);
  add_vector(result, "cu_seqlens_k_selected", prefix_sums(full));
  add_vector(result, "token_to_selected", place);
}

/// Request by request; the last token of a piece sees every key that the piece may see.
void add_pieces(RankIntegers& result, const Split& split, const std::vector<DealtToken>& hand) {
  Integers seqlens_q(split.step->rows.size(), 0);
  Integers seqlens_k(split.step->rows.size(), 0);
  for (const DealtToken& dealt : hand) {
    ++seqlens_q[dealt.row];
    seqlens_k[dealt.row] = std::max(seqlens_k[dealt.row],
                                    visible_keys(split.step->rows[dealt.row], dealt.token.index));
  }
  add_vector(result, "cu_seqlens_q", prefix_sums(seqlens_q));
  add_vector(result, "cu_seqlens_k", prefix_sums(seqlens_k));
  add_vector(result, "kv_lens", seqlens_k);
}

void add_split_shapes(RankIntegers& result, const Split& split, const Heads& heads) {
  const auto dim = static_cast<std::int64_t>(split.problem->scenario.model.head_dim);
  const std::int64_t gathered = split.gather_rows * static_cast<std::int64_t>(split.hands.size());
  result.shapes["q_local"] = {split.physical_rows, heads.query, dim};
  result.shapes["kv_send"] = {split.gather_rows, 2, heads.key_value, dim};
  result.shapes["kv_gathered"] = {gathered, 2, heads.key_value, dim};
  result.shapes["kv_full"] = {split.sizes.padded_tokens, 2, heads.key_value, dim};
  result.shapes["out_local"] = {split.physical_rows, heads.query, dim};
  result.shapes["lse_local"] = {split.physical_rows, heads.query};
  result.shapes["out_gathered"] = {gathered, heads.query, dim};
}

std::vector<RankIntegers> all_ranks(const Split& split, bool is_by_query) {
  const Scenario& scenario = split.problem->scenario;
  std::vector<RankIntegers> result;
  for (std::size_t cp_rank = 0; cp_rank < split.hands.size(); ++cp_rank) {
    RankIntegers integers = hand_integers(split, cp_rank);
    if (is_by_query) {
      add_queries(integers, split, split.hands[cp_rank]);
    } else {
      add_pieces(integers, split, split.hands[cp_rank]);
    }
    for (std::uint32_t tp_rank = 0; tp_rank < scenario.topology.tp; ++tp_rank) {
      const Heads heads = rank_heads(scenario, tp_rank);
      result.push_back(integers);
      add_tensor_shapes(result.back(), *split.problem, split.sizes, heads);
      add_split_shapes(result.back(), split, heads);
    }
  }
  return result;
}

Split make_split(const Problem& problem, const Step& step, Hands hands) {
  Split split;
  split.problem = &problem;
  split.step = &step;
  split.sizes = step_sizes(problem, step);
  split.hands = std::move(hands);
  split.gather_rows = longest(split.hands);
  split.physical_rows = padded(split.gather_rows, static_cast<std::int64_t>(split.hands.size()));
  return split;
}

std::int64_t token_count(const Step& step) {
  std::int64_t count = 0;
  for (const auto& tokens : new_tokens(step)) count += static_cast<std::int64_t>(tokens.size());
  return count;
}

}  // namespace

bool is_interleave_on(const Problem& problem, const Step& step) {
  const std::int64_t cp = problem.scenario.topology.cp;
  return cp > 1 && token_count(step) >= cp;
}

bool is_contiguous_on(const Problem& problem, const Step& step) {
  for (const StepRow& row : step.rows) {
    if (row.state == RowState::decode) return false;
  }
  return is_interleave_on(problem, step);
}

std::vector<RankIntegers> interleave_integers(const Problem& problem, const Step& step) {
  Split split = make_split(problem, step, deal_interleaved(step, problem.scenario.topology.cp));
  split.gather_rows = split.physical_rows;
  return all_ranks(split, true);
}

std::vector<RankIntegers> contiguous_integers(const Problem& problem, const Step& step) {
  return all_ranks(make_split(problem, step, deal_contiguously(step, problem.scenario.topology.cp)),
                   false);
}

}  // namespace cpverify::reference
