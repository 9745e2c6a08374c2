#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cpverify::sim {

/// Elements of a tensor, by the numbers of CUtensorMapDataType.
enum class TensorElement : std::uint8_t {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz,
};

[[nodiscard]] std::uint32_t size_bytes(TensorElement element) noexcept;
[[nodiscard]] bool is_float(TensorElement element) noexcept;

/// A tensor in global memory and the box that a copy moves, as cuTensorMapEncodeTiled describes
/// them without interleaving. Source: CUDA Driver API manual, "Tensor Map Object Management"; PTX
/// ISA, "Tensors".
struct TensorMap {
  static constexpr std::size_t kBytes = 128;  ///< Of the opaque object.
  static constexpr std::size_t kRankMax = 5;

  TensorElement element = TensorElement::u8;
  std::uint32_t rank = 1;
  std::uint32_t swizzle_bytes = 0;  ///< 0 for none, 32, 64 or 128.
  bool is_nan_fill = false;         ///< What lies outside of the tensor is NaN, else zero.
  std::uint64_t address = 0;
  std::array<std::uint64_t, kRankMax> extents{1, 1, 1, 1, 1};  ///< Elements; dimension 0 is dense.
  std::array<std::uint64_t, kRankMax> strides{};  ///< Bytes; [0] is that of an element.
  std::array<std::uint32_t, kRankMax> box{1, 1, 1, 1, 1};
  std::array<std::uint32_t, kRankMax> steps{1, 1, 1, 1, 1};  ///< Element strides; [0] is ignored.

  /// Elements that a copy moves along a dimension.
  [[nodiscard]] std::uint32_t count(std::size_t dimension) const noexcept;
  [[nodiscard]] std::uint64_t row_bytes() const noexcept;
  /// From one row of the box to the next in shared memory: with swizzling the whole swizzle width.
  [[nodiscard]] std::uint64_t pitch_bytes() const noexcept;
  [[nodiscard]] std::uint64_t row_count() const noexcept;
  /// What lies outside, repeated to 8 bytes.
  [[nodiscard]] std::uint64_t fill_bits() const noexcept;
};

/// Our own layout of the opaque object.
[[nodiscard]] std::array<std::byte, TensorMap::kBytes> encode(const TensorMap& map);
/// Nothing when the bytes are not of encode().
[[nodiscard]] std::optional<TensorMap> decode_tensor_map(
    std::span<const std::byte, TensorMap::kBytes> bytes);

/// A run of bytes of a tile.
struct TilePiece {
  std::uint64_t shared = 0;  ///< Offset in shared memory.
  std::uint64_t size_bytes = 0;
  std::uint64_t address = 0;  ///< In global memory, when it is inside of the tensor.
  bool is_inside = false;
};

/// The box at `coordinates` (elements, dimension 0 first; may be negative), laid out at `shared`.
[[nodiscard]] std::vector<TilePiece> tile_pieces(
    const TensorMap& map, const std::array<std::int32_t, TensorMap::kRankMax>& coordinates,
    std::uint64_t shared);

/// Where a byte of a box lies: bits 4 to 6 of its address are changed by bits 7 to 9, or fewer of
/// them. Source: PTX ISA, "Swizzling Modes".
[[nodiscard]] std::uint64_t swizzle(std::uint64_t address, std::uint32_t swizzle_bytes) noexcept;

}  // namespace cpverify::sim
