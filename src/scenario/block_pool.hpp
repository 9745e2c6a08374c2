#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"

namespace cpverify::scenario {

/// Hands out block numbers 1, 2, 3, .. and never takes one back. Numbers become physical ids only
/// after the last one is out, because the size of the pool, and with it a shuffled order, may
/// depend on how many that were.
class BlockCounter {
 public:
  [[nodiscard]] std::int32_t take() noexcept { return ++taken_; }
  [[nodiscard]] std::int32_t taken() const noexcept { return taken_; }

 private:
  std::int32_t taken_ = 0;
};

/// Blocks of the pool: what the cache section says, or what is needed plus the null block and
/// kSpareBlocks. Throws InputError, which says how many are needed, when that is too few.
[[nodiscard]] std::uint32_t pool_size(const CacheSpec& cache, std::int32_t taken);

/// Physical id of each block number, [num_blocks]. Block 0, the null block, keeps its id; the
/// others are ascending, or a seeded permutation of 1 .. num_blocks - 1.
[[nodiscard]] std::vector<std::int32_t> physical_ids(const CacheSpec& cache,
                                                     std::uint32_t num_blocks);

/// Free blocks beyond need, so that a stray write has somewhere to land and be seen.
inline constexpr std::uint32_t kSpareBlocks = 4;

}  // namespace cpverify::scenario
