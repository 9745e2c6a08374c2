#include "reference/dtype_values.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "cpverify/dtype.hpp"

namespace cpverify::reference {

namespace {

template <class Bits>
Bits load(const std::byte* source, std::size_t index) {
  Bits bits = 0;
  std::memcpy(&bits, source + index * sizeof(Bits), sizeof(Bits));
  return bits;
}

double value_of_f16(std::uint16_t bits) {
  const std::uint64_t sign = static_cast<std::uint64_t>(bits >> 15U) << 63U;
  const std::uint64_t exponent = (bits >> 10U) & 0x1FU;
  const std::uint64_t fraction = bits & 0x3FFU;
  if (exponent == 0) {
    // Zero or subnormal: fraction * 2^-24, with the sign kept for -0.
    const double magnitude = static_cast<double>(fraction) * 0x1p-24;
    return sign == 0 ? magnitude : -magnitude;
  }
  // Biases are 15 and 1023, fractions have 10 and 52 bits; infinity and NaN keep an all-one
  // exponent.
  const std::uint64_t wide_exponent = exponent == 0x1F ? 0x7FF : exponent + 1023 - 15;
  return std::bit_cast<double>(sign | wide_exponent << 52U | fraction << 42U);
}

double value_of_bf16(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U));
}

}  // namespace

void widen(DType dtype, const std::byte* source, std::size_t count, double* target) {
  switch (dtype) {
    case DType::f32:
      for (std::size_t i = 0; i < count; ++i) {
        target[i] = static_cast<double>(std::bit_cast<float>(load<std::uint32_t>(source, i)));
      }
      return;
    case DType::f16:
      for (std::size_t i = 0; i < count; ++i) {
        target[i] = value_of_f16(load<std::uint16_t>(source, i));
      }
      return;
    case DType::bf16:
      for (std::size_t i = 0; i < count; ++i) {
        target[i] = value_of_bf16(load<std::uint16_t>(source, i));
      }
      return;
    default:
      throw std::invalid_argument{"attention is defined on f32, f16 and bf16 only"};
  }
}

}  // namespace cpverify::reference
