#include <string_view>

#include "cpverify/scenario.hpp"

// Which strategies run models that have more than plain attention.
namespace cpverify {
namespace {

/// One call has all keys of a row, the first ones of its request without gaps.
bool has_whole_rows(StrategyKind strategy) noexcept {
  switch (strategy) {
    case StrategyKind::single:
    case StrategyKind::zigzag:
    case StrategyKind::zigzag_combined:
    case StrategyKind::interleave:
    case StrategyKind::contiguous:
    case StrategyKind::pcp_virtual_batch:
    case StrategyKind::ulysses:
      return true;
    default:
      return false;
  }
}

bool is_ring(StrategyKind strategy) noexcept {
  return strategy == StrategyKind::ring || strategy == StrategyKind::ring_contiguous;
}

/// A sink must be counted by exactly one part of a row: a strategy is here when it says by which.
/// Of dcp it is the new tokens' part, or the first shard; of a ring the rank's own block.
bool counts_sinks_once(StrategyKind strategy) noexcept {
  return has_whole_rows(strategy) || strategy == StrategyKind::dcp || is_ring(strategy);
}

/// Kernels count a window back from the last key that a query sees, which is right where the keys
/// of a call are the first ones of the request, without gaps.
std::string_view why_no_window(StrategyKind strategy) noexcept {
  if (has_whole_rows(strategy)) return {};
  if (is_ring(strategy)) {
    return "attends to the blocks of other ranks apart, and a window would be counted back from "
           "the end of each block";
  }
  return "gives a rank a part of the cache, and a window would be counted in the tokens of that "
         "part: one of 4 over two shards would be one of 8";
}

}  // namespace

std::string_view name(ModelFeature feature) noexcept {
  switch (feature) {
    case ModelFeature::soft_cap:
      return "soft_cap";
    case ModelFeature::sinks:
      return "sinks";
    case ModelFeature::sliding_window:
      return "sliding_window";
  }
  return "?";
}

std::string_view why_not(StrategyKind strategy, ModelFeature feature) noexcept {
  switch (feature) {
    case ModelFeature::soft_cap:
      // Of each score by itself, whoever computes it.
      return {};
    case ModelFeature::sinks:
      return counts_sinks_once(strategy)
                 ? std::string_view{}
                 : "merges parts of a row, and has no rule for which of them counts the sink";
    case ModelFeature::sliding_window:
      return why_no_window(strategy);
  }
  return {};
}

}  // namespace cpverify
