#pragma once

#include <bit>
#include <cstdint>

#include "numerics/float32.hpp"

/// Rounding to odd: an inexact result becomes the neighbour whose last bit is one. Rounded once
/// more, to a format with at least two bits less, it gives what one rounding of the exact value
/// would, so that 16-bit arithmetic can be done in wider formats without double rounding.
namespace cpverify::numerics {

inline constexpr std::uint64_t kSignBit64 = 1ULL << 63;
inline constexpr std::uint64_t kInfinityBits64 = 0x7ff0000000000000ULL;

[[nodiscard]] constexpr bool is_nan_bits64(std::uint64_t bits) noexcept {
  return (bits & ~kSignBit64) > kInfinityBits64;
}

[[nodiscard]] constexpr bool is_finite(double value) noexcept {
  return (std::bit_cast<std::uint64_t>(value) & kInfinityBits64) != kInfinityBits64;
}

/// a + b rounded to odd; infinities and NaN as IEEE has them. |a| and |b| below 2^1000.
[[nodiscard]] constexpr double add_to_odd(double a, double b) noexcept {
  const double sum = a + b;
  if (!is_finite(sum)) return sum;
  // The exact error of the sum. Source: Knuth, TAOCP 2, 4.2.2, theorem B.
  const double b_part = sum - a;
  const double error = (a - (sum - b_part)) + (b - b_part);
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0.0 || (bits & 1U) != 0) return sum;
  // An even neighbour steps towards the error: away from zero when both have one sign.
  return std::bit_cast<double>((error > 0.0) == (sum > 0.0) ? bits + 1 : bits - 1);
}

/// `value` as f32, rounded to odd; an overflow gives the largest finite f32, which is odd.
[[nodiscard]] constexpr float narrow_to_odd(double value) noexcept {
  if (!is_finite(value)) return static_cast<float>(value);
  const auto nearest = static_cast<float>(value);
  const std::uint32_t bits = to_bits(nearest);
  const auto kept = static_cast<double>(nearest);
  if (kept == value || (bits & 1U) != 0) return nearest;
  const double magnitude = value < 0.0 ? -value : value;
  const double kept_magnitude = kept < 0.0 ? -kept : kept;
  return from_bits(magnitude > kept_magnitude ? bits + 1 : bits - 1);
}

}  // namespace cpverify::numerics
