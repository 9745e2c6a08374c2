#include "reference/ring_integers.hpp"

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

/// Every row cut into as many runs of tokens as there are ranks: each rank gets one token more for
/// every round of dealing that reaches it.
Pieces deal_contiguous(const Step& step, std::size_t cp) {
  Pieces result(cp);
  std::size_t row = 0;
  for (const std::vector<NewToken>& tokens : new_tokens(step)) {
    std::vector<std::size_t> counts(cp, 0);
    std::size_t turn = 0;
    for (std::size_t dealt = 0; dealt < tokens.size(); ++dealt) {
      ++counts[turn];
      turn = turn + 1 == cp ? 0 : turn + 1;
    }
    auto next = tokens.begin();
    for (std::size_t rank = 0; rank < cp; ++rank) {
      const auto end = next + static_cast<std::ptrdiff_t>(counts[rank]);
      result[rank].push_back({.row = row, .block = rank, .tokens = {next, end}});
      next = end;
    }
    ++row;
  }
  return result;
}

/// A token that a rank holds, in local row order.
struct HeldToken {
  std::size_t row = 0;
  NewToken token;
};

std::vector<HeldToken> held_tokens(const std::vector<Piece>& pieces) {
  std::vector<HeldToken> result;
  for (const Piece& piece : pieces) {
    for (const NewToken& token : piece.tokens) result.push_back({piece.row, token});
  }
  return result;
}

/// What one rank's oracle needs.
struct RingRank {
  const Problem* problem = nullptr;
  const Step* step = nullptr;
  StepSizes sizes;
  Pieces pieces;
  std::size_t cp_rank = 0;
  std::int64_t max_rows = 0;

  [[nodiscard]] const std::vector<Piece>& own() const { return pieces[cp_rank]; }
};

Integers to_max_rows(Integers values, const RingRank& rank, std::int64_t fill) {
  values.resize(static_cast<std::size_t>(rank.max_rows), fill);
  return values;
}

/// The arrays of one hop, by asking every token of the block whether a piece's last query sees it.
void add_hop(RankIntegers& result, const RingRank& rank, std::size_t hop) {
  std::size_t source = rank.cp_rank;
  for (std::size_t i = 0; i < hop; ++i) source = source == 0 ? rank.pieces.size() - 1 : source - 1;
  const std::vector<HeldToken> block = held_tokens(rank.pieces[source]);
  Integers slots;
  for (const HeldToken& held : block) {
    slots.push_back(rank.step->rows[held.row].slots.at(static_cast<std::size_t>(held.token.index)));
  }
  const std::string suffix = "_hop" + std::to_string(hop);
  add_vector(result, "slots" + suffix, to_max_rows(slots, rank, -1));

  std::vector<Integers> seen;
  std::size_t widest = 0;
  for (const Piece& piece : rank.own()) {
    Integers& rows = seen.emplace_back();
    if (piece.tokens.empty()) continue;
    const std::int64_t last = piece.tokens.back().position;
    for (std::size_t i = 0; i < block.size(); ++i) {
      const bool is_seen = block[i].row == piece.row && block[i].token.position <= last;
      if (is_seen) rows.push_back(static_cast<std::int64_t>(i));
    }
    widest = std::max(widest, rows.size());
  }
  if (widest == 0) return;
  Integers lengths;
  Integers table;
  for (Integers& rows : seen) {
    lengths.push_back(length(rows));
    rows.resize(widest, 0);
    table.insert(table.end(), rows.begin(), rows.end());
  }
  add_vector(result, "kv_lens" + suffix, lengths);
  result.arrays["block_table" + suffix] = table;
  result.shapes["block_table" + suffix] = {length(lengths), static_cast<std::int64_t>(widest)};
}

/// Every piece sees all that its request had in the cache.
void add_prefix(RankIntegers& result, const RingRank& rank) {
  Integers lengths;
  Integers table;
  for (const Piece& piece : rank.own()) {
    const StepRow& row = rank.step->rows[piece.row];
    lengths.push_back(row.computed);
    Integers pages(row.block_table.begin(), row.block_table.end());
    pages.resize(static_cast<std::size_t>(rank.sizes.max_pages), 0);
    table.insert(table.end(), pages.begin(), pages.end());
  }
  if (std::ranges::all_of(lengths, [](std::int64_t count) { return count == 0; })) return;
  add_vector(result, "kv_lens_prefix", lengths);
  result.arrays["block_table_prefix"] = table;
  result.shapes["block_table_prefix"] = {length(lengths), rank.sizes.max_pages};
}

