#include "reference/ulysses_integers.hpp"

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/step_integers.hpp"

namespace cpverify::reference {

namespace {

/// Numbers of heads of the whole model.
struct HeadList {
  Integers query;
  Integers key_value;
};

/// The query heads that `takes` says, and the KV heads that these read.
template <class Takes>
HeadList list_heads(const ModelSpec& model, const Takes& takes) {
  const std::uint32_t per_kv_head = model.num_heads_q / model.num_heads_kv;
  HeadList heads;
  std::set<std::int64_t> read;
  for (std::uint32_t head = 0; head < model.num_heads_q; ++head) {
    if (!takes(head)) continue;
    heads.query.push_back(head);
    read.insert(head / per_kv_head);
  }
  heads.key_value.assign(read.begin(), read.end());
  return heads;
}

/// What one rank's oracle needs.
struct UlyssesRank {
  const Problem* problem = nullptr;
  const Step* step = nullptr;
  StepSizes sizes;
  std::int64_t max_rows = 0;
  std::vector<Integers> tokens;    ///< [cp rank][M], -1 for a pad row.
  HeadList all;                    ///< Of the tp rank.
  std::vector<HeadList> of_ranks;  ///< [cp rank] after the exchange.
  std::size_t cp_rank = 0;

  [[nodiscard]] std::int64_t num_ranks() const { return static_cast<std::int64_t>(tokens.size()); }
};

/// The step's tokens in order, the first M to rank 0.
void deal_tokens(UlyssesRank& rank, std::size_t cp) {
  std::int64_t count = 0;
  for (const StepRow& row : rank.step->rows) count += row.scheduled;
  while (rank.max_rows * static_cast<std::int64_t>(cp) < count) ++rank.max_rows;
  std::int64_t next = 0;
  for (std::size_t other = 0; other < cp; ++other) {
    Integers& own = rank.tokens.emplace_back();
    for (std::int64_t i = 0; i < rank.max_rows; ++i) own.push_back(next < count ? next++ : -1);
  }
}

/// The heads of a tp rank, dealt to its CP group in order.
void deal_heads(UlyssesRank& rank, std::uint32_t tp_rank) {
  const Scenario& scenario = rank.problem->scenario;
  const TopologySpec& topology = scenario.topology;
  const std::uint32_t share = scenario.model.num_heads_q / topology.tp;
  rank.all =
      list_heads(scenario.model, [&](std::uint32_t head) { return head / share == tp_rank; });
  rank.of_ranks.clear();
  for (std::uint32_t cp_rank = 0; cp_rank < topology.cp; ++cp_rank) {
    const std::uint32_t number = tp_rank * topology.cp + cp_rank;
    rank.of_ranks.push_back(list_heads(scenario.model, [&](std::uint32_t head) {
      return head / (share / topology.cp) == number;
    }));
  }
}

/// For every target rank and own row the run of heads that it is sent, counting runs of as many
/// heads as it gets over a tensor with the heads `all`.
Integers send_index(const UlyssesRank& rank, Integers HeadList::* heads) {
  const Integers& all = rank.all.*heads;
  Integers result;
  for (const HeadList& target : rank.of_ranks) {
    const Integers& wanted = target.*heads;
    std::int64_t before = 0;
    for (const std::int64_t head : all) before += head < wanted.front() ? 1 : 0;
    for (const std::int64_t token : rank.tokens[rank.cp_rank]) {
      result.push_back(token < 0 ? -1 : (token * length(all) + before) / length(wanted));
    }
  }
  return result;
}

/// Runs arrive rank by rank and are put row by row.
Integers head_order(const UlyssesRank& rank) {
  Integers result(static_cast<std::size_t>(rank.max_rows * rank.num_ranks()), -1);
  std::int64_t received = 0;
  for (std::int64_t source = 0; source < rank.num_ranks(); ++source) {
    for (std::int64_t row = 0; row < rank.max_rows; ++row) {
      result.at(static_cast<std::size_t>(row * rank.num_ranks() + source)) = received++;
    }
  }
  return result;
}

Integers to_length(Integers values, std::int64_t count, std::int64_t fill) {
  values.resize(static_cast<std::size_t>(count), fill);
  return values;
}

/// Arrays that do not depend on heads.
void add_rows(RankIntegers& result, const UlyssesRank& rank) {
  const RankIntegers whole = single_integers(*rank.step, rank.sizes);
  Integers slots;
  for (const StepRow& row : rank.step->rows) {
    for (const std::int64_t slot : row.slots) slots.push_back(slot);
  }
  Integers own_positions;
  for (const std::int64_t token : rank.tokens[rank.cp_rank]) {
    const bool is_pad = token < 0;
    own_positions.push_back(
        is_pad ? 0 : whole.arrays.at("positions").at(static_cast<std::size_t>(token)));
  }
  add_vector(result, "cu_seqlens_q", whole.arrays.at("cu_seqlens_q"));
  add_vector(result, "kv_lens", whole.arrays.at("kv_lens"));
  add_vector(result, "slots_exchanged", to_length(slots, rank.max_rows * rank.num_ranks(), -1));
  add_vector(result, "positions", own_positions);
  add_vector(result, "head_order", head_order(rank));
  add_vector(result, "reorder_index", whole.row_tokens);
  result.row_tokens = rank.tokens[rank.cp_rank];
}

/// Outputs of the exchanged heads hold all tokens of some heads.
void add_claims(RankIntegers& result, const UlyssesRank& rank) {
  Integers tokens;
  for (const Integers& own : rank.tokens) tokens.insert(tokens.end(), own.begin(), own.end());
  const Integers& heads = rank.of_ranks[rank.cp_rank].query;
  for (const char* name : {"out_heads", "lse_heads"}) {
    result.claims[name] = {heads.front(), length(heads), tokens};
  }
}

void add_ulysses_shapes(RankIntegers& result, const UlyssesRank& rank) {
  const auto dim = static_cast<std::int64_t>(rank.problem->scenario.model.head_dim);
  const std::int64_t rows = rank.max_rows;
  const std::int64_t all_rows = rows * rank.num_ranks();
  const std::int64_t query = length(rank.of_ranks[rank.cp_rank].query);
  const std::int64_t key_value = length(rank.of_ranks[rank.cp_rank].key_value);
  result.shapes["q_send"] = {rank.num_ranks(), rows, query, dim};
  result.shapes["q_heads"] = {all_rows, query, dim};
  for (const std::string name : {"k", "v"}) {
    result.shapes[name + "_send"] = {rank.num_ranks(), rows, key_value, dim};
    result.shapes[name + "_heads"] = {all_rows, key_value, dim};
    result.shapes[name + "_pool"][2] = key_value;
  }
  result.shapes["out_heads"] = {all_rows, query, dim};
  result.shapes["lse_heads"] = {all_rows, query};
  result.shapes["out_returned"] = {rank.num_ranks(), rows, query, dim};
  result.shapes["out_local"] = {rows, length(rank.all.query), dim};
  result.shapes["out_gathered"] = {all_rows, length(rank.all.query), dim};
}

}  // namespace

std::vector<RankIntegers> ulysses_integers(const Problem& problem, const Step& step) {
  const TopologySpec& topology = problem.scenario.topology;
  UlyssesRank rank;
  rank.problem = &problem;
  rank.step = &step;
  rank.sizes = step_sizes(problem, step);
  deal_tokens(rank, topology.cp);
  std::vector<RankIntegers> result;
  for (rank.cp_rank = 0; rank.cp_rank < topology.cp; ++rank.cp_rank) {
    for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
      deal_heads(rank, tp_rank);
      RankIntegers& integers = result.emplace_back();
      integers.is_cp_on = true;
      add_common(integers, step, rank.sizes);
      add_rows(integers, rank);
      add_vector(integers, "q_send_index", send_index(rank, &HeadList::query));
      add_vector(integers, "kv_send_index", send_index(rank, &HeadList::key_value));
      add_claims(integers, rank);
      add_tensor_shapes(integers, problem, rank.sizes, rank_heads(problem.scenario, tp_rank));
      add_ulysses_shapes(integers, rank);
    }
  }
  return result;
}

}  // namespace cpverify::reference
