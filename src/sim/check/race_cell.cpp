#include "sim/check/race_cell.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace cpverify::sim {

RaceCells::Chunks& RaceCells::pool() {
  static thread_local Chunks pool;
  return pool;
}

RaceCells::~RaceCells() {
  constexpr std::size_t kPooledChunks = 8192;  // 67 MB, for 256 MB of memory.
  for (auto& chunk : chunks_) {
    if (pool().size() < kPooledChunks) pool().push_back(std::move(chunk));
  }
}

RaceCell* RaceCells::take(std::size_t count) {
  if (used_ + count > kChunkCells) {
    if (pool().empty()) {
      chunks_.push_back(std::make_unique<Chunk>());
    } else {
      chunks_.push_back(std::move(pool().back()));
      pool().pop_back();
    }
    used_ = 0;
  }
  RaceCell* const cells = chunks_.back()->data() + used_;
  used_ += count;
  std::fill(cells, cells + count, RaceCell{});
  return cells;
}

}  // namespace cpverify::sim
