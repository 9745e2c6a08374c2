#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/topology.hpp"

/// Strategy ulysses: which tokens a rank has outside attention, and which heads inside. Source:
/// docs/strategies/ulysses.md.
namespace cpverify::layout {

/// Consecutive flattened tokens of a step: rank r has [r*M, (r+1)*M).
struct UlyssesSplit {
  std::uint32_t cp_size = 1;
  std::int64_t num_tokens = 0;
  std::int64_t max_rows = 0;  ///< M = ceil(T / C).

  /// Rows of all ranks together, pads included: C*M.
  [[nodiscard]] std::int64_t all_rows() const noexcept { return max_rows * cp_size; }
};

[[nodiscard]] UlyssesSplit make_ulysses_split(const Step& step, std::uint32_t cp_size);

/// Flattened token of each of a rank's M rows, -1 for a pad row.
[[nodiscard]] std::vector<std::int64_t> ulysses_tokens(const UlyssesSplit& split, CpRank rank);

/// Query heads that a rank attends with, of the `heads` of its tp rank; their number is a multiple
/// of `cp_size`.
[[nodiscard]] HeadRange exchanged_query_heads(HeadRange heads, std::uint32_t cp_size, CpRank rank);

/// KV heads that those read. Of the number of `heads` and `cp_size` one divides the other: with
/// fewer heads than ranks, neighbouring ranks get copies of one.
[[nodiscard]] HeadRange exchanged_kv_heads(HeadRange heads, std::uint32_t cp_size, CpRank rank);

/// The send order of heads: entry c*M + i is where the heads for rank c of local row i start, in a
/// tensor [tokens, num_heads] seen as runs of the heads of one rank. -1 for a pad row.
[[nodiscard]] std::vector<std::int64_t> ulysses_send_index(const UlyssesSplit& split, CpRank rank,
                                                           std::uint32_t num_heads);

/// The way back: entry i*C + c is the received run of rank c's heads for local row i. [M*C]
[[nodiscard]] std::vector<std::int64_t> ulysses_head_order(const UlyssesSplit& split);

}  // namespace cpverify::layout
