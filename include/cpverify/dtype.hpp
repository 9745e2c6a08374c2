#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cpverify {

/// Element type of a tensor. The first three are the types a scenario may ask for.
enum class DType : std::uint8_t { f32, f16, bf16, i32, i64, u8 };

[[nodiscard]] constexpr std::size_t size_bytes(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::i64:
      return 8;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// The spelling used in scenarios, kernel names and reports.
[[nodiscard]] constexpr std::string_view name(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return "f32";
    case DType::f16:
      return "f16";
    case DType::bf16:
      return "bf16";
    case DType::i32:
      return "i32";
    case DType::i64:
      return "i64";
    case DType::u8:
      return "u8";
  }
  return "?";
}

}  // namespace cpverify
