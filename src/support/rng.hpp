#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace cpverify {

/// One step of SplitMix64: a bijection on 64-bit words that looks random.
/// Source: Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators", section 3.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15ULL;
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9ULL;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebULL;
  return value ^ (value >> 31);
}

/// A seeded sequence that is the same with every standard library, unlike std's distributions.
class Rng {
 public:
  constexpr explicit Rng(std::uint64_t seed) noexcept : state_{seed} {}

  [[nodiscard]] constexpr std::uint64_t next() noexcept {
    const std::uint64_t value = mix64(state_);
    state_ += 0x9e3779b97f4a7c15ULL;
    return value;
  }

  /// Uniform in [0, bound), bound >= 1. Unbiased: draws from the incomplete last interval are
  /// redrawn.
  [[nodiscard]] constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    const std::uint64_t excess = (0 - bound) % bound;
    std::uint64_t value = next();
    while (value < excess) value = next();
    return value % bound;
  }

  /// Fisher-Yates.
  template <class T>
  constexpr void shuffle(std::vector<T>& items) noexcept {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace cpverify
