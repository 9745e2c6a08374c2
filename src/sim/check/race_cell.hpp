#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// Who has touched some bytes that have only been touched together, by one lane or by lanes side by
/// side. Two readers and two writers: when nothing but barriers of all warps orders, whatever races
/// with a third also races with one of them. What needs more is in a list of the map.
struct RaceCell {
  std::array<RaceLabel, 2> reads{};   ///< In order of appearance.
  std::array<RaceLabel, 2> writes{};  ///< The newest first.
  /// Per label: log2 of how many bytes each lane has.
  std::array<std::uint8_t, 2> read_shifts{};
  std::array<std::uint8_t, 2> write_shifts{};
  std::uint32_t more = 0;     ///< List of further labels; 0 for none.
  RaceCell* parts = nullptr;  ///< Where parts of it have been touched: theirs instead.
};

/// The label of what a cell's label says about its part that begins `byte` bytes into it.
inline RaceLabel part_of(const RaceLabel& label, std::uint8_t shift, std::uint32_t byte) noexcept {
  return {label.time, label.packed + (byte >> shift)};
}

/// Cells of a map. Chunks go to the next map of the thread: a launch has its own maps, and getting
/// their memory from the kernel takes longer than checking a kernel that touches each byte once.
class RaceCells {
 public:
  RaceCells() = default;
  ~RaceCells();
  RaceCells(const RaceCells&) = delete;
  RaceCells& operator=(const RaceCells&) = delete;
  RaceCells(RaceCells&&) = delete;
  RaceCells& operator=(RaceCells&&) = delete;

  /// `count` new cells in a row, at most kChunkCells.
  [[nodiscard]] RaceCell* take(std::size_t count);

 private:
  static constexpr std::size_t kChunkCells = 256;
  using Chunk = std::array<RaceCell, kChunkCells>;
  using Chunks = std::vector<std::unique_ptr<Chunk>>;
  static Chunks& pool();

  Chunks chunks_;
  std::size_t used_ = kChunkCells;  ///< Of the last chunk.
};

}  // namespace cpverify::sim
