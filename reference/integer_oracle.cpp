#include "reference/integer_oracle.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

using Integers = std::vector<std::int64_t>;
using Pieces = std::vector<std::vector<Piece>>;  // [cp rank][piece in local row order]

/// Exclusive prefix sums, one entry more than `counts`.
Integers prefix_sums(const Integers& counts) {
  Integers result{0};
  for (const std::int64_t count : counts) result.push_back(result.back() + count);
  return result;
}

/// The next multiple of `multiple`, by counting up.
std::int64_t padded(std::int64_t count, std::int64_t multiple) {
  while (count % multiple != 0) ++count;
  return count;
}

std::int64_t length(const Integers& values) {
  return static_cast<std::int64_t>(values.size());
}

bool is_cp_on(const Step& step, StrategyKind strategy, std::int64_t cp) {
  if (strategy == StrategyKind::single || cp < 2) return false;
  std::int64_t total = 0;
  for (const StepRow& row : step.rows) {
    if (row.state == RowState::decode) return false;
    if (row.scheduled < 2 * cp) return false;
    total += row.scheduled;
  }
  return total >= 2 * cp;
}

std::int64_t max_pages(const Step& step) {
  std::size_t longest = 0;
  for (const StepRow& row : step.rows) longest = std::max(longest, row.block_table.size());
  return static_cast<std::int64_t>(longest);
}

/// What a rank's heads and buffers need to know of the step.
struct StepSizes {
  std::int64_t padded_tokens = 0;
  std::int64_t num_rows = 0;
  std::int64_t max_pages = 0;
};

StepSizes step_sizes(const Problem& problem, const Step& step) {
  StepSizes sizes;
  for (const auto& tokens : new_tokens(step)) {
    sizes.padded_tokens += static_cast<std::int64_t>(tokens.size());
  }
  sizes.padded_tokens = padded(sizes.padded_tokens, problem.scenario.padding.token_multiple);
  sizes.num_rows = static_cast<std::int64_t>(step.rows.size());
  sizes.max_pages = max_pages(step);
  return sizes;
}

Integers slot_mapping(const Step& step, const StepSizes& sizes) {
  Integers result(static_cast<std::size_t>(sizes.padded_tokens), -1);
  std::size_t flat = 0;
  for (const StepRow& row : step.rows) {
    for (const std::int64_t slot : row.slots) result.at(flat++) = slot;
  }
  return result;
}

Integers block_table(const Step& step, const StepSizes& sizes) {
  Integers result;
  for (const StepRow& row : step.rows) {
    Integers pages(row.block_table.begin(), row.block_table.end());
    pages.resize(static_cast<std::size_t>(sizes.max_pages), 0);
    result.insert(result.end(), pages.begin(), pages.end());
  }
  return result;
}

void add_common(RankIntegers& result, const Step& step, const StepSizes& sizes) {
  result.arrays["slot_mapping"] = slot_mapping(step, sizes);
  result.arrays["block_table"] = block_table(step, sizes);
  result.shapes["slot_mapping"] = {sizes.padded_tokens};
  result.shapes["block_table"] = {sizes.num_rows, sizes.max_pages};
}

/// Arrays that have one dimension are as long as they are long.
void add_vector(RankIntegers& result, const std::string& name, const Integers& values) {
  result.arrays[name] = values;
  result.shapes[name] = {length(values)};
}

RankIntegers single_integers(const Step& step, const StepSizes& sizes) {
  const std::vector<std::vector<NewToken>> all_tokens = new_tokens(step);
  RankIntegers result;
  Integers positions;
  Integers scheduled;
  Integers kv_lens;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    const std::vector<NewToken>& tokens = all_tokens[row];
    for (const NewToken& token : tokens) {
      positions.push_back(token.position);
      result.row_tokens.push_back(token.flat);
    }
    scheduled.push_back(static_cast<std::int64_t>(tokens.size()));
    kv_lens.push_back(tokens.empty() ? step.rows[row].computed
                                     : visible_keys(step.rows[row], tokens.back().index));
  }
  positions.resize(static_cast<std::size_t>(sizes.padded_tokens), 0);
  result.row_tokens.resize(static_cast<std::size_t>(sizes.padded_tokens), -1);
  add_common(result, step, sizes);
  add_vector(result, "positions", positions);
  add_vector(result, "cu_seqlens_q", prefix_sums(scheduled));
  add_vector(result, "cu_seqlens_k", prefix_sums(kv_lens));
  add_vector(result, "kv_lens", kv_lens);
  return result;
}

