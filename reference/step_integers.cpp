#include "reference/step_integers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

std::int64_t max_pages(const Step& step) {
  std::size_t longest = 0;
  for (const StepRow& row : step.rows) longest = std::max(longest, row.block_table.size());
  return static_cast<std::int64_t>(longest);
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

}  // namespace

Integers prefix_sums(const Integers& counts) {
  Integers result{0};
  for (const std::int64_t count : counts) result.push_back(result.back() + count);
  return result;
}

std::int64_t padded(std::int64_t count, std::int64_t multiple) {
  while (count % multiple != 0) ++count;
  return count;
}

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

void add_vector(RankIntegers& result, const std::string& name, const Integers& values) {
  result.arrays[name] = values;
  result.shapes[name] = {length(values)};
}

void add_vector(RankIntegers& result, const std::string& name, const Integers& values,
                const std::vector<std::size_t>& rows) {
  add_vector(result, name, values);
  result.value_rows[name] = rows;
}

void add_common(RankIntegers& result, const Step& step, const StepSizes& sizes) {
  result.arrays["slot_mapping"] = slot_mapping(step, sizes);
  result.arrays["block_table"] = block_table(step, sizes);
  result.shapes["slot_mapping"] = {sizes.padded_tokens};
  result.shapes["block_table"] = {sizes.num_rows, sizes.max_pages};
}

void add_tensor_shapes(RankIntegers& result, const Problem& problem, const StepSizes& sizes,
                       const Heads& heads) {
  const auto head_dim = static_cast<std::int64_t>(problem.scenario.model.head_dim);
  const std::int64_t tokens = sizes.padded_tokens;
  const Integers pool{problem.num_blocks, problem.block_tokens(), heads.key_value, head_dim};
  result.shapes["q"] = {tokens, heads.query, head_dim};
  result.shapes["k"] = {tokens, heads.key_value, head_dim};
  result.shapes["v"] = {tokens, heads.key_value, head_dim};
  result.shapes["k_pool"] = pool;
  result.shapes["v_pool"] = pool;
  result.shapes["out"] = {tokens, heads.query, head_dim};
  if (!result.is_cp_on) result.shapes["lse"] = {tokens, heads.query};
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

}  // namespace cpverify::reference
