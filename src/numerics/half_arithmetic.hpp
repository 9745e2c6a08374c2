#pragma once

#include <cstdint>

#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/odd_rounding.hpp"

/// Arithmetic of f16 and bf16 with one rounding, to nearest even. Products of two values are exact
/// in double, and sums are rounded to odd there.
namespace cpverify::numerics {

struct Float16Format {
  static float widen(std::uint16_t bits) noexcept { return f16_to_f32(bits); }
  static std::uint16_t round(double value) noexcept { return f32_to_f16(narrow_to_odd(value)); }
  static constexpr std::uint16_t kInfinity = 0x7c00U;
};
struct BFloat16Format {
  static float widen(std::uint16_t bits) noexcept { return bf16_to_f32(bits); }
  static std::uint16_t round(double value) noexcept { return f32_to_bf16(narrow_to_odd(value)); }
  static constexpr std::uint16_t kInfinity = 0x7f80U;
};

/// a * b + c.
template <class Format>
[[nodiscard]] inline std::uint16_t half_fma(std::uint16_t a, std::uint16_t b,
                                            std::uint16_t c) noexcept {
  const double product =
      static_cast<double>(Format::widen(a)) * static_cast<double>(Format::widen(b));
  return Format::round(add_to_odd(product, static_cast<double>(Format::widen(c))));
}

template <class Format>
[[nodiscard]] inline std::uint16_t half_add(std::uint16_t a, std::uint16_t b) noexcept {
  return Format::round(
      add_to_odd(static_cast<double>(Format::widen(a)), static_cast<double>(Format::widen(b))));
}

template <class Format>
[[nodiscard]] inline std::uint16_t half_multiply(std::uint16_t a, std::uint16_t b) noexcept {
  return Format::round(static_cast<double>(Format::widen(a)) *
                       static_cast<double>(Format::widen(b)));
}

}  // namespace cpverify::numerics
