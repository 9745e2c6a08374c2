
#include "numerics/float32.hpp"
#include "numerics/float64.hpp"
#include "numerics/odd_rounding.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/lanes.hpp"

/// Double-precision arithmetic, as IEEE has it; never contracted.
namespace cpverify::sim {
namespace {

using numerics::canonical;
using numerics::from_bits64;
using numerics::to_bits64;

struct Add {
  static double apply(double a, double b) { return canonical(a + b); }
};
struct Subtract {
  static double apply(double a, double b) { return canonical(a - b); }
};
struct Multiply {
  static double apply(double a, double b) { return canonical(a * b); }
};
struct Fma {
  static double apply(double a, double b, double c) { return canonical(__builtin_fma(a, b, c)); }
};
struct Divide {
  static double apply(double a, double b) { return canonical(a / b); }
};
struct Reciprocal {
  static double apply(double a) { return canonical(1.0 / a); }
};
struct SquareRoot {
  static double apply(double a) { return numerics::square_root(a); }
};
struct Absolute {
  static double apply(double a) { return from_bits64(to_bits64(a) & ~numerics::kSignBit64); }
};
struct Negate {
  static double apply(double a) { return from_bits64(to_bits64(a) ^ numerics::kSignBit64); }
};
struct Minimum {
  static double apply(double a, double b) { return numerics::minimum(a, b); }
};
struct Maximum {
  static double apply(double a, double b) { return numerics::maximum(a, b); }
};

}  // namespace

template <>
Handler select<Op::add_f64>(const Form& /*form*/) {
  return &lanewise<Add, double, double, double>;
}
template <>
Handler select<Op::sub_f64>(const Form& /*form*/) {
  return &lanewise<Subtract, double, double, double>;
}
template <>
Handler select<Op::mul_f64>(const Form& /*form*/) {
  return &lanewise<Multiply, double, double, double>;
}
template <>
Handler select<Op::fma_f64>(const Form& /*form*/) {
  return &lanewise<Fma, double, double, double, double>;
}
template <>
Handler select<Op::mad_f64>(const Form& /*form*/) {
  return &lanewise<Fma, double, double, double, double>;
}
template <>
Handler select<Op::div_f64>(const Form& /*form*/) {
  return &lanewise<Divide, double, double, double>;
}
template <>
Handler select<Op::rcp_f64>(const Form& /*form*/) {
  return &lanewise<Reciprocal, double, double>;
}
template <>
Handler select<Op::sqrt_f64>(const Form& /*form*/) {
  return &lanewise<SquareRoot, double, double>;
}
template <>
Handler select<Op::abs_f64>(const Form& /*form*/) {
  return &lanewise<Absolute, double, double>;
}
template <>
Handler select<Op::neg_f64>(const Form& /*form*/) {
  return &lanewise<Negate, double, double>;
}
template <>
Handler select<Op::min_f64>(const Form& /*form*/) {
  return &lanewise<Minimum, double, double, double>;
}
template <>
Handler select<Op::max_f64>(const Form& /*form*/) {
  return &lanewise<Maximum, double, double, double>;
}

}  // namespace cpverify::sim
