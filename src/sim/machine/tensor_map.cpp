#include "sim/machine/tensor_map.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace cpverify::sim {
namespace {

constexpr std::uint64_t kMagic = 0x31'70'61'4d'72'6f'73'54;
/// Swizzling moves blocks of this size.
constexpr std::uint64_t kSwizzleBlock = 16;

/// The opaque object. Boxes, steps and the like are small; extents are at most 2^32, so one less is
/// stored.
struct Stored {
  std::uint64_t magic = kMagic;
  std::uint64_t address = 0;
  std::array<std::uint64_t, TensorMap::kRankMax> strides{};
  std::array<std::uint32_t, TensorMap::kRankMax> last{};
  std::array<std::uint16_t, TensorMap::kRankMax> box{};
  std::array<std::uint8_t, TensorMap::kRankMax> steps{};
  std::uint8_t element = 0;
  std::uint8_t rank = 0;
  std::uint8_t swizzle_bytes = 0;
  std::uint8_t is_nan_fill = 0;
  std::array<std::uint8_t, 29> padding{};
};
static_assert(sizeof(Stored) == TensorMap::kBytes);
static_assert(std::is_trivially_copyable_v<Stored>);

using Coordinates = std::array<std::int64_t, TensorMap::kRankMax>;

/// Adds a row of the box: the elements from coordinates[0] on, inside only where the tensor has
/// them.
class RowWriter {
 public:
  RowWriter(const TensorMap& map, std::vector<TilePiece>& pieces) : map_{&map}, pieces_{&pieces} {}

  void add_row(const Coordinates& at, std::uint64_t shared) {
    const auto width = static_cast<std::int64_t>(map_->box[0]);
    std::int64_t first = 0;
    std::int64_t last = 0;
    if (is_row_inside(at)) {
      const auto extent = static_cast<std::int64_t>(map_->extents[0]);
      first = std::clamp<std::int64_t>(-at[0], 0, width);
      last = std::clamp<std::int64_t>(extent - at[0], first, width);
    }
    add(shared, {0, first}, 0);
    add(shared, {first, last}, address(at) + bytes(first));
    add(shared, {last, width}, 0);
  }

 private:
  struct Range {
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  [[nodiscard]] std::uint64_t bytes(std::int64_t elements) const {
    return static_cast<std::uint64_t>(elements) * size_bytes(map_->element);
  }
  [[nodiscard]] bool is_row_inside(const Coordinates& at) const {
    for (std::size_t i = 1; i < map_->rank; ++i) {
      if (at[i] < 0 || static_cast<std::uint64_t>(at[i]) >= map_->extents[i]) return false;
    }
    return true;
  }
  [[nodiscard]] std::uint64_t address(const Coordinates& at) const {
    std::uint64_t result = map_->address;
    for (std::size_t i = 0; i < map_->rank; ++i) {
      result += static_cast<std::uint64_t>(at[i]) * map_->strides[i];
    }
    return result;
  }
  /// Elements of a row; address 0 for outside. Swizzled ones block by block.
  void add(std::uint64_t shared, Range range, std::uint64_t address) {
    const std::uint64_t end = bytes(range.end);
    for (std::uint64_t at = bytes(range.begin); at < end;) {
      std::uint64_t stop = end;
      if (map_->swizzle_bytes != 0) stop = std::min(end, (at / kSwizzleBlock + 1) * kSwizzleBlock);
      TilePiece piece;
      piece.shared = swizzle(shared + at, map_->swizzle_bytes);
      piece.size_bytes = stop - at;
      piece.is_inside = address != 0;
      if (piece.is_inside) piece.address = address + (at - bytes(range.begin));
      pieces_->push_back(piece);
      at = stop;
    }
  }

