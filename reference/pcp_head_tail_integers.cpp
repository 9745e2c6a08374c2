#include "reference/pcp_head_tail_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/kv_deal.hpp"
#include "reference/pcp_deal.hpp"
#include "reference/step_integers.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

/// A row of the padded batch.
struct Seat {
  std::size_t row = 0;  ///< Of the step.
  std::size_t rank = 0;
  std::size_t chunk = 0;
  bool is_decode = false;
  std::optional<NewToken> token;  ///< Nothing in padding.
};

/// The padded batch: each decode once for every rank, then each prefill with so many pads that 2P
/// chunks are equally long. A chunk is its rank's when ranks are counted up and then down again.
std::vector<Seat> padded_batch(const Step& step, std::size_t ranks) {
  const std::vector<std::vector<NewToken>> tokens = new_tokens(step);
  std::vector<Seat> seats;
  for (const std::size_t row : rows_in(step, RowState::decode)) {
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      for (const NewToken& token : tokens[row]) seats.push_back({row, rank, 0, true, token});
    }
  }
  const std::size_t chunks = 2 * ranks;
  for (const std::size_t row : rows_in(step, RowState::prefill)) {
    const auto size = static_cast<std::size_t>(chunk_length(tokens[row].size(), chunks));
    for (std::size_t place = 0; place < chunks * size; ++place) {
      Seat& seat = seats.emplace_back();
      seat.row = row;
      seat.chunk = place / size;
      seat.rank = std::min(seat.chunk, chunks - 1 - seat.chunk);
      if (place < tokens[row].size()) seat.token = tokens[row][place];
    }
  }
  return seats;
}

