#pragma once

#include <cstdint>
#include <type_traits>

namespace cpverify::sim {

/// The upper half of the product. __int128 is a vendor extension: 64-bit types by long
/// multiplication.
template <class T>
T high_product(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((Wide{a} * Wide{b}) >> (8 * sizeof(T)));
  } else {
    constexpr std::uint32_t kAllOnes = 0xffffffffU;
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    const std::uint64_t low = (x & kAllOnes) * (y & kAllOnes);
    const std::uint64_t middle_a = (x >> 32) * (y & kAllOnes) + (low >> 32);
    const std::uint64_t middle_b = (x & kAllOnes) * (y >> 32) + (middle_a & kAllOnes);
    std::uint64_t high = (x >> 32) * (y >> 32) + (middle_a >> 32) + (middle_b >> 32);
    // A negative factor counts as factor - 2^64 in the signed product.
    if (std::is_signed_v<T> && a < 0) high -= y;
    if (std::is_signed_v<T> && b < 0) high -= x;
    return static_cast<T>(high);
  }
}

}  // namespace cpverify::sim
