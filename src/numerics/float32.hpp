#pragma once

#include <bit>
#include <cstdint>

/// Single precision as PTX defines it. Every function here is branch-free once inlined, so that a
/// loop over 32 lanes vectorises (g++ wants -fno-trapping-math for that, which changes no value),
/// and gives the same bits on every host: NaN payloads, which differ between instruction orders on
/// x86, never leave an operation.
namespace cpverify::numerics {

inline constexpr std::uint32_t kSignBit32 = 0x80000000U;
inline constexpr std::uint32_t kInfinityBits32 = 0x7f800000U;
/// The NaN that single-precision instructions produce. Source: PTX ISA, "Floating Point
/// Instructions".
inline constexpr std::uint32_t kCanonicalNan32 = 0x7fffffffU;

[[nodiscard]] constexpr std::uint32_t to_bits(float value) noexcept {
  return std::bit_cast<std::uint32_t>(value);
}

[[nodiscard]] constexpr float from_bits(std::uint32_t bits) noexcept {
  return std::bit_cast<float>(bits);
}

[[nodiscard]] constexpr bool is_nan_bits(std::uint32_t bits) noexcept {
  return (bits & ~kSignBit32) > kInfinityBits32;
}

/// `value`, or the canonical NaN for any NaN. To be applied to the result of +, -, * and fma.
[[nodiscard]] constexpr float canonical(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  return from_bits(is_nan_bits(bits) ? kCanonicalNan32 : bits);
}

/// .ftz: a subnormal becomes the zero of its sign.
[[nodiscard]] constexpr float flush_subnormal(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  return from_bits((bits & kInfinityBits32) == 0 ? bits & kSignBit32 : bits);
}

/// div.rn.f32; also stands for div.approx, div.full and, with 1 above, for rcp: the manual's error
/// limits of those hold trivially.
[[nodiscard]] constexpr float divide(float numerator, float denominator) noexcept {
  return canonical(numerator / denominator);
}

/// rcp.rn.f32 and rcp.approx.f32.
[[nodiscard]] constexpr float reciprocal(float value) noexcept {
  return divide(1.0F, value);
}

/// fma.rn.f32: one rounding. The targets have FMA (x86-64-v3), so this is one instruction.
[[nodiscard]] inline float fused_multiply_add(float a, float b, float c) noexcept {
  return canonical(__builtin_fmaf(a, b, c));
}

/// max.f32: the other operand when one is NaN, the canonical NaN when both are; +0 > -0.
/// Source: PTX ISA, max.
[[nodiscard]] constexpr float maximum(float a, float b) noexcept {
  const std::uint32_t a_bits = to_bits(a);
  const std::uint32_t b_bits = to_bits(b);
  // Equal values differ in bits only as zeros of two signs: AND is +0 unless both are -0.
  std::uint32_t bits = a > b ? a_bits : a < b ? b_bits : a_bits & b_bits;
  bits = is_nan_bits(a_bits) ? b_bits : bits;
  bits = is_nan_bits(b_bits) ? a_bits : bits;
  return canonical(from_bits(bits));
}

/// min.f32, as maximum().
[[nodiscard]] constexpr float minimum(float a, float b) noexcept {
  const std::uint32_t a_bits = to_bits(a);
  const std::uint32_t b_bits = to_bits(b);
  std::uint32_t bits = a < b ? a_bits : a > b ? b_bits : a_bits | b_bits;
  bits = is_nan_bits(a_bits) ? b_bits : bits;
  bits = is_nan_bits(b_bits) ? a_bits : bits;
  return canonical(from_bits(bits));
}

/// max.NaN.f32: the canonical NaN when an operand is NaN.
[[nodiscard]] constexpr float maximum_nan(float a, float b) noexcept {
  const bool has_nan = is_nan_bits(to_bits(a)) || is_nan_bits(to_bits(b));
  return has_nan ? from_bits(kCanonicalNan32) : maximum(a, b);
}

/// min.NaN.f32.
[[nodiscard]] constexpr float minimum_nan(float a, float b) noexcept {
  const bool has_nan = is_nan_bits(to_bits(a)) || is_nan_bits(to_bits(b));
  return has_nan ? from_bits(kCanonicalNan32) : minimum(a, b);
}

}  // namespace cpverify::numerics
