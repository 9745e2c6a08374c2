#pragma once

#include <array>
#include <cstdint>

#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"

namespace cpverify::sim {

struct Warp;
struct Insn;

/// Executes an instruction for the lanes of a mask (never empty) and says which comes next; null
/// when the warp stops, with the reason in the warp.
using Handler = const Insn* (*)(Warp&, const Insn*, std::uint32_t);

inline constexpr std::uint32_t kNoIndex = 0xffffffffU;

/// The immediate of a setp: its BoolOp, its Compare and whether subnormals are flushed.
inline constexpr std::int32_t kBoolOpMask = 0xff;
inline constexpr std::int32_t kComparePosition = 8;
inline constexpr std::int32_t kCompareFlushes = 1 << 16;

/// A decoded instruction. Handlers read registers only: immediates, special registers, parameters
/// and addresses of variables are rows of the register file, filled before the kernel starts.
struct alignas(64) Insn {
  Handler handler = nullptr;
  std::array<std::uint32_t, 6> r{};  ///< Byte offsets of registers: what is written, then read.
  std::int64_t offset = 0;           ///< Added to the address register.
  std::uint32_t guard = 0;           ///< Byte offset of the predicate; the row at 0 is all true.
  std::uint32_t guard_flip = 0;      ///< All ones for @!p.
  /// Branch: index of the target. More than six registers: where they begin in Code::wide.
  std::uint32_t target = kNoIndex;
  std::uint32_t reconverge = kNoIndex;  ///< Branch: index of the join; kNoIndex for "at the exit".
  std::int32_t immediate = 0;           ///< Second address offset, byte count, truth table.
  Op op = Op::trap;
  Space space = Space::generic;
  std::uint8_t address_bytes = 8;  ///< Width of the address register: 4 or 8.
};
static_assert(sizeof(Insn) == 64, "one instruction is one cache line");

}  // namespace cpverify::sim
