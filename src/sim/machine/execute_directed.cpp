#include "numerics/directed.hpp"
#include "numerics/float32.hpp"
#include "numerics/float64.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/lanes.hpp"

/// add, sub, mul and fma rounded towards zero (.rz), minus infinity (.rm) or plus infinity (.rp).
namespace cpverify::sim {
namespace {

using numerics::Direction;
using numerics::flush_subnormal;
using numerics::from_bits;
using numerics::from_bits64;

float negated(float value) {
  return from_bits(numerics::to_bits(value) ^ numerics::kSignBit32);
}
double negated(double value) {
  return from_bits64(numerics::to_bits64(value) ^ numerics::kSignBit64);
}

template <Direction direction>
struct Add {
  template <class T>
  static T apply(T a, T b) {
    return numerics::add_directed(a, b, direction);
  }
};
template <Direction direction>
struct Subtract {
  template <class T>
  static T apply(T a, T b) {
    return numerics::add_directed(a, negated(b), direction);
  }
};
template <Direction direction>
struct Multiply {
  template <class T>
  static T apply(T a, T b) {
    return numerics::multiply_directed(a, b, direction);
  }
};
template <Direction direction>
struct Fma {
  template <class T>
  static T apply(T a, T b, T c) {
    return numerics::fma_directed(a, b, c, direction);
  }
};

/// As of the roundings to nearest: .ftz flushes what goes in and what comes out of the rounding,
/// .sat clamps to [0, 1] and makes NaN +0.
template <class Operation, bool is_ftz, bool is_sat>
struct Modified {
  template <class... Sources>
  static float apply(Sources... sources) {
    float result = is_ftz ? flush_subnormal(Operation::apply(flush_subnormal(sources)...))
                          : Operation::apply(sources...);
    if constexpr (is_sat) {
      result = result > 0.0F ? result : 0.0F;
      result = result < 1.0F ? result : 1.0F;
    }
    return result;
  }
};

template <class Operation, class... Sources>
Handler select_modified(const Modifiers& modifiers) {
  if (modifiers.is_sat) {
    return modifiers.is_ftz ? &lanewise<Modified<Operation, true, true>, float, Sources...>
                            : &lanewise<Modified<Operation, false, true>, float, Sources...>;
  }
  return modifiers.is_ftz ? &lanewise<Modified<Operation, true, false>, float, Sources...>
                          : &lanewise<Modified<Operation, false, false>, float, Sources...>;
}

template <template <Direction> class Operation, class... Sources>
Handler select_f32(const Form& form) {
  switch (form.modifiers.rounding) {
    case Rounding::to_zero:
      return select_modified<Operation<Direction::to_zero>, Sources...>(form.modifiers);
    case Rounding::down:
      return select_modified<Operation<Direction::down>, Sources...>(form.modifiers);
    case Rounding::up:
      return select_modified<Operation<Direction::up>, Sources...>(form.modifiers);
    default:
      return nullptr;
  }
}

template <template <Direction> class Operation, class... Sources>
Handler select_f64(const Form& form) {
  switch (form.modifiers.rounding) {
    case Rounding::to_zero:
      return &lanewise<Operation<Direction::to_zero>, double, Sources...>;
    case Rounding::down:
      return &lanewise<Operation<Direction::down>, double, Sources...>;
    case Rounding::up:
      return &lanewise<Operation<Direction::up>, double, Sources...>;
    default:
      return nullptr;
  }
}

}  // namespace

template <>
Handler select<Op::add_f32_directed>(const Form& form) {
  return select_f32<Add, float, float>(form);
}
template <>
Handler select<Op::sub_f32_directed>(const Form& form) {
  return select_f32<Subtract, float, float>(form);
}
template <>
Handler select<Op::mul_f32_directed>(const Form& form) {
  return select_f32<Multiply, float, float>(form);
}
template <>
Handler select<Op::fma_f32_directed>(const Form& form) {
  return select_f32<Fma, float, float, float>(form);
}
template <>
Handler select<Op::mad_f32_directed>(const Form& form) {
  return select_f32<Fma, float, float, float>(form);
}
template <>
Handler select<Op::add_f64_directed>(const Form& form) {
  return select_f64<Add, double, double>(form);
}
template <>
Handler select<Op::sub_f64_directed>(const Form& form) {
  return select_f64<Subtract, double, double>(form);
}
template <>
Handler select<Op::mul_f64_directed>(const Form& form) {
  return select_f64<Multiply, double, double>(form);
}
template <>
Handler select<Op::fma_f64_directed>(const Form& form) {
  return select_f64<Fma, double, double, double>(form);
}
template <>
Handler select<Op::mad_f64_directed>(const Form& form) {
  return select_f64<Fma, double, double, double>(form);
}

}  // namespace cpverify::sim
