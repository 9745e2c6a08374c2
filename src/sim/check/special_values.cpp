#include "sim/check/special_values.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "numerics/float16.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {
namespace {

/// Sums of a launch stay bounded; what is beyond is not followed to later launches.
constexpr std::size_t kPlacesMax = std::size_t{1} << 22;

struct Format {
  std::uint32_t bits = 32;
  std::uint32_t mantissa_bits = 23;
};

Format format_of(Type element) noexcept {
  switch (element) {
    case Type::f16:
      return {16, 10};
    case Type::bf16:
      return {16, 7};
    case Type::f64:
      return {64, 52};
    default:
      return {32, 23};
  }
}

}  // namespace

FloatShape float_shape(Type type) noexcept {
  switch (type) {
    case Type::f16:
    case Type::bf16:
    case Type::f32:
    case Type::f64:
      return {type, 1};
    case Type::tf32:
      return {Type::f32, 1};
    case Type::f16x2:
      return {Type::f16, 2};
    case Type::bf16x2:
      return {Type::bf16, 2};
    default:
      return {};
  }
}

FloatClass classify(Type element, std::uint64_t bits) noexcept {
  const Format format = format_of(element);
  const std::uint64_t infinity = ((1ULL << (format.bits - 1 - format.mantissa_bits)) - 1)
                                 << format.mantissa_bits;
  const std::uint64_t sign = 1ULL << (format.bits - 1);
  const std::uint64_t magnitude = bits & (sign - 1);
  if (magnitude < infinity) return FloatClass::finite;
  if (magnitude > infinity) return FloatClass::nan;
  return (bits & sign) != 0 ? FloatClass::negative_infinity : FloatClass::positive_infinity;
}

std::string float_text(Type element, std::uint64_t bits) {
  switch (element) {
    case Type::f16:
      return fmt::format("{} (0x{:04x})", numerics::f16_to_f32(static_cast<std::uint16_t>(bits)),
                         bits & 0xffffU);
    case Type::bf16:
      return fmt::format("{} (0x{:04x})", numerics::bf16_to_f32(static_cast<std::uint16_t>(bits)),
                         bits & 0xffffU);
    case Type::f64:
      return fmt::format("{} (0x{:016x})", std::bit_cast<double>(bits), bits);
    default:
      return fmt::format("{} (0x{:08x})", std::bit_cast<float>(static_cast<std::uint32_t>(bits)),
                         bits & 0xffffffffU);
  }
}

SpecialValueMemory::Pointer SpecialValueMemory::find(std::uint64_t address) const {
  const auto found = places_.find(address / 2);
  return found == places_.end() ? nullptr : found->second;
}

void SpecialValueMemory::set(std::uint64_t address, const Pointer& origin) {
  if (places_.size() < kPlacesMax || places_.contains(address / 2)) places_[address / 2] = origin;
}

void SpecialValueMemory::forget(std::uint64_t address, std::uint64_t size_bytes) {
  if (places_.empty() || size_bytes == 0) return;
  places_.erase(places_.lower_bound(address / 2),
                places_.upper_bound((address + size_bytes - 1) / 2));
}

void SpecialValueMemory::copy(std::uint64_t target, std::uint64_t source,
                              std::uint64_t size_bytes) {
  if (places_.empty() || size_bytes == 0) return;
  std::vector<std::pair<std::uint64_t, Pointer>> copied;
  const auto end = places_.upper_bound((source + size_bytes - 1) / 2);
  for (auto place = places_.lower_bound(source / 2); place != end; ++place) {
    copied.emplace_back(place->first * 2 - source / 2 * 2 + target, place->second);
  }
  forget(target, size_bytes);
  for (const auto& [address, origin] : copied) set(address, origin);
}

}  // namespace cpverify::sim