/// Where each flattened token lies when all ranks' rows stand one after the other.
Integers reorder_index(const RingRank& rank) {
  Integers result(static_cast<std::size_t>(rank.sizes.padded_tokens), -1);
  std::int64_t start = 0;
  for (const std::vector<Piece>& pieces : rank.pieces) {
    std::int64_t place = start;
    for (const HeldToken& held : held_tokens(pieces)) {
      result.at(static_cast<std::size_t>(held.token.flat)) = place++;
    }
    start += rank.max_rows;
  }
  return result;
}

RankIntegers rank_integers(const RingRank& rank) {
  RankIntegers result;
  result.is_cp_on = true;
  add_common(result, *rank.step, rank.sizes);
  Integers positions;
  Integers own_rows;
  for (const HeldToken& held : held_tokens(rank.own())) {
    own_rows.push_back(length(own_rows));
    result.row_tokens.push_back(held.token.flat);
    positions.push_back(held.token.position);
  }
  result.row_tokens = to_max_rows(result.row_tokens, rank, -1);
  Integers piece_sizes;
  for (const Piece& piece : rank.own()) {
    piece_sizes.push_back(static_cast<std::int64_t>(piece.tokens.size()));
  }
  Integers logical_rows;
  for (const std::vector<Piece>& pieces : rank.pieces) {
    logical_rows.push_back(static_cast<std::int64_t>(held_tokens(pieces).size()));
  }
  add_vector(result, "shard_index", result.row_tokens);
  add_vector(result, "positions", to_max_rows(positions, rank, 0));
  add_vector(result, "merge_index", to_max_rows(own_rows, rank, -1));
  add_vector(result, "logical_rows", logical_rows);
  add_vector(result, "max_rows", {rank.max_rows});
  add_vector(result, "reorder_index", reorder_index(rank));
  add_vector(result, "cu_seqlens_q", prefix_sums(piece_sizes));
  add_prefix(result, rank);
  for (std::size_t hop = 0; hop < rank.pieces.size(); ++hop) add_hop(result, rank, hop);
  return result;
}

void add_ring_shapes(RankIntegers& result, const RingRank& rank, const Heads& heads) {
  const auto dim = static_cast<std::int64_t>(rank.problem->scenario.model.head_dim);
  const std::int64_t rows = rank.max_rows;
  for (const char* name : {"q_local", "out_partial", "out_running", "out_local"}) {
    result.shapes[name] = {rows, heads.query, dim};
  }
  for (const char* name : {"lse_partial", "lse_running", "lse_local"}) {
    result.shapes[name] = {rows, heads.query};
  }
  for (const char* name : {"kv_block_even", "kv_block_odd"}) {
    result.shapes[name] = {2, rows, heads.key_value, dim};
  }
  result.shapes["out_gathered"] = {rows * static_cast<std::int64_t>(rank.pieces.size()),
                                   heads.query, dim};
}

}  // namespace

bool is_ring_on(const Problem& problem, const Step& step) {
  if (problem.scenario.topology.cp == 1) return false;
  return std::ranges::any_of(step.rows, [](const StepRow& row) {
    return row.state != RowState::decode && row.scheduled != 0;
  });
}

std::vector<RankIntegers> ring_integers(const Problem& problem, const Step& step,
                                        StrategyKind strategy) {
  const TopologySpec& topology = problem.scenario.topology;
  RingRank rank{&problem, &step, step_sizes(problem, step), {}, 0, 0};
  rank.pieces = strategy == StrategyKind::ring ? deal_zigzag(step, topology.cp)
                                               : deal_contiguous(step, topology.cp);
  for (const std::vector<Piece>& pieces : rank.pieces) {
    rank.max_rows = std::max(rank.max_rows, static_cast<std::int64_t>(held_tokens(pieces).size()));
  }
  std::vector<RankIntegers> result;
  for (rank.cp_rank = 0; rank.cp_rank < topology.cp; ++rank.cp_rank) {
    const RankIntegers integers = rank_integers(rank);
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      const Heads heads = rank_heads(problem.scenario, tp_rank);
      result.push_back(integers);
      add_tensor_shapes(result.back(), problem, rank.sizes, heads);
      add_ring_shapes(result.back(), rank, heads);
    }
  }
  return result;
}

}  // namespace cpverify::reference