/// Rows that each CP rank owns, without padding.
Integers owned_rows(const Pieces& pieces) {
  Integers result;
  for (const std::vector<Piece>& rank_pieces : pieces) {
    std::int64_t count = 0;
    for (const Piece& piece : rank_pieces) count += static_cast<std::int64_t>(piece.tokens.size());
    result.push_back(count);
  }
  return result;
}

/// Walks the gathered buffer, C times M rows, and notes where each flattened token lies in it.
Integers reorder_index(const Pieces& pieces, std::int64_t max_rows, std::int64_t padded_tokens) {
  Integers result(static_cast<std::size_t>(padded_tokens), -1);
  std::int64_t rank_start = 0;
  for (const std::vector<Piece>& rank_pieces : pieces) {
    std::int64_t gathered_row = rank_start;
    for (const Piece& piece : rank_pieces) {
      for (const NewToken& token : piece.tokens) {
        result.at(static_cast<std::size_t>(token.flat)) = gathered_row++;
      }
    }
    rank_start += max_rows;
  }
  return result;
}

/// For every (row, block) in destination order, the number of its piece in gathered order.
Integers piece_order(const Pieces& pieces, std::size_t num_rows) {
  const std::size_t num_blocks = 2 * pieces.size();
  Integers result(num_rows * num_blocks, -1);
  std::int64_t number = 0;
  for (const std::vector<Piece>& rank_pieces : pieces) {
    for (const Piece& piece : rank_pieces) {
      result.at(piece.row * num_blocks + piece.block) = number++;
    }
  }
  return result;
}

/// What all ranks hold alike when CP is on, K/V and pool apart.
void add_gather(RankIntegers& result, const Pieces& pieces, const StepSizes& sizes) {
  const Integers rows = owned_rows(pieces);
  const std::int64_t max_rows = *std::ranges::max_element(rows);
  const auto num_blocks = static_cast<std::int64_t>(2 * pieces.size());
  Integers piece_lens;
  for (const std::vector<Piece>& rank_pieces : pieces) {
    for (const Piece& piece : rank_pieces) {
      piece_lens.push_back(static_cast<std::int64_t>(piece.tokens.size()));
    }
  }
  add_vector(result, "logical_rows", rows);
  add_vector(result, "max_rows", {max_rows});
  add_vector(result, "physical_rows", {padded(max_rows, num_blocks)});
  add_vector(result, "piece_lens", piece_lens);
  add_vector(result, "piece_order", piece_order(pieces, static_cast<std::size_t>(sizes.num_rows)));
  add_vector(result, "reorder_index", reorder_index(pieces, max_rows, sizes.padded_tokens));
}

/// Query and key lengths of the early (`suffix` _prev) or late (_next) pieces of one rank. The last
/// token of a block sees every key that the block may see.
void add_half(RankIntegers& result, const Step& step, const std::vector<Piece>& pieces,
              const std::string& suffix) {
  Integers seqlens_q;
  Integers kv_lens;
  for (const Piece& piece : pieces) {
    seqlens_q.push_back(static_cast<std::int64_t>(piece.tokens.size()));
    kv_lens.push_back(visible_keys(step.rows[piece.row], piece.tokens.back().index));
  }
  add_vector(result, "cu_seqlens_q" + suffix, prefix_sums(seqlens_q));
  add_vector(result, "cu_seqlens_k" + suffix, prefix_sums(kv_lens));
  add_vector(result, "kv_lens" + suffix, kv_lens);
}

RankIntegers zigzag_integers(const Step& step, const StepSizes& sizes, const Pieces& pieces,
                             std::size_t cp_rank) {
  RankIntegers result;
  result.is_cp_on = true;
  add_common(result, step, sizes);
  add_gather(result, pieces, sizes);
  Integers positions;
  std::vector<Piece> early;
  std::vector<Piece> late;
  for (const Piece& piece : pieces[cp_rank]) {
    (piece.block < pieces.size() ? early : late).push_back(piece);
    for (const NewToken& token : piece.tokens) {
      result.row_tokens.push_back(token.flat);
      positions.push_back(token.position);
    }
  }
  const auto physical_rows = static_cast<std::size_t>(result.arrays["physical_rows"][0]);
  result.row_tokens.resize(physical_rows, -1);
  positions.resize(physical_rows, 0);
  add_vector(result, "shard_index", result.row_tokens);
  add_vector(result, "positions", positions);
  add_half(result, step, early, "_prev");
  add_half(result, step, late, "_next");
  return result;
}

