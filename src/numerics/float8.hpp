#pragma once

#include <cstdint>

#include "numerics/float32.hpp"

/// The 8-bit formats e4m3 (bias 7, largest value 448, no infinity) and e5m2 (bias 15, largest value
/// 57344) as bit patterns. Source: PTX ISA, "Alternate Floating-Point Data Formats" and cvt.
namespace cpverify::numerics {

inline constexpr std::uint8_t kCanonicalNan8 = 0x7fU;

/// Parameters of a format: bits of the mantissa, exponent bias, code of the largest finite value.
struct E4M3 {
  static constexpr std::int32_t kMantissaBits = 3;
  static constexpr std::int32_t kBias = 7;
  static constexpr std::uint32_t kLargest = 0x7eU;
  static constexpr std::uint32_t kFirstNan = 0x7fU;
};
struct E5M2 {
  static constexpr std::int32_t kMantissaBits = 2;
  static constexpr std::int32_t kBias = 15;
  static constexpr std::uint32_t kLargest = 0x7bU;
  static constexpr std::uint32_t kFirstNan = 0x7dU;
};

/// cvt.rn.satfinite: to nearest even; what is too large, infinities too, becomes the largest finite
/// value of its sign, NaN the canonical one.
template <class Format>
[[nodiscard]] constexpr std::uint8_t f32_to_f8(float value) noexcept {
  const std::uint32_t bits = to_bits(value);
  if (is_nan_bits(bits)) return kCanonicalNan8;
  const std::uint32_t sign = bits >> 31 << 7;
  float magnitude = from_bits(bits & ~kSignBit32);
  if (magnitude > 131072.0F) magnitude = 131072.0F;  // Beyond both formats.
  const auto exponent = static_cast<std::int32_t>(to_bits(magnitude) >> 23) - 127;
  // The unit of the last place; subnormals share that of the smallest normal exponent.
  const std::int32_t place = exponent < 1 - Format::kBias ? 1 - Format::kBias : exponent;
  const std::int32_t scale = Format::kMantissaBits - place;
  const float units = magnitude * from_bits(static_cast<std::uint32_t>(scale + 127) << 23);
  // Adding 2^23 rounds to a whole number of units; a carry goes on into the exponent by itself.
  const auto whole = static_cast<std::uint32_t>((units + 8388608.0F) - 8388608.0F);
  const std::uint32_t code =
      (static_cast<std::uint32_t>(place + Format::kBias - 1) << Format::kMantissaBits) + whole;
  return static_cast<std::uint8_t>(sign | (code > Format::kLargest ? Format::kLargest : code));
}

/// Exact; NaN becomes the canonical one.
template <class Format>
[[nodiscard]] constexpr float f8_to_f32(std::uint8_t code) noexcept {
  const std::uint32_t magnitude = code & 0x7fU;
  const std::uint32_t sign = static_cast<std::uint32_t>(code & 0x80U) << 24;
  if (magnitude >= Format::kFirstNan) return from_bits(kCanonicalNan32);
  if (magnitude > Format::kLargest) return from_bits(sign | kInfinityBits32);
  const auto field = static_cast<std::int32_t>(magnitude >> Format::kMantissaBits);
  std::uint32_t mantissa = magnitude & ((1U << Format::kMantissaBits) - 1);
  if (field != 0) mantissa |= 1U << Format::kMantissaBits;
  const std::int32_t place = (field == 0 ? 1 : field) - Format::kBias - Format::kMantissaBits;
  const float unit = from_bits(static_cast<std::uint32_t>(place + 127) << 23);
  return from_bits(to_bits(static_cast<float>(mantissa) * unit) | sign);
}

}  // namespace cpverify::numerics
