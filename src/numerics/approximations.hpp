#pragma once

#include <cstdint>

#include <immintrin.h>

#include "numerics/float32.hpp"

/// PTX's approximate functions, defined by us: the manual states only error limits, and libm
/// differs between hosts. Built from exactly rounded operations, so the bits are the same
/// everywhere.
namespace cpverify::numerics {

/// ex2.approx.f32: 2^x. Exact at integers; ex2(-inf) = +0, ex2(+inf) = +inf; results may be
/// subnormal. The unit test measures an error of 0.99 ulp; the manual allows 2^-22, two ulps.
[[nodiscard]] inline float exp2_approx(float x) noexcept {
  // Beyond these the result is 0 or inf; the clamp keeps the exponents below in range.
  float clamped = x < -151.0F ? -151.0F : x;
  clamped = clamped > 129.0F ? 129.0F : clamped;
  // Adding 1.5 * 2^23 rounds to the nearest integer and leaves it in the low bits of the sum.
  constexpr float kIntegerAnchor = 12582912.0F;
  const float anchored = clamped + kIntegerAnchor;
  const float fraction = clamped - (anchored - kIntegerAnchor);
  const std::uint32_t exponent = to_bits(anchored) - to_bits(kIntegerAnchor);

  // Minimax (Remez) polynomial of 2^f on [-1/2, 1/2] with the constant term fixed to 1, so that
  // integers are exact; relative error 2.6e-9 before rounding.
  float p = 0x1.470b48p-13F;
  p = __builtin_fmaf(p, fraction, 0x1.5f7276p-10F);
  p = __builtin_fmaf(p, fraction, 0x1.3b270ep-7F);
  p = __builtin_fmaf(p, fraction, 0x1.c6ae72p-5F);
  p = __builtin_fmaf(p, fraction, 0x1.ebfbe2p-3F);
  p = __builtin_fmaf(p, fraction, 0x1.62e432p-1F);
  p = __builtin_fmaf(p, fraction, 1.0F);

  // Two factors of which the first cannot leave the normal range: one rounding, in the second.
  const std::int32_t first = static_cast<std::int32_t>(exponent) >> 1;
  const std::int32_t second = static_cast<std::int32_t>(exponent) - first;
  const float scale_first = from_bits(static_cast<std::uint32_t>(first + 127) << 23);
  const float scale_second = from_bits(static_cast<std::uint32_t>(second + 127) << 23);
  const float result = p * scale_first * scale_second;
  return from_bits(is_nan_bits(to_bits(x)) ? kCanonicalNan32 : to_bits(result));
}

/// ex2.approx.ftz.f32: subnormal inputs and results become zeros.
[[nodiscard]] inline float exp2_approx_ftz(float x) noexcept {
  return flush_subnormal(exp2_approx(flush_subnormal(x)));
}

/// lg2.approx.f32: log2 of x. Exact at powers of two; log2(+-0) = -inf, of a negative number NaN.
/// Error at most 2^-22, absolute in (1/2, 2) and relative elsewhere, as in the manual; in fact
/// relative everywhere, 1.48 ulp at most in the unit test. A subnormal is no less exact.
[[nodiscard]] inline float log2_approx(float x) noexcept {
  const std::uint32_t bits = to_bits(x);
  // A subnormal is scaled by 2^24 (exactly), and its exponent corrected.
  const bool is_subnormal = (bits & kInfinityBits32) == 0;
  const std::uint32_t scaled = is_subnormal ? to_bits(x * 16777216.0F) : bits;
  // x = 2^e * m with m in [0.7071, 1.4142): subtracting the bits of 0.7071... makes the exponent
  // field of the difference e, whatever the mantissa.
  constexpr std::uint32_t kRootHalf = 0x3f3504f3U;
  const std::int32_t e = static_cast<std::int32_t>(scaled - kRootHalf) >> 23;
  const std::uint32_t mantissa = scaled - (static_cast<std::uint32_t>(e) << 23);
  const float r = from_bits(mantissa) - 1.0F;

  // Minimax (Remez) polynomial q with log2(1 + r) = r * log2(e) + r^2 * q(r); relative error of the
  // whole 3e-8 before rounding. r is exact, so the error stays relative near x = 1.
  float q = 0x1.021542p-3F;
  q = __builtin_fmaf(q, r, -0x1.a6bc4ap-3F);
  q = __builtin_fmaf(q, r, 0x1.b8c5b4p-3F);
  q = __builtin_fmaf(q, r, -0x1.e9994ap-3F);
  q = __builtin_fmaf(q, r, 0x1.26e754p-2F);
  q = __builtin_fmaf(q, r, -0x1.715b1ap-2F);
  q = __builtin_fmaf(q, r, 0x1.ec72f4p-2F);
  q = __builtin_fmaf(q, r, -0x1.715472p-1F);
  const float log_mantissa = __builtin_fmaf(r, 0x1.715476p+0F, r * r * q);
  const auto exponent = static_cast<float>(e - (is_subnormal ? 24 : 0));

  std::uint32_t result = to_bits(exponent + log_mantissa);
  result = bits == kInfinityBits32 ? kInfinityBits32 : result;
  result = bits > kInfinityBits32 ? kCanonicalNan32 : result;  // NaN, and every negative number.
  result = (bits & ~kSignBit32) == 0 ? kSignBit32 | kInfinityBits32 : result;
  return from_bits(result);
}

/// lg2.approx.ftz.f32: a subnormal of either sign counts as zero.
[[nodiscard]] inline float log2_approx_ftz(float x) noexcept {
  return log2_approx(flush_subnormal(x));
}

/// sqrt.rn.f32 and sqrt.approx.f32. The intrinsic, because sqrtf may call libm to set errno.
[[nodiscard]] inline float square_root(float x) noexcept {
  return canonical(_mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(x))));
}

/// rsqrt.approx.f32. Two roundings in double precision and one to f32: within 0.51 ulp.
[[nodiscard]] inline float reciprocal_square_root(float x) noexcept {
  const __m128d root = _mm_sqrt_pd(_mm_set1_pd(static_cast<double>(x)));
  return canonical(static_cast<float>(1.0 / _mm_cvtsd_f64(root)));
}

}  // namespace cpverify::numerics
