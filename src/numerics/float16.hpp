#pragma once

#include <cstdint>

#include "numerics/float32.hpp"

/// The 16-bit formats as bit patterns: f16 (IEEE binary16) and bf16 (the upper half of an f32).
/// Rounding is to nearest, ties to even; subnormals are exact. Branch-free when inlined.
/// Source: PTX ISA, cvt: "NaN results are canonical: 0x7fff for .f16 and .bf16".
namespace cpverify::numerics {

inline constexpr std::uint16_t kCanonicalNan16 = 0x7fffU;

/// cvt.rn.bf16.f32. A value beyond the largest bf16 becomes an infinity.
[[nodiscard]] constexpr std::uint16_t f32_to_bf16(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  // Adding just under half a unit, and one more when the kept part is odd, carries exactly when
  // nearest-even rounds up; a carry out of the mantissa is the next exponent, as it should be.
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  return static_cast<std::uint16_t>(is_nan_bits(bits) ? kCanonicalNan16 : rounded);
}

/// cvt.f32.bf16. Exact; the payload of a NaN is kept, as the 16-bit shift that compilers emit does.
[[nodiscard]] constexpr float bf16_to_f32(std::uint16_t bits) noexcept {
  return from_bits(static_cast<std::uint32_t>(bits) << 16);
}

/// cvt.rn.f16.f32. 65520 and above become infinities.
[[nodiscard]] constexpr std::uint16_t f32_to_f16(float value) noexcept {
  constexpr std::uint32_t kOverflow = 143U << 23;         // 2^16 and above, inf, NaN.
  constexpr std::uint32_t kSmallestNormal = 113U << 23;   // 2^-14.
  constexpr std::uint32_t kSubnormalAnchor = 126U << 23;  // 0.5, whose unit in f32 is 2^-24.
  constexpr std::uint32_t kBiasChange = (127U - 15U) << 23;

  const std::uint32_t sign = to_bits(value) & kSignBit32;
  const std::uint32_t magnitude = to_bits(value) ^ sign;
  // 2^-24 is the unit of f16 subnormals, so the addition rounds for us; not for larger values.
  const std::uint32_t small = magnitude < kSmallestNormal ? magnitude : 0;
  const std::uint32_t subnormal =
      to_bits(from_bits(small) + from_bits(kSubnormalAnchor)) - kSubnormalAnchor;
  const std::uint32_t normal = (magnitude - kBiasChange + 0xfffU + ((magnitude >> 13) & 1U)) >> 13;
  std::uint32_t bits = magnitude < kSmallestNormal ? subnormal : normal;
  bits = magnitude >= kOverflow ? 0x7c00U : bits;
  bits |= sign >> 16;
  return static_cast<std::uint16_t>(magnitude > kInfinityBits32 ? kCanonicalNan16 : bits);
}

/// cvt.f32.f16. Exact; a NaN becomes the canonical one.
[[nodiscard]] constexpr float f16_to_f32(std::uint16_t bits) noexcept {
  constexpr std::uint32_t kBiasChange = (127U - 15U) << 23;
  constexpr std::uint32_t kSmallestNormal = 113U << 23;

  const std::uint32_t magnitude = (bits & 0x7fffU) << 13;
  const std::uint32_t sign = (bits & 0x8000U) << 16;
  const std::uint32_t normal = magnitude + kBiasChange;
  // A subnormal is mantissa * 2^-24: give it the exponent of 2^-14 and take 2^-14 away again.
  const std::uint32_t anchored = (magnitude & 0x7fffffU) | kSmallestNormal;
  const std::uint32_t subnormal = to_bits(from_bits(anchored) - from_bits(kSmallestNormal));
  std::uint32_t result = magnitude < (1U << 23) ? subnormal : normal;
  result = magnitude >= (0x7c00U << 13) ? kInfinityBits32 : result;
  result |= sign;
  return from_bits(magnitude > (0x7c00U << 13) ? kCanonicalNan32 : result);
}

/// Two 16-bit values in one register: cvt.rn.{f16x2,bf16x2}.f32 d, a, b puts a into the upper half.
[[nodiscard]] constexpr std::uint32_t pack_halves(std::uint16_t upper,
                                                  std::uint16_t lower) noexcept {
  return (static_cast<std::uint32_t>(upper) << 16) | lower;
}

}  // namespace cpverify::numerics
