#pragma once

#include <cstdint>

namespace cpverify::sim {

/// An operand of wgmma in shared memory. Its core matrices are 8 rows of 16 bytes.
/// Source: PTX ISA, "Matrix-descriptor Format" and "Strides" of wgmma.
struct MatrixDescriptor {
  std::uint32_t start = 0;          ///< Bytes, as the two strides; all multiples of 16.
  std::uint32_t leading_bytes = 0;  ///< "Leading dimension byte offset".
  std::uint32_t stride_bytes = 0;   ///< "Stride dimension byte offset".
  std::uint32_t base_offset = 0;    ///< Rows of 128 bytes between a pattern boundary and the start.
  std::uint32_t pattern_bytes = 16;  ///< What a swizzle permutes: 128, 64, 32; 16 without one.
  bool is_transposed = false;        ///< Along M or N, not along K, elements follow each other.

  [[nodiscard]] static MatrixDescriptor decode(std::uint64_t bits, bool is_transposed) noexcept;

  /// Address of 16 bytes: of row `i` (of M or N) and half `part` (of K), or, transposed, of row
  /// `part` (of K) and the eight elements `i` (of M or N).
  [[nodiscard]] std::uint32_t address(std::uint32_t i, std::uint32_t part) const noexcept {
    const std::uint32_t linear =
        (start + (is_transposed ? along_k(i, part) : along_rows(i, part))) & kAddressMask;
    const std::uint32_t row = (linear >> 7) - base_offset;
    return linear ^ ((row & (pattern_bytes / 16 - 1)) << 4);
  }

 private:
  static constexpr std::uint32_t kAddressMask = 0x3ffff;

  [[nodiscard]] std::uint32_t along_rows(std::uint32_t row, std::uint32_t half) const noexcept {
    const std::uint32_t step = pattern_bytes == 16 ? leading_bytes : 16;
    return row / 8 * stride_bytes + row % 8 * pattern_bytes + half * step;
  }
  [[nodiscard]] std::uint32_t along_k(std::uint32_t block, std::uint32_t k) const noexcept {
    const std::uint32_t rows = k % 8 * pattern_bytes;
    if (pattern_bytes == 16) return block * stride_bytes + rows + k / 8 * leading_bytes;
    const std::uint32_t blocks = pattern_bytes / 16;
    return block % blocks * 16 + block / blocks * leading_bytes + rows + k / 8 * stride_bytes;
  }
};

}  // namespace cpverify::sim
