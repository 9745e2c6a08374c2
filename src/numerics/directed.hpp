#pragma once

#include "numerics/float32.hpp"
#include "numerics/float64.hpp"
#include "numerics/odd_rounding.hpp"

/// Sums and products rounded towards zero or an infinity, with the default rounding of the host:
/// the host's mode is never changed. NaN results are canonical.
namespace cpverify::numerics {

/// The sign of an exact sum that is 0: a zero is negative when both terms are, or, rounded down,
/// when their signs differ.
template <class Float>
[[nodiscard]] constexpr Float signed_zero(bool is_left_negative, bool is_right_negative,
                                          Direction direction) noexcept {
  const bool is_negative =
      is_left_negative == is_right_negative ? is_left_negative : direction == Direction::down;
  return is_negative ? Float{-0.0F} : Float{0.0F};
}

/// a * b + c with one rounding. The product of two f32 is exact in f64; the sum is rounded to odd
/// there, so that the second rounding sees on which side the exact value is.
[[nodiscard]] constexpr float fma_directed(float a, float b, float c,
                                           Direction direction) noexcept {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double sum = add_to_odd(product, static_cast<double>(c));
  if (sum == 0.0) {
    return signed_zero<float>((to_bits64(product) & kSignBit64) != 0,
                              (to_bits(c) & kSignBit32) != 0, direction);
  }
  return narrow_directed(sum, direction);
}

[[nodiscard]] constexpr float add_directed(float a, float b, Direction direction) noexcept {
  return fma_directed(a, 1.0F, b, direction);
}

[[nodiscard]] constexpr float multiply_directed(float a, float b, Direction direction) noexcept {
  return narrow_directed(static_cast<double>(a) * static_cast<double>(b), direction);
}

[[nodiscard]] double fma_directed(double a, double b, double c, Direction direction) noexcept;
[[nodiscard]] double add_directed(double a, double b, Direction direction) noexcept;
[[nodiscard]] double multiply_directed(double a, double b, Direction direction) noexcept;

}  // namespace cpverify::numerics
