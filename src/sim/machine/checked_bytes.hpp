#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cpverify::sim {

/// Bytes with one bit each that says whether they have been written. Fresh bytes are 0xFF, which is
/// a NaN in every float type, and unwritten.
class CheckedBytes {
 public:
  CheckedBytes() = default;
  explicit CheckedBytes(std::size_t size_bytes);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::byte* data() noexcept { return data_.data(); }
  [[nodiscard]] const std::byte* data() const noexcept { return data_.data(); }

  /// Makes every byte fresh again.
  void reset() noexcept;
  /// Back to fresh: 0xFF and unwritten.
  void forget(std::size_t offset, std::size_t count) noexcept;
  void mark_written(std::size_t offset, std::size_t count) noexcept;
  [[nodiscard]] bool is_written(std::size_t offset, std::size_t count) const noexcept;
  [[nodiscard]] bool is_all_written() const noexcept { return unwritten_ == 0; }
  /// First unwritten byte of a range that has one.
  [[nodiscard]] std::size_t first_unwritten(std::size_t offset, std::size_t count) const noexcept;
  [[nodiscard]] std::size_t count_unwritten(std::size_t offset, std::size_t count) const noexcept;
  /// Copies bytes and their bits from `source`, which may be this object and may overlap.
  void copy_from(std::size_t offset, const CheckedBytes& source, std::size_t source_offset,
                 std::size_t count);
  /// Writes zeros.
  void zero(std::size_t offset, std::size_t count) noexcept;

  /// The same for a block: 1, 2, 4, 8 or 16 bytes at a multiple of their number, whose bits lie in
  /// one word.
  [[nodiscard]] bool is_block_written(std::size_t offset, std::size_t count) const noexcept {
    const std::uint64_t mask = block_mask(offset, count);
    return (written_[offset / kBits] & mask) == mask;
  }
  void mark_block_written(std::size_t offset, std::size_t count) noexcept {
    const std::uint64_t mask = block_mask(offset, count);
    std::uint64_t& word = written_[offset / kBits];
    unwritten_ -= static_cast<std::size_t>(std::popcount(~word & mask));
    word |= mask;
  }
  void forget_block(std::size_t offset, std::size_t count) noexcept {
    const std::uint64_t mask = block_mask(offset, count);
    std::uint64_t& word = written_[offset / kBits];
    unwritten_ += static_cast<std::size_t>(std::popcount(word & mask));
    word &= ~mask;
    std::memset(data_.data() + offset, 0xFF, count);
  }
  /// Both blocks are aligned.
  void copy_block(std::size_t offset, const CheckedBytes& source, std::size_t source_offset,
                  std::size_t count) {
    if (!source.is_block_written(source_offset, count)) {
      copy_from(offset, source, source_offset, count);
      return;
    }
    std::memcpy(data_.data() + offset, source.data() + source_offset, count);
    mark_block_written(offset, count);
  }

 private:
  static constexpr std::size_t kBits = 64;
  [[nodiscard]] static constexpr std::uint64_t block_mask(std::size_t offset,
                                                          std::size_t count) noexcept {
    return ((1ULL << count) - 1) << (offset % kBits);
  }

  std::size_t size_ = 0;
  std::size_t unwritten_ = 0;
  std::vector<std::byte> data_;
  std::vector<std::uint64_t> written_;  ///< Bit i % 64 of word i / 64 is byte i.
};

}  // namespace cpverify::sim
