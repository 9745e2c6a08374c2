#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/warp.hpp"

/// Loops over the 32 lanes of registers. They are written so that the compiler vectorises them:
/// constant trip count, no calls, no branches. Rows are read and written lane by lane, so a target
/// row may also be a source; __restrict only tells the vectoriser that rows do not overlap partly.
namespace cpverify::sim {

/// The handler of a row, specialised in the execute_<class>.cpp files; null when the form asks for
/// a combination that we do not have.
template <Op op>
Handler select(const Form& form);

/// `value` where `is_active`, else `old`.
template <class T>
inline T choose_lane(bool is_active, T value, T old) {
  if constexpr (sizeof(T) < 4) {
    // g++ 12 fails with an internal error on masked moves of lanes of 8 and 16 bits.
    const auto chosen = static_cast<T>(is_active ? -1 : 0);
    return static_cast<T>((value & chosen) | (old & ~chosen));
  } else {
    return is_active ? value : old;
  }
}

template <class Operation, class Target, class... Sources>
inline void apply_lanes(std::uint32_t mask, Target* __restrict target,
                        const Sources* __restrict... sources) {
  if (mask == kFullMask) [[likely]] {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      target[lane] = Operation::apply(sources[lane]...);
    }
    return;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const Target value = Operation::apply(sources[lane]...);
    target[lane] = choose_lane(((mask >> lane) & 1U) != 0, value, target[lane]);
  }
}

template <class Operation, class Target, class... Sources, std::size_t... index>
inline const Insn* lanewise_impl(Warp& warp, const Insn* insn, std::uint32_t mask,
                                 std::index_sequence<index...> /*operands*/) {
  apply_lanes<Operation, Target, Sources...>(mask, warp.row<Target>(insn->r[0]),
                                             warp.row<const Sources>(insn->r[1 + index])...);
  return insn + 1;
}

/// d = Operation::apply(a, b, ...), each lane for itself.
template <class Operation, class Target, class... Sources>
const Insn* lanewise(Warp& warp, const Insn* insn, std::uint32_t mask) {
  return lanewise_impl<Operation, Target, Sources...>(warp, insn, mask,
                                                      std::index_sequence_for<Sources...>{});
}

/// Writes the bits of a predicate register that a mask selects.
inline void write_predicate(std::uint32_t& predicate, std::uint32_t bits, std::uint32_t mask) {
  predicate = (predicate & ~mask) | (bits & mask);
}

/// Two predicate registers under .and, .or or .xor.
inline std::uint32_t combine(BoolOp op, std::uint32_t a, std::uint32_t b) {
  switch (op) {
    case BoolOp::and_op:
      return a & b;
    case BoolOp::or_op:
      return a | b;
    case BoolOp::xor_op:
      return a ^ b;
  }
  return 0;
}

/// Bit i is Operation::apply(a[i], b[i]).
template <class Operation, class T>
inline std::uint32_t compare_lanes(const T* __restrict a, const T* __restrict b) {
  std::uint32_t bits = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    bits |= static_cast<std::uint32_t>(Operation::apply(a[lane], b[lane])) << lane;
  }
  return bits;
}

}  // namespace cpverify::sim