/// Heads of one TP rank, by listing them.
struct Heads {
  std::int64_t query = 0;
  std::int64_t key_value = 0;
};

/// The rank's share of the query heads, and the KV heads that these read.
Heads rank_heads(const Scenario& scenario, std::uint32_t tp_rank) {
  const ModelSpec& model = scenario.model;
  const std::uint32_t group = model.num_heads_q / model.num_heads_kv;
  const std::uint32_t share = model.num_heads_q / scenario.topology.tp;
  std::set<std::uint32_t> read;
  Heads heads;
  for (std::uint32_t head = 0; head < model.num_heads_q; ++head) {
    if (head / share != tp_rank) continue;
    ++heads.query;
    read.insert(head / group);
  }
  heads.key_value = static_cast<std::int64_t>(read.size());
  return heads;
}

void add_tensor_shapes(RankIntegers& result, const Problem& problem, const StepSizes& sizes,
                       const Heads& heads) {
  const auto head_dim = static_cast<std::int64_t>(problem.scenario.model.head_dim);
  const std::int64_t tokens = sizes.padded_tokens;
  const Integers pool{problem.num_blocks, problem.scenario.cache.block_size, heads.key_value,
                      head_dim};
  result.shapes["q"] = {tokens, heads.query, head_dim};
  result.shapes["k"] = {tokens, heads.key_value, head_dim};
  result.shapes["v"] = {tokens, heads.key_value, head_dim};
  result.shapes["k_pool"] = pool;
  result.shapes["v_pool"] = pool;
  result.shapes["out"] = {tokens, heads.query, head_dim};
  if (!result.is_cp_on) {
    result.shapes["lse"] = {tokens, heads.query};
    return;
  }
  const std::int64_t max_rows = result.arrays["max_rows"][0];
  const std::int64_t physical_rows = result.arrays["physical_rows"][0];
  const std::int64_t gathered_rows = max_rows * length(result.arrays["logical_rows"]);
  result.shapes["q_local"] = {physical_rows, heads.query, head_dim};
  result.shapes["kv_send"] = {max_rows, 2, heads.key_value, head_dim};
  result.shapes["kv_gathered"] = {gathered_rows, 2, heads.key_value, head_dim};
  result.shapes["kv_full"] = {tokens, 2, heads.key_value, head_dim};
  result.shapes["out_local"] = {physical_rows, heads.query, head_dim};
  result.shapes["lse_local"] = {physical_rows, heads.query};
  result.shapes["out_gathered"] = {gathered_rows, heads.query, head_dim};
}

}  // namespace

std::vector<RankIntegers> expected_integers(const Problem& problem, std::uint32_t step_index,
                                            StrategyKind strategy) {
  const Step& step = problem.steps.at(step_index);
  const TopologySpec& topology = problem.scenario.topology;
  const StepSizes sizes = step_sizes(problem, step);
  const std::uint32_t cp = strategy == StrategyKind::single ? 1 : topology.cp;
  const bool is_on = is_cp_on(step, strategy, cp);
  const Pieces pieces = is_on ? deal_zigzag(step, cp) : Pieces{};
  std::vector<RankIntegers> result;
  for (std::uint32_t cp_rank = 0; cp_rank < cp; ++cp_rank) {
    const RankIntegers integers =
        is_on ? zigzag_integers(step, sizes, pieces, cp_rank) : single_integers(step, sizes);
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      result.push_back(integers);
      add_tensor_shapes(result.back(), problem, sizes, rank_heads(problem.scenario, tp_rank));
    }
  }
  return result;
}

std::int64_t visible_keys(const StepRow& row, std::int64_t new_token_index) {
  return row.computed + new_token_index + 1;
}

std::vector<SlotOwner> expected_slots(const Problem& problem, std::uint32_t step) {
  const std::size_t num_slots =
      static_cast<std::size_t>(problem.num_blocks) * problem.scenario.cache.block_size;
  std::vector<SlotOwner> result(num_slots);
  for (const CachedToken& token : problem.cached) {
    result.at(static_cast<std::size_t>(token.slot)) = {
        .is_written = true, .request = token.request, .position = token.position};
  }
  for (std::uint32_t index = 0; index <= step; ++index) {
    for (const StepRow& row : problem.steps.at(index).rows) {
      std::int64_t position = row.computed;
      for (const std::int64_t slot : row.slots) {
        result.at(static_cast<std::size_t>(slot)) = {
            .is_written = true, .request = row.request, .position = position++};
      }
    }
  }
  return result;
}

}  // namespace cpverify::reference