/// One rank's view of the padded batch.
class HeadTailRank {
 public:
  HeadTailRank(const Problem& problem, const Step& step, std::size_t rank)
      : problem_{problem},
        step_{step},
        sizes_{step_sizes(problem, step)},
        rank_{rank},
        ranks_{problem.scenario.topology.cp},
        seats_{padded_batch(step, ranks_)} {
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      if (seats_[i].rank == rank_) local_order_.push_back(i);
    }
    // Decodes, heads, tails. A rank's head has its own number.
    for (const int part : {0, 1, 2}) {
      for (const std::size_t i : local_order_) {
        const int half = seats_[i].chunk == rank_ ? 1 : 2;
        if ((seats_[i].is_decode ? 0 : half) == part) half_order_.push_back(i);
      }
    }
  }

  [[nodiscard]] RankIntegers integers() const {
    RankIntegers result;
    result.is_cp_on = true;
    add_common(result, step_, sizes_);
    result.arrays["slot_mapping"] = own_slots();
    for (const std::size_t i : half_order_) result.row_tokens.push_back(flat(seats_[i]));
    add_orders(result);
    if (!decode_rows().empty()) add_decodes(result);
    if (prefill_rows().empty()) return result;
    add_prefills(result);
    if (has_context()) add_context(result);
    return result;
  }

  void add_shapes(RankIntegers& result, const Heads& heads) const {
    const auto dim = static_cast<std::int64_t>(problem_.scenario.model.head_dim);
    const auto local = static_cast<std::int64_t>(local_order_.size());
    const auto all = static_cast<std::int64_t>(seats_.size());
    const auto set_rows = [&](const char* name, std::int64_t rows) {
      result.shapes[name] = {rows, heads.query, dim};
    };
    for (const char* name : {"k_pool", "v_pool"}) {
      result.shapes[name][1] = problem_.scenario.cache.block_size;
    }
    for (const char* name : {"q_local", "q_head_tail", "out_local", "out_rows"}) {
      set_rows(name, local);
    }
    set_rows("out_gathered", all);
    set_rows("out_restored", all);
    result.shapes["lse_local"] = {local, heads.query};
    result.shapes["kv_local"] = {local, 2, heads.key_value, dim};
    if (prefill_rows().empty()) return;
    result.shapes["kv_gathered"] = {all, 2, heads.key_value, dim};
    result.shapes["k_restored"] = {all, heads.key_value, dim};
    result.shapes["v_restored"] = {all, heads.key_value, dim};
    set_rows("out_nomask", local);
    set_rows("out_mask", local);
    result.shapes["lse_nomask"] = {local, heads.query};
    result.shapes["lse_mask"] = {local, heads.query};
    if (!has_context()) return;
    const std::int64_t prefills = all - num_replicas();
    for (const char* name : {"q_gathered", "q_restored", "out_context"}) set_rows(name, prefills);
    result.shapes["lse_context"] = {prefills, heads.query};
  }

 private:
  [[nodiscard]] std::vector<std::size_t> decode_rows() const {
    return rows_in(step_, RowState::decode);
  }
  [[nodiscard]] std::vector<std::size_t> prefill_rows() const {
    return rows_in(step_, RowState::prefill);
  }
  [[nodiscard]] bool has_context() const {
    return std::ranges::any_of(prefill_rows(),
                               [this](std::size_t row) { return step_.rows[row].computed > 0; });
  }
  static std::int64_t flat(const Seat& seat) { return seat.token ? seat.token->flat : -1; }
  [[nodiscard]] std::int64_t num_replicas() const {
    return std::ranges::count_if(seats_, [](const Seat& seat) { return seat.is_decode; });
  }

  /// Slots in the rank's own pool; -1 where another rank holds the token.
  [[nodiscard]] Integers own_slots() const {
    const std::vector<ShardSlot> dealt = deal_slots(problem_);
    Integers result;
    for (const std::int64_t slot : new_slots(step_)) {
      const ShardSlot& place = dealt.at(static_cast<std::size_t>(slot));
      result.push_back(place.shard == rank_ ? place.slot : -1);
    }
    result.resize(static_cast<std::size_t>(sizes_.padded_tokens), -1);
    return result;
  }

  [[nodiscard]] std::int64_t held(std::int64_t length) const {
    return deal_length(problem_, length).at(rank_);
  }

  /// Where each seat is when the ranks' rows stand one after the other, all or without decodes.
  [[nodiscard]] Integers gathered_places(bool has_decodes) const {
    std::vector<std::size_t> seats;
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      if (has_decodes || !seats_[i].is_decode) seats.push_back(i);
    }
    std::vector<std::size_t> gathered = seats;
    std::ranges::stable_sort(gathered, {}, [this](std::size_t i) { return seats_[i].rank; });
    const Integers places = places_in(gathered);
    Integers result;
    for (const std::size_t i : seats) result.push_back(places[i]);
    return result;
  }

  /// The place of every seat in `order`, -1 where it has none.
  [[nodiscard]] Integers places_in(const std::vector<std::size_t>& order) const {
    Integers places(seats_.size(), -1);
    std::int64_t place = 0;
    for (const std::size_t i : order) places.at(i) = place++;
    return places;
  }

  void add_orders(RankIntegers& result) const {
    Integers tokens;
    Integers positions;
    Integers halves;
    Integers full;
    const Integers half_places = places_in(half_order_);
    const Integers local_places = places_in(local_order_);
    for (const std::size_t i : local_order_) {
      tokens.push_back(flat(seats_[i]));
      positions.push_back(seats_[i].token ? seats_[i].token->position : 0);
      full.push_back(half_places[i]);
    }
    for (const std::size_t i : half_order_) halves.push_back(local_places[i]);
    add_vector(result, "local_index", tokens);
    add_vector(result, "positions", positions);
    add_vector(result, "q_head_tail_index", halves);
    add_vector(result, "q_full_index", full);
    add_vector(result, "restore_index", gathered_places(true));
    add_vector(result, "decode_rows",
               {num_replicas() / static_cast<std::int64_t>(problem_.scenario.topology.cp)});
    Integers unpad(static_cast<std::size_t>(sizes_.padded_tokens), -1);
    Integers mask;
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const Seat& seat = seats_[i];
      // Seen as lines of P, the replicas' part has its first column marked.
      mask.push_back(seat.is_decode ? i % ranks_ == 0 : seat.token.has_value());
      if (!seat.token || (seat.is_decode && seat.rank != 0)) continue;
      unpad.at(static_cast<std::size_t>(seat.token->flat)) = static_cast<std::int64_t>(i);
    }
    add_vector(result, "unpad_index", unpad);
    add_vector(result, "unpad_mask", mask);
  }

  void add_table(RankIntegers& result, const std::string& name,
                 const std::vector<Integers>& lines) const {
    std::size_t widest = 0;
    for (const Integers& line : lines) widest = std::max(widest, line.size());
    Integers table;
    for (Integers line : lines) {
      line.resize(widest, 0);
      table.insert(table.end(), line.begin(), line.end());
    }
    result.arrays[name] = table;
    result.shapes[name] = {static_cast<std::int64_t>(lines.size()),
                           static_cast<std::int64_t>(widest)};
  }

  [[nodiscard]] Integers pages(const StepRow& row) const {
    Integers line(row.block_table.begin(), row.block_table.end());
    line.resize(static_cast<std::size_t>(sizes_.max_pages), 0);
    return line;
  }

  void add_decodes(RankIntegers& result) const {
    const Integers slots = own_slots();
    Integers own;
    Integers starts{0};
    Integers lengths;
    std::vector<std::size_t> rows;
    std::vector<Integers> tables;
    for (const std::size_t i : half_order_) {
      const Seat& seat = seats_[i];
      if (!seat.is_decode) continue;
      const StepRow& row = step_.rows[seat.row];
      rows.push_back(seat.row);
      own.push_back(slots.at(static_cast<std::size_t>(seat.token->flat)));
      starts.push_back(starts.back() + 1);
      lengths.push_back(held(visible_keys(row, seat.token->index)));
      tables.push_back(pages(row));
    }
    add_vector(result, "decode_slots", own, rows);
    add_vector(result, "cu_seqlens_q_decode", starts, rows);
    add_vector(result, "kv_lens_decode", lengths, rows);
    add_table(result, "block_table_decode", tables);
  }

  /// The padded rows of a prefill that `is_wanted` says, counted from the first prefill's first.
  template <class Wanted>
  [[nodiscard]] Integers prefill_seats(std::size_t row, const Wanted& is_wanted) const {
    Integers found;
    std::int64_t number = 0;
    for (const Seat& seat : seats_) {
      if (seat.is_decode) continue;
      if (seat.row == row && is_wanted(seat)) found.push_back(number);
      ++number;
    }
    return found;
  }

  void add_half(RankIntegers& result, const std::string& name, std::size_t chunk) const {
    std::vector<Integers> earlier;
    std::vector<Integers> own;
    Integers lengths;
    for (const std::size_t row : prefill_rows()) {
      earlier.push_back(prefill_seats(row, [&](const Seat& seat) { return seat.chunk < chunk; }));
      own.push_back(prefill_seats(row, [&](const Seat& seat) { return seat.chunk == chunk; }));
      lengths.push_back(length(earlier.back()));
    }
    add_table(result, "block_table_" + name + "_mask", own);
    if (std::ranges::all_of(lengths, [](std::int64_t count) { return count == 0; })) return;
    add_vector(result, "kv_lens_" + name + "_nomask", lengths, prefill_rows());
    add_table(result, "block_table_" + name + "_nomask", earlier);
  }

  void add_prefills(RankIntegers& result) const {
    const Integers slots = own_slots();
    Integers written;
    for (const Seat& seat : seats_) {
      if (seat.is_decode) continue;
      written.push_back(seat.token ? slots.at(static_cast<std::size_t>(seat.token->flat)) : -1);
    }
    Integers chunks;
    for (const std::size_t row : prefill_rows()) {
      chunks.push_back(
          length(prefill_seats(row, [](const Seat& seat) { return seat.chunk == 0; })));
    }
    Integers merged;
    for (const std::size_t i : half_order_) {
      const bool is_merged = !seats_[i].is_decode && seats_[i].token.has_value();
      merged.push_back(is_merged ? length(merged) : -1);
    }
    add_vector(result, "kv_slots", written);
    add_vector(result, "cu_seqlens_q_half", prefix_sums(chunks), prefill_rows());
    add_vector(result, "kv_lens_mask", chunks, prefill_rows());
    add_vector(result, "merge_index", merged);
    add_half(result, "head", rank_);
    add_half(result, "tail", 2 * ranks_ - 1 - rank_);
  }

  void add_context(RankIntegers& result) const {
    Integers sizes;
    Integers lengths;
    std::vector<Integers> tables;
    for (const std::size_t row : prefill_rows()) {
      sizes.push_back(length(prefill_seats(row, [](const Seat&) { return true; })));
      lengths.push_back(held(step_.rows[row].computed));
      tables.push_back(pages(step_.rows[row]));
    }
    Integers merged;
    const Integers half_places = places_in(half_order_);
    for (std::size_t i = 0; i < seats_.size(); ++i) {
      const Seat& seat = seats_[i];
      if (seat.is_decode) continue;
      const bool is_own = seat.rank == rank_ && seat.token && step_.rows[seat.row].computed > 0;
      merged.push_back(is_own ? half_places[i] : -1);
    }
    add_vector(result, "q_restore_index", gathered_places(false));
    add_vector(result, "cu_seqlens_q_context", prefix_sums(sizes), prefill_rows());
    add_vector(result, "kv_lens_context", lengths, prefill_rows());
    add_table(result, "block_table_context", tables);
    add_vector(result, "context_index", merged);
  }

  const Problem& problem_;
  const Step& step_;
  StepSizes sizes_;
  std::size_t rank_;
  std::size_t ranks_;
  std::vector<Seat> seats_;
  std::vector<std::size_t> half_order_;   ///< Own seats: decodes, heads, tails.
  std::vector<std::size_t> local_order_;  ///< Own seats as they come.
};

}  // namespace

std::vector<RankIntegers> pcp_head_tail_integers(const Problem& problem, const Step& step) {
  const TopologySpec& topology = problem.scenario.topology;
  std::vector<RankIntegers> result;
  for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
    const HeadTailRank rank{problem, step, cp_rank};
    const RankIntegers integers = rank.integers();
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      const Heads heads = rank_heads(problem.scenario, tp_rank);
      result.push_back(integers);
      add_tensor_shapes(result.back(), problem, step_sizes(problem, step), heads);
      rank.add_shapes(result.back(), heads);
    }
  }
  return result;
}

}  // namespace cpverify::reference
