#include "sim/machine/checked_bytes.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace cpverify::sim {
namespace {

constexpr std::size_t kWordBits = 64;
constexpr std::byte kFresh{0xFF};

/// Calls visit(word index, mask) for each word that a range of bits touches.
template <class Visit>
void for_each_word(std::size_t offset, std::size_t count, Visit visit) {
  while (count > 0) {
    const std::size_t bit = offset % kWordBits;
    const std::size_t here = std::min(count, kWordBits - bit);
    const std::uint64_t mask = (here == kWordBits ? ~0ULL : (1ULL << here) - 1) << bit;
    visit(offset / kWordBits, mask);
    offset += here;
    count -= here;
  }
}

}  // namespace

CheckedBytes::CheckedBytes(std::size_t size_bytes)
    : size_{size_bytes},
      unwritten_{size_bytes},
      data_(size_bytes, kFresh),
      written_((size_bytes + kBits - 1) / kBits) {}

void CheckedBytes::reset() noexcept {
  if (size_ == 0) return;
  std::fill(data_.begin(), data_.end(), kFresh);
  std::fill(written_.begin(), written_.end(), 0);
  unwritten_ = size_;
}

void CheckedBytes::forget(std::size_t offset, std::size_t count) noexcept {
  if (count == 0) return;
  std::memset(data_.data() + offset, std::to_integer<int>(kFresh), count);
  for_each_word(offset, count, [this](std::size_t word, std::uint64_t mask) {
    unwritten_ += static_cast<std::size_t>(std::popcount(written_[word] & mask));
    written_[word] &= ~mask;
  });
}

void CheckedBytes::mark_written(std::size_t offset, std::size_t count) noexcept {
  for_each_word(offset, count, [this](std::size_t word, std::uint64_t mask) {
    unwritten_ -= static_cast<std::size_t>(std::popcount(~written_[word] & mask));
    written_[word] |= mask;
  });
}

void CheckedBytes::zero(std::size_t offset, std::size_t count) noexcept {
  std::memset(data_.data() + offset, 0, count);
  mark_written(offset, count);
}

bool CheckedBytes::is_written(std::size_t offset, std::size_t count) const noexcept {
  if (count == 0) return true;
  const std::size_t first = offset / kBits;
  const std::size_t last = (offset + count - 1) / kBits;
  const std::uint64_t first_mask = ~0ULL << (offset % kBits);
  const std::uint64_t last_mask = ~0ULL >> (kBits - 1 - (offset + count - 1) % kBits);
  if (first == last) return (~written_[first] & first_mask & last_mask) == 0;
  std::uint64_t missing = (~written_[first] & first_mask) | (~written_[last] & last_mask);
  // Whole words, so that the loop becomes vectors: scans of a matrix tile take most of the time.
  for (std::size_t word = first + 1; word < last; ++word) missing |= ~written_[word];
  return missing == 0;
}

std::size_t CheckedBytes::first_unwritten(std::size_t offset, std::size_t count) const noexcept {
  std::size_t at = offset;
  while (at < offset + count && ((written_[at / kBits] >> (at % kBits)) & 1U) != 0) ++at;
  return at;
}

std::size_t CheckedBytes::count_unwritten(std::size_t offset, std::size_t count) const noexcept {
  std::size_t missing = 0;
  for_each_word(offset, count, [&](std::size_t word, std::uint64_t mask) {
    missing += static_cast<std::size_t>(std::popcount(~written_[word] & mask));
  });
  return missing;
}

void CheckedBytes::copy_from(std::size_t offset, const CheckedBytes& source,
                             std::size_t source_offset, std::size_t count) {
  if (count == 0) return;
  if (source.is_written(source_offset, count)) {
    std::memmove(data_.data() + offset, source.data() + source_offset, count);
    mark_written(offset, count);
    return;
  }
  std::vector<bool> is_source_written(count);
  for (std::size_t i = 0; i < count; ++i) {
    is_source_written[i] = source.is_written(source_offset + i, 1);
  }
  std::memmove(data_.data() + offset, source.data() + source_offset, count);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_source_written[i]) {
      mark_written(offset + i, 1);
    } else {
      forget(offset + i, 1);
    }
  }
}

}  // namespace cpverify::sim
