#pragma once

#include <bit>
#include <cstdint>

#include <immintrin.h>

#include "numerics/float32.hpp"
#include "numerics/odd_rounding.hpp"

/// Double precision. The manual lets NaN payloads pass; which one does differs between instruction
/// orders on x86, so results that are NaN are 0x7fffffffffffffff here.
namespace cpverify::numerics {

inline constexpr std::uint64_t kCanonicalNan64 = 0x7fffffffffffffffULL;

[[nodiscard]] constexpr std::uint64_t to_bits64(double value) noexcept {
  return std::bit_cast<std::uint64_t>(value);
}
[[nodiscard]] constexpr double from_bits64(std::uint64_t bits) noexcept {
  return std::bit_cast<double>(bits);
}

[[nodiscard]] constexpr double canonical(double value) noexcept {
  const std::uint64_t bits = to_bits64(value);
  return from_bits64(is_nan_bits64(bits) ? kCanonicalNan64 : bits);
}

/// max.f64: the other operand when one is NaN; +0 > -0.
[[nodiscard]] constexpr double maximum(double a, double b) noexcept {
  const std::uint64_t a_bits = to_bits64(a);
  const std::uint64_t b_bits = to_bits64(b);
  std::uint64_t bits = a > b ? a_bits : a < b ? b_bits : a_bits & b_bits;
  bits = is_nan_bits64(a_bits) ? b_bits : bits;
  bits = is_nan_bits64(b_bits) ? a_bits : bits;
  return canonical(from_bits64(bits));
}

/// min.f64, as maximum().
[[nodiscard]] constexpr double minimum(double a, double b) noexcept {
  const std::uint64_t a_bits = to_bits64(a);
  const std::uint64_t b_bits = to_bits64(b);
  std::uint64_t bits = a < b ? a_bits : a > b ? b_bits : a_bits | b_bits;
  bits = is_nan_bits64(a_bits) ? b_bits : bits;
  bits = is_nan_bits64(b_bits) ? a_bits : bits;
  return canonical(from_bits64(bits));
}

/// The intrinsic, because sqrt may call libm to set errno.
[[nodiscard]] inline double square_root(double x) noexcept {
  return canonical(_mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(x))));
}

/// The f32 next to `value` on the side of zero, of minus infinity or of plus infinity.
enum class Direction : std::uint8_t { to_zero, down, up };

[[nodiscard]] constexpr float narrow_directed(double value, Direction direction) noexcept {
  if (!is_finite(value)) return canonical(static_cast<float>(value));
  const auto nearest = static_cast<float>(value);
  const auto kept = static_cast<double>(nearest);
  if (kept == value) return nearest;
  const bool is_negative = value < 0.0;
  const bool wants_less =  // In magnitude.
      direction == Direction::to_zero || (direction == Direction::down) != is_negative;
  const bool is_less = (kept < value) != is_negative;
  const std::uint32_t bits = to_bits(nearest);
  return wants_less == is_less ? nearest : from_bits(wants_less ? bits - 1 : bits + 1);
}

}  // namespace cpverify::numerics
