#include "numerics/convert.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "cpverify/dtype.hpp"
#include "numerics/float16.hpp"
#include "support/check.hpp"

namespace cpverify::numerics {
namespace {

template <class Convert>
std::vector<float> widen_halves(std::span<const std::byte> bytes, Convert convert) {
  std::vector<float> values(bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + 2 * i, sizeof bits);
    values[i] = convert(bits);
  }
  return values;
}

template <class Convert>
std::vector<std::byte> narrow_halves(std::span<const float> values, Convert convert) {
  std::vector<std::byte> bytes(values.size() * 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint16_t bits = convert(values[i]);
    std::memcpy(bytes.data() + 2 * i, &bits, sizeof bits);
  }
  return bytes;
}

}  // namespace

std::vector<float> widen(DType dtype, std::span<const std::byte> bytes) {
  CPVERIFY_CHECK(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
  CPVERIFY_CHECK(bytes.size() % size_bytes(dtype) == 0);
  if (dtype == DType::f16) return widen_halves(bytes, f16_to_f32);
  if (dtype == DType::bf16) return widen_halves(bytes, bf16_to_f32);
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::byte> narrow(DType dtype, std::span<const float> values) {
  CPVERIFY_CHECK(dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16);
  if (dtype == DType::f16) return narrow_halves(values, f32_to_f16);
  if (dtype == DType::bf16) return narrow_halves(values, f32_to_bf16);
  std::vector<std::byte> bytes(values.size_bytes());
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace cpverify::numerics
