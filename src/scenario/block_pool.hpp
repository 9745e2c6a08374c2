#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"

namespace cpverify::scenario {

/// Hands out block numbers: the one that came back last, or 1, 2, 3, .. Numbers become physical ids
/// only after the last one is out, because the size of the pool, and with it a shuffled order, may
/// depend on how many that were.
class BlockCounter {
 public:
  [[nodiscard]] std::int32_t take();
  void give_back(std::int32_t number) { free_.push_back(number); }
  /// How many different ones were handed out.
  [[nodiscard]] std::int32_t taken() const noexcept { return taken_; }

 private:
  std::vector<std::int32_t> free_;
  std::int32_t taken_ = 0;
};

/// Blocks of the pool: what the cache section says, or what is needed plus the null block and
/// kSpareBlocks; single slots up to a multiple of the shards. Throws InputError, which says how
/// many are needed, when that is too few.
[[nodiscard]] std::uint32_t pool_size(const Scenario& scenario, std::int32_t taken);

/// Physical id of each block number, [num_blocks]. Block 0, the null block, keeps its id; the
/// others are ascending, or a seeded permutation of 1 .. num_blocks - 1.
[[nodiscard]] std::vector<std::int32_t> physical_ids(const CacheSpec& cache,
                                                     std::uint32_t num_blocks);

/// Free blocks beyond need, so that a stray write has somewhere to land and be seen.
inline constexpr std::uint32_t kSpareBlocks = 4;

}  // namespace cpverify::scenario
