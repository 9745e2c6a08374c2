#pragma once

#include <cstdint>

#include "numerics/approximations.hpp"
#include "numerics/float32.hpp"

/// sin.approx, cos.approx and tanh.approx, defined by us: the manual states error limits only.
namespace cpverify::numerics {

/// An argument less a multiple of pi/2, and that multiple modulo 4.
struct Quadrant {
  double rest = 0.0;  ///< In [-pi/4, pi/4].
  std::uint32_t number = 0;
};

/// Good to 2^-40 for |x| < 2^30; beyond, where the manual promises nothing, any quadrant will do.
[[nodiscard]] inline Quadrant reduce_to_quadrant(float x) noexcept {
  constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  constexpr double kHalfPiRest = 0x1.1a62633145c07p-54;
  constexpr double kIntegerAnchor = 0x1.8p+52;  // Adding it rounds to the nearest integer.
  const bool is_near = x > -1073741824.0F && x < 1073741824.0F;
  const double value = is_near ? static_cast<double>(x) : 0.0;
  const double count = (value * kTwoOverPi + kIntegerAnchor) - kIntegerAnchor;
  const double rest = __builtin_fma(-count, kHalfPiRest, __builtin_fma(-count, kHalfPi, value));
  return {rest, static_cast<std::uint32_t>(static_cast<std::int64_t>(count)) & 3U};
}

/// Taylor polynomials: on [-pi/4, pi/4] the first terms left out are below 2^-28 of the sine.
[[nodiscard]] inline double sine_polynomial(double r) noexcept {
  const double s = r * r;
  double p = 1.0 / 362880.0;
  p = __builtin_fma(p, s, -1.0 / 5040.0);
  p = __builtin_fma(p, s, 1.0 / 120.0);
  p = __builtin_fma(p, s, -1.0 / 6.0);
  return __builtin_fma(p * s, r, r);
}
[[nodiscard]] inline double cosine_polynomial(double r) noexcept {
  const double s = r * r;
  double p = -1.0 / 3628800.0;
  p = __builtin_fma(p, s, 1.0 / 40320.0);
  p = __builtin_fma(p, s, -1.0 / 720.0);
  p = __builtin_fma(p, s, 1.0 / 24.0);
  p = __builtin_fma(p, s, -0.5);
  return __builtin_fma(p, s, 1.0);
}

/// The sine of `x` + quadrants * pi/2; NaN for infinities and NaN, -0 for -0.
[[nodiscard]] inline float shifted_sine(float x, std::uint32_t quadrants) noexcept {
  const Quadrant quadrant = reduce_to_quadrant(x);
  const std::uint32_t number = quadrant.number + quadrants;
  const double magnitude =
      (number & 1U) == 0 ? sine_polynomial(quadrant.rest) : cosine_polynomial(quadrant.rest);
  const auto value = static_cast<float>((number & 2U) == 0 ? magnitude : -magnitude);
  const bool is_finite = (to_bits(x) & kInfinityBits32) != kInfinityBits32;
  return is_finite ? value : from_bits(kCanonicalNan32);
}

/// sin.approx.f32. The manual allows an absolute error of 2^-20.5 in [-pi, pi]; ours is below 1
/// ulp.
[[nodiscard]] inline float sine_approx(float x) noexcept {
  // A zero keeps its sign.
  return (to_bits(x) & ~kSignBit32) == 0 ? x : shifted_sine(x, 0);
}
/// cos.approx.f32, as sine_approx().
[[nodiscard]] inline float cosine_approx(float x) noexcept {
  return shifted_sine(x, 1);
}

/// tanh.approx.f32. The manual allows a relative error of 2^-11; ours is below 2^-20.
[[nodiscard]] inline float tanh_approx(float x) noexcept {
  const std::uint32_t sign = to_bits(x) & kSignBit32;
  const float a = from_bits(to_bits(x) ^ sign);
  if (is_nan_bits(to_bits(x))) return from_bits(kCanonicalNan32);
  float result = 0.0F;
  if (a < 0.25F) {
    // The first term left out, 62/2835 x^8, is below 2^-21 of the result.
    const float s = a * a;
    float p = -17.0F / 315.0F;
    p = __builtin_fmaf(p, s, 2.0F / 15.0F);
    p = __builtin_fmaf(p, s, -1.0F / 3.0F);
    result = __builtin_fmaf(p * s, a, a);
  } else {
    // (1 - e^-2a) / (1 + e^-2a), with 2 log2(e) = 2.8853901.
    const float power = exp2_approx(a * -0x1.715476p+1F);
    result = (1.0F - power) / (1.0F + power);
  }
  return from_bits(to_bits(result) | sign);
}

}  // namespace cpverify::numerics
