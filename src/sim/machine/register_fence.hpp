#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace cpverify::sim {

struct Warp;

/// Finds registers of wgmma that somebody else has written since the last wgmma.fence of the warp:
/// what the registers that any wgmma of the kernel names held then, or were given by a wgmma since,
/// is compared with what they hold when the next one begins. A write of the same value is not seen.
/// Source: PTX ISA, "wgmma.fence". One for the four warps of a warpgroup.
class RegisterFence {
 public:
  /// The warp executes a wgmma.fence.
  void remember(const Warp& warp);
  /// A wgmma has written these registers of the warp.
  void update(const Warp& warp, std::span<const std::uint32_t> rows);
  /// The lanes of the warp in which one of these registers has changed.
  [[nodiscard]] std::uint32_t changed_lanes(const Warp& warp,
                                            std::span<const std::uint32_t> rows) const;

 private:
  using Image = std::vector<std::uint32_t>;  ///< [number of the row][lane]

  void find_rows(const Warp& warp);
  [[nodiscard]] std::size_t number_of(std::uint32_t row) const;

  std::vector<std::uint32_t> rows_;  ///< Ascending; set by the first fence.
  std::array<Image, 4> images_;      ///< By warp of the warpgroup; empty before its first fence.
};

}  // namespace cpverify::sim
