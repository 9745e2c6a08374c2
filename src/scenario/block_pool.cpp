#include "scenario/block_pool.hpp"

#include <cstdint>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "support/check.hpp"
#include "support/rng.hpp"

namespace cpverify::scenario {

std::int32_t BlockCounter::take() {
  if (free_.empty()) return ++taken_;
  const std::int32_t number = free_.back();
  free_.pop_back();
  return number;
}

std::uint32_t pool_size(const Scenario& scenario, std::int32_t taken) {
  const CacheSpec& cache = scenario.cache;
  const std::uint32_t needed = static_cast<std::uint32_t>(taken) + 1;
  if (cache.num_blocks == 0) {
    const std::uint32_t multiple =
        cache.unit == CacheUnit::slot ? scenario.topology.kv_shards() : 1;
    return (needed + kSpareBlocks + multiple - 1) / multiple * multiple;
  }
  if (cache.num_blocks < needed) {
    throw InputError{
        cache.where,
        fmt::format("'num_blocks' is {}, but the requests need {} blocks of {} tokens, "
                    "the null block included",
                    cache.num_blocks, needed,
                    cache.unit == CacheUnit::slot ? 1 : cache.block_size)};
  }
  return cache.num_blocks;
}

std::vector<std::int32_t> physical_ids(const CacheSpec& cache, std::uint32_t num_blocks) {
  CPVERIFY_CHECK(num_blocks >= 1);
  std::vector<std::int32_t> free_ids(num_blocks - 1);
  std::iota(free_ids.begin(), free_ids.end(), 1);
  if (cache.shuffle_seed) Rng{*cache.shuffle_seed}.shuffle(free_ids);
  free_ids.insert(free_ids.begin(), 0);
  return free_ids;
}

}  // namespace cpverify::scenario
