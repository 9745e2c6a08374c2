#include "numerics/directed.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "numerics/float64.hpp"
#include "numerics/odd_rounding.hpp"

namespace cpverify::numerics {
namespace {

constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;

bool is_negative(double value) {
  return (to_bits64(value) & kSignBit64) != 0;
}

double negated(double value) {
  return from_bits64(to_bits64(value) ^ kSignBit64);
}

/// 2^exponent, which is in the range of normal numbers.
double power_of_two(int exponent) {
  return from_bits64(static_cast<std::uint64_t>(exponent + kExponentBias) << kMantissaBits);
}

/// value * 2^exponent, in steps that stay in range: exact where the result is a normal number.
double scaled(double value, int exponent) {
  constexpr int kStep = 1000;
  while (exponent != 0) {
    const int step = std::clamp(exponent, -kStep, kStep);
    value *= power_of_two(step);
    exponent -= step;
  }
  return value;
}

/// The exponent of the highest bit of a finite number that is not 0.
int exponent_of(double value) {
  const std::uint64_t magnitude = to_bits64(value) & ~kSignBit64;
  const auto biased = static_cast<int>(magnitude >> kMantissaBits);
  if (biased != 0) return biased - kExponentBias;
  // Subnormal: bit 51 is worth 2^-1023.
  return static_cast<int>(std::bit_width(magnitude)) - kMantissaBits - kExponentBias;
}

/// -1, 0 or 1: the sign of the exact sum. Terms are added to an expansion, whose components do not
/// overlap, so that the largest that is not 0 has the sign of all. Nothing may leave the range of
/// normal numbers. Source: Shewchuk, Adaptive Precision Floating-Point Arithmetic, 1997,
/// section 2.4.
template <std::size_t kTerms>
int sign_of_sum(const std::array<double, kTerms>& terms) {
  std::array<double, kTerms> components{};
  for (std::size_t count = 0; count < kTerms; ++count) {
    double carried = terms[count];
    for (std::size_t i = 0; i < count; ++i) {
      const double sum = carried + components[i];
      const double part = sum - carried;
      components[i] = (carried - (sum - part)) + (components[i] - part);
      carried = sum;
    }
    components[count] = carried;
  }
  for (std::size_t i = kTerms; i > 0; --i) {
    if (components[i - 1] != 0.0) return components[i - 1] > 0.0 ? 1 : -1;
  }
  return 0;
}

/// The sign of a * b + c - nearest, where `nearest` is a * b + c rounded, all are finite and
/// neither a nor b is 0. Factors are brought to [1, 2), and c and `nearest` are moved as far as the
/// product.
int sign_of_error(double a, double b, double c, double nearest) {
  // Beyond it, c only decides a tie; so it may be moved until there.
  constexpr int kFar = 400;
  const int product_exponent = exponent_of(a) + exponent_of(b);
  const double left = scaled(a, -exponent_of(a));
  const double right = scaled(b, -exponent_of(b));
  double addend = 0.0;
  if (c != 0.0) {
    const int distance = exponent_of(c) - product_exponent;
    // The sum is c and a remainder of no weight: rounding to nearest gave c.
    if (distance > kFar) return is_negative(a) == is_negative(b) ? 1 : -1;
    addend = distance < -kFar ? power_of_two(-kFar) : scaled(c, -product_exponent);
    if (distance < -kFar && is_negative(c)) addend = negated(addend);
  }
  const double product = left * right;
  const double low = __builtin_fma(left, right, negated(product));
  // Underflowed to zero: the exact value has a sign of its own.
  const double rounded = nearest == 0.0 ? 0.0 : scaled(nearest, -product_exponent);
  return sign_of_sum<4>({low, addend, product, negated(rounded)});
}

/// The next number above (is_up) or below; infinities are next to the largest finite ones.
double neighbour(double value, bool is_up) {
  if (value == 0.0) return from_bits64(is_up ? 1 : kSignBit64 | 1);
  const std::uint64_t bits = to_bits64(value);
  return from_bits64(is_negative(value) == is_up ? bits - 1 : bits + 1);
}

/// From the nearest number and on which side of it the exact value is.
double directed(double nearest, int error, Direction direction) {
  if (error == 0) return nearest;
  // A nearest of 0 has the sign of the exact value, which does not.
  const bool is_below_zero = nearest == 0.0 ? error < 0 : is_negative(nearest);
  const bool is_up =
      direction == Direction::up || (direction == Direction::to_zero && is_below_zero);
  return (error > 0) == is_up ? neighbour(nearest, is_up) : nearest;
}

/// For a result that is not finite though everything else is.
int sign_of_overflow(double nearest) {
  return is_negative(nearest) ? 1 : -1;
}

}  // namespace

double fma_directed(double a, double b, double c, Direction direction) noexcept {
  const double nearest = __builtin_fma(a, b, c);
  if (!is_finite(a) || !is_finite(b) || !is_finite(c)) return canonical(nearest);
  if (!is_finite(nearest)) return directed(nearest, sign_of_overflow(nearest), direction);
  const bool is_product_negative = is_negative(a) != is_negative(b);
  if (a == 0.0 || b == 0.0) {
    return c == 0.0 ? signed_zero<double>(is_product_negative, is_negative(c), direction) : c;
  }
  const int error = sign_of_error(a, b, c, nearest);
  if (nearest == 0.0 && error == 0) {
    return signed_zero<double>(is_product_negative, is_negative(c), direction);
  }
  return directed(nearest, error, direction);
}

double add_directed(double a, double b, Direction direction) noexcept {
  return fma_directed(a, 1.0, b, direction);
}

double multiply_directed(double a, double b, Direction direction) noexcept {
  const double nearest = a * b;
  if (!is_finite(a) || !is_finite(b)) return canonical(nearest);
  if (!is_finite(nearest)) return directed(nearest, sign_of_overflow(nearest), direction);
  if (a == 0.0 || b == 0.0) return nearest;
  return directed(nearest, sign_of_error(a, b, 0.0, nearest), direction);
}

}  // namespace cpverify::numerics