  const TensorMap* map_;
  std::vector<TilePiece>* pieces_;
};

}  // namespace

std::uint32_t size_bytes(TensorElement element) noexcept {
  switch (element) {
    case TensorElement::u8:
      return 1;
    case TensorElement::u16:
    case TensorElement::f16:
    case TensorElement::bf16:
      return 2;
    case TensorElement::u32:
    case TensorElement::s32:
    case TensorElement::f32:
    case TensorElement::f32_ftz:
    case TensorElement::tf32:
    case TensorElement::tf32_ftz:
      return 4;
    case TensorElement::u64:
    case TensorElement::s64:
    case TensorElement::f64:
      return 8;
  }
  return 0;
}

bool is_float(TensorElement element) noexcept {
  return element >= TensorElement::f16;
}

std::uint32_t TensorMap::count(std::size_t dimension) const noexcept {
  if (dimension == 0) return box[0];
  return (box[dimension] + steps[dimension] - 1) / steps[dimension];
}

std::uint64_t TensorMap::row_bytes() const noexcept {
  return std::uint64_t{box[0]} * size_bytes(element);
}

std::uint64_t TensorMap::pitch_bytes() const noexcept {
  return swizzle_bytes == 0 ? row_bytes() : swizzle_bytes;
}

std::uint64_t TensorMap::row_count() const noexcept {
  std::uint64_t rows = 1;
  for (std::size_t i = 1; i < rank; ++i) rows *= count(i);
  return rows;
}

std::uint64_t TensorMap::fill_bits() const noexcept {
  if (!is_nan_fill) return 0;
  switch (size_bytes(element)) {
    case 2:
      return 0x7fff'7fff'7fff'7fff;
    case 4:
      return 0x7fff'ffff'7fff'ffff;
    default:
      return 0x7fff'ffff'ffff'ffff;
  }
}

std::array<std::byte, TensorMap::kBytes> encode(const TensorMap& map) {
  Stored stored;
  stored.address = map.address;
  stored.strides = map.strides;
  for (std::size_t i = 0; i < TensorMap::kRankMax; ++i) {
    stored.last[i] = static_cast<std::uint32_t>(map.extents[i] - 1);
    stored.box[i] = static_cast<std::uint16_t>(map.box[i]);
    stored.steps[i] = static_cast<std::uint8_t>(map.steps[i]);
  }
  stored.element = static_cast<std::uint8_t>(map.element);
  stored.rank = static_cast<std::uint8_t>(map.rank);
  stored.swizzle_bytes = static_cast<std::uint8_t>(map.swizzle_bytes);
  stored.is_nan_fill = map.is_nan_fill ? 1 : 0;
  std::array<std::byte, TensorMap::kBytes> bytes{};
  std::memcpy(bytes.data(), &stored, sizeof stored);
  return bytes;
}

std::optional<TensorMap> decode_tensor_map(std::span<const std::byte, TensorMap::kBytes> bytes) {
  Stored stored;
  std::memcpy(&stored, bytes.data(), sizeof stored);
  const bool is_good = stored.magic == kMagic && stored.rank >= 1 &&
                       stored.rank <= TensorMap::kRankMax &&
                       stored.element <= static_cast<std::uint8_t>(TensorElement::tf32_ftz);
  if (!is_good) return std::nullopt;
  TensorMap map;
  map.element = static_cast<TensorElement>(stored.element);
  map.rank = stored.rank;
  map.swizzle_bytes = stored.swizzle_bytes;
  map.is_nan_fill = stored.is_nan_fill != 0;
  map.address = stored.address;
  map.strides = stored.strides;
  for (std::size_t i = 0; i < TensorMap::kRankMax; ++i) {
    map.extents[i] = std::uint64_t{stored.last[i]} + 1;
    map.box[i] = stored.box[i];
    map.steps[i] = std::max<std::uint32_t>(stored.steps[i], 1);
  }
  return map;
}

std::uint64_t swizzle(std::uint64_t address, std::uint32_t swizzle_bytes) noexcept {
  const std::uint64_t mask = swizzle_bytes < 32 ? 0 : swizzle_bytes - kSwizzleBlock;
  return address ^ ((address >> 3) & mask);
}

std::vector<TilePiece> tile_pieces(const TensorMap& map,
                                   const std::array<std::int32_t, TensorMap::kRankMax>& coordinates,
                                   std::uint64_t shared) {
  std::vector<TilePiece> pieces;
  RowWriter writer{map, pieces};
  const std::uint64_t rows = map.row_count();
  for (std::uint64_t row = 0; row < rows; ++row) {
    Coordinates at{};
    at[0] = coordinates[0];
    std::uint64_t left = row;
    for (std::size_t i = 1; i < map.rank; ++i) {
      const std::uint64_t step = left % map.count(i) * map.steps[i];
      at[i] = std::int64_t{coordinates[i]} + static_cast<std::int64_t>(step);
      left /= map.count(i);
    }
    writer.add_row(at, shared + row * map.pitch_bytes());
  }
  return pieces;
}

}  // namespace cpverify::sim
