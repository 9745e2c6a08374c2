#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cpverify::sim {

/// What an instruction does besides writing its registers.
enum class Effect : std::uint8_t { pure, memory, barrier, branch, exit, join };

enum class Op : std::uint16_t {
#define INSN(id, ...) id,
#include "sim/isa/instructions.inc"
#undef INSN
};

struct OpInfo {
  std::string_view name;
  std::string_view syntax;
  std::string_view types;
  std::string_view operands;
  Effect effect = Effect::pure;
  std::string_view anchor;  ///< Of the manual's section.
};

inline constexpr auto kOps = std::to_array<OpInfo>({
#define INSN(id, syntax, types, operands, effect, anchor) \
  {#id, syntax, types, operands, Effect::effect, anchor},
#include "sim/isa/instructions.inc"
#undef INSN
});
inline constexpr std::size_t kOpCount = kOps.size();

[[nodiscard]] constexpr const OpInfo& info(Op op) noexcept {
  return kOps[static_cast<std::size_t>(op)];
}

[[nodiscard]] constexpr bool has_duplicate_syntax() noexcept {
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    for (std::size_t j = i + 1; j < kOps.size(); ++j) {
      if (kOps[i].syntax == kOps[j].syntax) return true;
    }
  }
  return false;
}
static_assert(!has_duplicate_syntax(), "two rows of instructions.inc decode the same text");

}  // namespace cpverify::sim
