#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// Logic and shifts, of registers and of predicates.
namespace cpverify::sim {
namespace {

struct And {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(~a);
  }
};
/// 1 for zero, 0 for all else.
struct LogicalNot {
  template <class T>
  static T apply(T a) {
    return static_cast<T>(a == 0 ? 1 : 0);
  }
};
/// A shift by the width or more gives 0, or the sign. Source: PTX ISA, shl, shr: "Shift amounts
/// greater than the register width N are clamped to N."
template <class T>
struct ShiftLeft {
  static T apply(T a, std::uint32_t amount) {
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    const T shifted = static_cast<T>(a << (amount & (kWidth - 1)));
    return amount < kWidth ? shifted : T{0};
  }
};
template <class T>
struct ShiftRight {
  static T apply(T a, std::uint32_t amount) {
    constexpr std::uint32_t kWidth = 8 * sizeof(T);
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> std::min(amount, kWidth - 1));
    } else {
      const T shifted = static_cast<T>(a >> (amount & (kWidth - 1)));
      return amount < kWidth ? shifted : T{0};
    }
  }
};
/// Bits of [b:a] shifted. Source: PTX ISA, shf: the amount is clamped to 32 or taken modulo 32.
template <bool is_left, bool is_wrapped>
struct FunnelShift {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    const std::uint32_t amount = is_wrapped ? c & 31U : std::min(c, 32U);
    const std::uint64_t both = (std::uint64_t{b} << 32) | a;
    return static_cast<std::uint32_t>(is_left ? both >> (32 - amount) : both >> amount);
  }
};
/// Bit (a<<2 | b<<1 | c) of the table, for every bit. Source: PTX ISA, lop3.
struct ThreeInputLogic {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c,
                             std::uint32_t table) {
    std::uint32_t result = 0;
    for (std::uint32_t index = 0; index < 8; ++index) {
      const std::uint32_t term = ((index & 4U) != 0 ? a : ~a) & ((index & 2U) != 0 ? b : ~b) &
                                 ((index & 1U) != 0 ? c : ~c);
      result |= term & (0U - ((table >> index) & 1U));
    }
    return result;
  }
};

template <class Operation>
Handler select_bits(Type type) {
  switch (size_bytes(type)) {
    case 2:
      return &lanewise<Operation, std::uint16_t, std::uint16_t, std::uint16_t>;
    case 4:
      return &lanewise<Operation, std::uint32_t, std::uint32_t, std::uint32_t>;
    default:
      return &lanewise<Operation, std::uint64_t, std::uint64_t, std::uint64_t>;
  }
}

template <class Operation>
Handler select_bits_unary(Type type) {
  switch (size_bytes(type)) {
    case 2:
      return &lanewise<Operation, std::uint16_t, std::uint16_t>;
    case 4:
      return &lanewise<Operation, std::uint32_t, std::uint32_t>;
    default:
      return &lanewise<Operation, std::uint64_t, std::uint64_t>;
  }
}

template <class T, template <class> class Shift>
Handler shift_handler() {
  return &lanewise<Shift<T>, T, T, std::uint32_t>;
}

template <class Operation>
const Insn* predicates(Warp& warp, const Insn* insn, std::uint32_t mask) {
  write_predicate(warp.predicate(insn->r[0]),
                  Operation::apply(warp.predicate(insn->r[1]), warp.predicate(insn->r[2])), mask);
  return insn + 1;
}

const Insn* negate_predicate(Warp& warp, const Insn* insn, std::uint32_t mask) {
  write_predicate(warp.predicate(insn->r[0]), ~warp.predicate(insn->r[1]), mask);
  return insn + 1;
}

}  // namespace

template <>
Handler select<Op::and_bits>(const Form& form) {
  return select_bits<And>(form.modifiers.type);
}
template <>
Handler select<Op::or_bits>(const Form& form) {
  return select_bits<Or>(form.modifiers.type);
}
template <>
Handler select<Op::xor_bits>(const Form& form) {
  return select_bits<Xor>(form.modifiers.type);
}
template <>
Handler select<Op::not_bits>(const Form& form) {
  return select_bits_unary<Not>(form.modifiers.type);
}
template <>
Handler select<Op::cnot>(const Form& form) {
  return select_bits_unary<LogicalNot>(form.modifiers.type);
}
template <>
Handler select<Op::and_pred>(const Form& /*form*/) {
  return &predicates<And>;
}
template <>
Handler select<Op::or_pred>(const Form& /*form*/) {
  return &predicates<Or>;
}
template <>
Handler select<Op::xor_pred>(const Form& /*form*/) {
  return &predicates<Xor>;
}
template <>
Handler select<Op::not_pred>(const Form& /*form*/) {
  return &negate_predicate;
}
template <>
Handler select<Op::lop3>(const Form& /*form*/) {
  return &lanewise<ThreeInputLogic, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                   std::uint32_t>;
}
template <>
Handler select<Op::shf>(const Form& form) {
  using U = std::uint32_t;
  if (form.modifiers.is_left) {
    return form.modifiers.is_wrapped ? &lanewise<FunnelShift<true, true>, U, U, U, U>
                                     : &lanewise<FunnelShift<true, false>, U, U, U, U>;
  }
  return form.modifiers.is_wrapped ? &lanewise<FunnelShift<false, true>, U, U, U, U>
                                   : &lanewise<FunnelShift<false, false>, U, U, U, U>;
}
template <>
Handler select<Op::shl>(const Form& form) {
  switch (size_bytes(form.modifiers.type)) {
    case 2:
      return shift_handler<std::uint16_t, ShiftLeft>();
    case 4:
      return shift_handler<std::uint32_t, ShiftLeft>();
    default:
      return shift_handler<std::uint64_t, ShiftLeft>();
  }
}
template <>
Handler select<Op::shr>(const Form& form) {
  switch (form.modifiers.type) {
    case Type::s16:
      return shift_handler<std::int16_t, ShiftRight>();
    case Type::s32:
      return shift_handler<std::int32_t, ShiftRight>();
    case Type::s64:
      return shift_handler<std::int64_t, ShiftRight>();
    case Type::b16:
    case Type::u16:
      return shift_handler<std::uint16_t, ShiftRight>();
    case Type::b32:
    case Type::u32:
      return shift_handler<std::uint32_t, ShiftRight>();
    default:
      return shift_handler<std::uint64_t, ShiftRight>();
  }
}

}  // namespace cpverify::sim
