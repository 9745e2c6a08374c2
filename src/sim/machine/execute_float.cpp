#include "numerics/approximations.hpp"
#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/modified_float.hpp"

/// Single-precision arithmetic. add, sub and mul without .rn may be contracted to fma by ptxas; we
/// never contract.
namespace cpverify::sim {
namespace {

using numerics::canonical;
using numerics::flush_subnormal;
using numerics::from_bits;
using numerics::to_bits;

struct Add {
  static float apply(float a, float b) { return canonical(a + b); }
};
struct Subtract {
  static float apply(float a, float b) { return canonical(a - b); }
};
struct Multiply {
  static float apply(float a, float b) { return canonical(a * b); }
};
struct Fma {
  static float apply(float a, float b, float c) { return numerics::fused_multiply_add(a, b, c); }
};
struct Divide {
  static float apply(float a, float b) { return numerics::divide(a, b); }
};
struct Minimum {
  static float apply(float a, float b) { return numerics::minimum(a, b); }
};
struct Maximum {
  static float apply(float a, float b) { return numerics::maximum(a, b); }
};
struct MinimumNan {
  static float apply(float a, float b) { return numerics::minimum_nan(a, b); }
};
struct MaximumNan {
  static float apply(float a, float b) { return numerics::maximum_nan(a, b); }
};
/// abs and neg change the sign bit only; the manual leaves NaN results unspecified.
struct Absolute {
  static float apply(float a) { return from_bits(to_bits(a) & ~numerics::kSignBit32); }
};
struct Negate {
  static float apply(float a) { return from_bits(to_bits(a) ^ numerics::kSignBit32); }
};
struct Reciprocal {
  static float apply(float a) { return numerics::reciprocal(a); }
};
struct SquareRoot {
  static float apply(float a) { return numerics::square_root(a); }
};
struct ReciprocalSquareRoot {
  static float apply(float a) { return numerics::reciprocal_square_root(a); }
};
struct Exp2 {
  static float apply(float a) { return numerics::exp2_approx(a); }
};
struct Log2 {
  static float apply(float a) { return numerics::log2_approx(a); }
};

template <class Operation, class... Sources>
Handler select_flushed(const Form& form) {
  return form.modifiers.is_ftz ? &lanewise<Modified<Operation, true, false>, float, Sources...>
                               : &lanewise<Modified<Operation, false, false>, float, Sources...>;
}

}  // namespace

template <>
Handler select<Op::add_f32>(const Form& form) {
  return select_modified<Add, float, float>(form);
}
template <>
Handler select<Op::sub_f32>(const Form& form) {
  return select_modified<Subtract, float, float>(form);
}
template <>
Handler select<Op::mul_f32>(const Form& form) {
  return select_modified<Multiply, float, float>(form);
}
template <>
Handler select<Op::fma_f32>(const Form& form) {
  return select_modified<Fma, float, float, float>(form);
}
template <>
Handler select<Op::mad_f32>(const Form& form) {
  return select_modified<Fma, float, float, float>(form);
}
template <>
Handler select<Op::div_f32>(const Form& form) {
  return select_flushed<Divide, float, float>(form);
}
template <>
Handler select<Op::abs_f32>(const Form& form) {
  return select_flushed<Absolute, float>(form);
}
template <>
Handler select<Op::neg_f32>(const Form& form) {
  return select_flushed<Negate, float>(form);
}
template <>
Handler select<Op::min_f32>(const Form& form) {
  return form.modifiers.is_nan ? select_flushed<MinimumNan, float, float>(form)
                               : select_flushed<Minimum, float, float>(form);
}
template <>
Handler select<Op::max_f32>(const Form& form) {
  return form.modifiers.is_nan ? select_flushed<MaximumNan, float, float>(form)
                               : select_flushed<Maximum, float, float>(form);
}
template <>
Handler select<Op::rcp_f32>(const Form& form) {
  return select_flushed<Reciprocal, float>(form);
}
template <>
Handler select<Op::sqrt_f32>(const Form& form) {
  return select_flushed<SquareRoot, float>(form);
}
template <>
Handler select<Op::rsqrt_f32>(const Form& form) {
  return select_flushed<ReciprocalSquareRoot, float>(form);
}
template <>
Handler select<Op::ex2_f32>(const Form& form) {
  return select_flushed<Exp2, float>(form);
}
template <>
Handler select<Op::lg2_f32>(const Form& form) {
  // The result of lg2 is never subnormal, so flushing it changes nothing.
  return select_flushed<Log2, float>(form);
}

}  // namespace cpverify::sim
