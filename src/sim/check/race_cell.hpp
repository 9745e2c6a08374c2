#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// Who has touched some bytes that have only been touched together, by one lane or by lanes side by
/// side. Two readers and two writers: when nothing but barriers of all warps orders, whatever races
/// with a third also races with one of them. What does not fit is elsewhere: see the marks.
struct RaceCell {
  /// Times of writes[0] that say that the cell has parts, and that its labels are in crowd
  /// writes[0].packed of the map.
  static constexpr std::uint32_t kParts = ~0U;
  static constexpr std::uint32_t kCrowd = ~0U - 1;

  std::array<RaceLabel, 2> writes{};  ///< The newest first.
  std::array<RaceLabel, 2> reads{};   ///< In order of appearance.

  [[nodiscard]] bool is_split() const noexcept { return writes[0].time == kParts; }
  [[nodiscard]] bool is_crowded() const noexcept { return writes[0].time == kCrowd; }
  [[nodiscard]] RaceCell* parts() const noexcept { return std::bit_cast<RaceCell*>(reads[0]); }
  void set_parts(RaceCell* parts) noexcept {
    writes[0] = {kParts, 0};
    reads[0] = std::bit_cast<RaceLabel>(parts);
  }
};

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
