#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "layout/configuration.hpp"

namespace cpverify::layout {

/// The groups of one kind, each in the order of its own ranks.
struct GroupKind {
  std::string_view name;  ///< "tp", "cp", "dcp", "dp" or "pp".
  std::vector<std::vector<std::int64_t>> groups;
};

/// Who is with whom, for a configuration that breaks no rule. SGLang: PP outermost, then DP, CP,
/// attention TP innermost; DCP groups are consecutive ranks. vLLM: DP, PP, PCP, TP; its DCP groups
/// are consecutive with PCP as the fast axis (ownership K2), or within TP (K1). cpverify: as vLLM.
/// Only groups of more than one rank are listed.
[[nodiscard]] std::vector<GroupKind> world_groups(const Configuration& configuration);

/// Shards of the cache.
[[nodiscard]] std::int64_t cache_shards(const Configuration& configuration) noexcept;

/// Query and KV heads that one rank holds.
struct HeadsPerRank {
  std::int64_t query = 0;
  std::int64_t key_value = 0;
};

[[nodiscard]] HeadsPerRank heads_per_rank(const Configuration& configuration) noexcept;

/// The split of one domain of the configuration. Throws InputError when a size is too large.
[[nodiscard]] SplitSpec split_spec(const Configuration& configuration);

}  // namespace cpverify::layout
