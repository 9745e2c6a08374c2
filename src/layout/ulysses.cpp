#include "layout/ulysses.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"
#include "support/check.hpp"

namespace cpverify::layout {

UlyssesSplit make_ulysses_split(const Step& step, std::uint32_t cp_size) {
  CPVERIFY_CHECK(cp_size > 0);
  UlyssesSplit split;
  split.cp_size = cp_size;
  split.num_tokens = step.num_tokens();
  split.max_rows = (split.num_tokens + cp_size - 1) / cp_size;
  return split;
}

std::vector<std::int64_t> ulysses_tokens(const UlyssesSplit& split, CpRank rank) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t i = 0; i < split.max_rows; ++i) {
    const std::int64_t token = rank.value() * split.max_rows + i;
    tokens.push_back(token < split.num_tokens ? token : -1);
  }
  return tokens;
}

HeadRange exchanged_query_heads(HeadRange heads, std::uint32_t cp_size, CpRank rank) {
  CPVERIFY_CHECK(heads.count % cp_size == 0);
  const std::uint32_t count = heads.count / cp_size;
  return {heads.first + rank.value() * count, count};
}

HeadRange exchanged_kv_heads(HeadRange heads, std::uint32_t cp_size, CpRank rank) {
  CPVERIFY_CHECK(heads.count % cp_size == 0 || cp_size % heads.count == 0);
  return {heads.first + rank.value() * heads.count / cp_size, std::max(1U, heads.count / cp_size)};
}

std::vector<std::int64_t> ulysses_send_index(const UlyssesSplit& split, CpRank rank,
                                             std::uint32_t num_heads) {
  const HeadRange all{0, num_heads};
  std::vector<std::int64_t> index;
  for (std::uint32_t target = 0; target < split.cp_size; ++target) {
    const HeadRange heads = exchanged_kv_heads(all, split.cp_size, CpRank{target});
    const std::int64_t runs_per_row = num_heads / heads.count;
    for (const std::int64_t token : ulysses_tokens(split, rank)) {
      index.push_back(token < 0 ? token : token * runs_per_row + heads.first / heads.count);
    }
  }
  return index;
}

std::vector<std::int64_t> ulysses_head_order(const UlyssesSplit& split) {
  std::vector<std::int64_t> order;
  for (std::int64_t row = 0; row < split.max_rows; ++row) {
    for (std::uint32_t rank = 0; rank < split.cp_size; ++rank) {
      order.push_back(rank * split.max_rows + row);
    }
  }
  return order;
}

}  // namespace cpverify::layout
