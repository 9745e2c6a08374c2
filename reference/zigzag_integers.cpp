#include "reference/zigzag_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/step_integers.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

using Pieces = std::vector<std::vector<Piece>>;  // [cp rank][piece in local row order]

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

RankIntegers cp_rank_integers(const Step& step, const StepSizes& sizes, const Pieces& pieces,
                              std::size_t cp_rank, bool is_combined) {
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
  if (!is_combined) {
    add_half(result, step, early, "_prev");
    add_half(result, step, late, "_next");
    return result;
  }
  std::vector<Piece> both = early;
  both.insert(both.end(), late.begin(), late.end());
  add_half(result, step, both, "_combined");
  Integers table = result.arrays["block_table"];
  const Integers once = table;
  table.insert(table.end(), once.begin(), once.end());
  result.arrays["block_table_combined"] = table;
  result.shapes["block_table_combined"] = {2 * sizes.num_rows, sizes.max_pages};
  return result;
}

void add_zigzag_shapes(RankIntegers& result, const Problem& problem, const StepSizes& sizes,
                       const Heads& heads) {
  const auto head_dim = static_cast<std::int64_t>(problem.scenario.model.head_dim);
  const std::int64_t max_rows = result.arrays["max_rows"][0];
  const std::int64_t physical_rows = result.arrays["physical_rows"][0];
  const std::int64_t gathered_rows = max_rows * length(result.arrays["logical_rows"]);
  result.shapes["q_local"] = {physical_rows, heads.query, head_dim};
  result.shapes["kv_send"] = {max_rows, 2, heads.key_value, head_dim};
  result.shapes["kv_gathered"] = {gathered_rows, 2, heads.key_value, head_dim};
  result.shapes["kv_full"] = {sizes.padded_tokens, 2, heads.key_value, head_dim};
  result.shapes["out_local"] = {physical_rows, heads.query, head_dim};
  result.shapes["lse_local"] = {physical_rows, heads.query};
  result.shapes["out_gathered"] = {gathered_rows, heads.query, head_dim};
}

}  // namespace

bool is_zigzag_on(const Problem& problem, const Step& step) {
  const std::int64_t cp = problem.scenario.topology.cp;
  if (cp < 2) return false;
  std::int64_t total = 0;
  for (const StepRow& row : step.rows) {
    if (row.state == RowState::decode) return false;
    if (row.scheduled < 2 * cp) return false;
    total += row.scheduled;
  }
  return total >= 2 * cp;
}

std::vector<RankIntegers> zigzag_integers(const Problem& problem, const Step& step,
                                          bool is_combined) {
  const TopologySpec& topology = problem.scenario.topology;
  const StepSizes sizes = step_sizes(problem, step);
  const Pieces pieces = deal_zigzag(step, topology.cp);
  std::vector<RankIntegers> result;
  for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
    const RankIntegers integers = cp_rank_integers(step, sizes, pieces, cp_rank, is_combined);
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      const Heads heads = rank_heads(problem.scenario, tp_rank);
      result.push_back(integers);
      add_tensor_shapes(result.back(), problem, sizes, heads);
      add_zigzag_shapes(result.back(), problem, sizes, heads);
    }
  }
  return result;
}

}  // namespace cpverify::reference
