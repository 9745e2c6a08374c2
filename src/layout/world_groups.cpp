#include "layout/world_groups.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "layout/configuration.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

using Groups = std::vector<std::vector<std::int64_t>>;

/// A grid of ranks; the last axis is the fastest.
struct Axis {
  std::string_view name;
  std::int64_t size;
};

/// The groups along one axis: all ranks that differ only there.
Groups along(const std::vector<Axis>& grid, std::size_t axis) {
  std::int64_t world = 1;
  std::int64_t stride = 1;
  for (std::size_t i = 0; i < grid.size(); ++i) {
    world *= grid[i].size;
    if (i > axis) stride *= grid[i].size;
  }
  Groups groups;
  for (std::int64_t rank = 0; rank < world; ++rank) {
    if (rank / stride % grid[axis].size != 0) continue;
    std::vector<std::int64_t>& group = groups.emplace_back();
    for (std::int64_t k = 0; k < grid[axis].size; ++k) group.push_back(rank + k * stride);
  }
  return groups;
}

/// Runs of `size` ranks of each replica of cp * tp ranks, cp being the fast axis when it is asked
/// for.
Groups dcp_groups(const Configuration& c, bool is_cp_fast) {
  const std::int64_t cp = c.system == System::sglang ? 1 : c.cp;
  const std::int64_t replica = cp * c.tp;
  Groups groups;
  for (std::int64_t first = 0; first < c.world_size(); first += replica) {
    std::vector<std::int64_t> order;
    order.reserve(static_cast<std::size_t>(replica));
    for (std::int64_t i = 0; i < replica; ++i) {
      order.push_back(first + (is_cp_fast ? i % cp * c.tp + i / cp : i));
    }
    for (std::int64_t i = 0; i + c.dcp <= replica; i += c.dcp) {
      groups.emplace_back(order.begin() + i, order.begin() + i + c.dcp);
    }
  }
  return groups;
}

bool is_cache_over_cp(const Configuration& c) noexcept {
  return c.is_cache_over_cp || c.strategy == SplitKind::pcp_head_tail;
}

}  // namespace

std::vector<GroupKind> world_groups(const Configuration& c) {
  const std::vector<Axis> grid =
      c.system == System::sglang
          ? std::vector<Axis>{{"pp", c.pp}, {"dp", c.dp}, {"cp", c.cp}, {"tp", c.attention_tp()}}
          : std::vector<Axis>{{"dp", c.dp}, {"pp", c.pp}, {"cp", c.cp}, {"tp", c.tp}};
  std::vector<GroupKind> kinds;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    if (grid[axis].size > 1) kinds.push_back({grid[axis].name, along(grid, axis)});
  }
  if (c.dcp > 1) kinds.push_back({"dcp", dcp_groups(c, !is_cache_over_cp(c) && c.cp > 1)});
  return kinds;
}

std::int64_t cache_shards(const Configuration& c) noexcept {
  return is_cache_over_cp(c) ? c.cp * c.dcp : c.dcp;
}

HeadsPerRank heads_per_rank(const Configuration& c) noexcept {
  const std::int64_t tp = std::max<std::int64_t>(c.attention_tp(), 1);
  // SGLang shards KV heads over tp / dcp ranks, so that a DCP group holds the same ones.
  const std::int64_t kv_tp =
      c.system == System::sglang ? std::max<std::int64_t>(tp / c.dcp, 1) : tp;
  return {c.heads_q / tp, std::max<std::int64_t>(c.heads_kv / kv_tp, 1)};
}

SplitSpec split_spec(const Configuration& c) {
  SplitSpec spec;
  spec.kind = c.strategy;
  spec.cp = static_cast<std::uint32_t>(c.cp);
  spec.dcp = static_cast<std::uint32_t>(c.dcp);
  spec.ulysses = static_cast<std::uint32_t>(c.ulysses);
  spec.interleave_size = c.interleave_size;
  spec.block_size = c.block_size;
  std::int64_t slices = 1;
  if (c.strategy == SplitKind::dcp || c.strategy == SplitKind::dcp_virtual ||
      c.strategy == SplitKind::pcp_head_tail) {
    slices = c.dcp;
  }
  if (c.strategy == SplitKind::pcp_virtual_batch) slices = std::max<std::int64_t>(c.dcp / c.cp, 1);
  spec.num_heads_q = static_cast<std::uint32_t>(heads_per_rank(c).query * slices);
  return spec;
}

}  // namespace cpverify::layout
