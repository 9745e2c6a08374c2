#include "sim/isa/type.hpp"

#include <array>
#include <cstddef>
#include <string_view>

namespace cpverify::sim {
namespace {

constexpr std::array<std::string_view, 26> kTypeNames{
    "",    "b8",   "b16",  "b32",  "b64",    "u8",     "u16",   "u32",    "u64",
    "s8",  "s16",  "s32",  "s64",  "f16",    "bf16",   "f16x2", "bf16x2", "f32",
    "f64", "tf32", "e4m3", "e5m2", "e4m3x2", "e5m2x2", "b128",  "pred"};
static_assert(kTypeNames.size() == static_cast<std::size_t>(Type::pred) + 1);

}  // namespace

Type find_type(std::string_view word) noexcept {
  for (std::size_t i = 1; i < kTypeNames.size(); ++i) {
    if (kTypeNames[i] == word) return static_cast<Type>(i);
  }
  return Type::none;
}

}  // namespace cpverify::sim
