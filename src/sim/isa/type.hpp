#pragma once

#include <cstdint>
#include <string_view>

namespace cpverify::sim {

/// Fundamental types. Source: PTX ISA, "Fundamental Types". `none` stands for "not given".
enum class Type : std::uint8_t {
  none,
  b8,
  b16,
  b32,
  b64,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  f16,
  bf16,
  f16x2,
  bf16x2,
  f32,
  f64,
  tf32,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  b128,  ///< Of registers that only ld, st and mov take, as two of 64 bits.
  pred,
};

/// Of one lane; 0 for pred, whose register is one 32-bit mask, and for none.
[[nodiscard]] constexpr std::uint32_t size_bytes(Type type) noexcept {
  switch (type) {
    case Type::b8:
    case Type::u8:
    case Type::s8:
    case Type::e4m3:
    case Type::e5m2:
      return 1;
    case Type::b16:
    case Type::u16:
    case Type::s16:
    case Type::f16:
    case Type::bf16:
    case Type::e4m3x2:
    case Type::e5m2x2:
      return 2;
    case Type::b32:
    case Type::u32:
    case Type::s32:
    case Type::f32:
    case Type::f16x2:
    case Type::bf16x2:
    case Type::tf32:
      return 4;
    case Type::b64:
    case Type::u64:
    case Type::s64:
    case Type::f64:
      return 8;
    case Type::b128:
      return 16;
    case Type::pred:
    case Type::none:
      return 0;
  }
  return 0;
}

[[nodiscard]] constexpr bool is_signed(Type type) noexcept {
  return type == Type::s8 || type == Type::s16 || type == Type::s32 || type == Type::s64;
}

/// `u32` and so on, without the dot; Type::none for any other word.
[[nodiscard]] Type find_type(std::string_view word) noexcept;

}  // namespace cpverify::sim
