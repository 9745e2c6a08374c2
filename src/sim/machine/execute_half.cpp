#include <cstdint>

#include "numerics/approximations.hpp"
#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/half_arithmetic.hpp"
#include "numerics/trigonometry.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"

/// Arithmetic of f16, bf16 and pairs of them: one rounding to nearest even, NaN results 0x7fff.
/// Source: PTX ISA, "Half Precision Floating Point Instructions".
namespace cpverify::sim {
namespace {

using numerics::BFloat16Format;
using numerics::Float16Format;

constexpr std::uint16_t kSignBit16 = 0x8000U;

template <class Format>
struct Add {
  static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
    return numerics::half_add<Format>(a, b);
  }
};
template <class Format>
struct Subtract {
  static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
    return numerics::half_add<Format>(a, static_cast<std::uint16_t>(b ^ kSignBit16));
  }
};
template <class Format>
struct Multiply {
  static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
    return numerics::half_multiply<Format>(a, b);
  }
};
template <class Format>
struct Fma {
  static std::uint16_t apply(std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    return numerics::half_fma<Format>(a, b, c);
  }
};
/// An operation of f32 whose result is a value of the format, or is to be rounded to it.
template <class Format, float (*function)(float, float)>
struct Binary {
  static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
    return Format::round(static_cast<double>(function(Format::widen(a), Format::widen(b))));
  }
};
template <class Format>
using Minimum = Binary<Format, &numerics::minimum>;
template <class Format>
using Maximum = Binary<Format, &numerics::maximum>;
template <class Format>
using MinimumNan = Binary<Format, &numerics::minimum_nan>;
template <class Format>
using MaximumNan = Binary<Format, &numerics::maximum_nan>;
template <class Format>
struct Exp2 {
  static std::uint16_t apply(std::uint16_t a) {
    return Format::round(static_cast<double>(numerics::exp2_approx(Format::widen(a))));
  }
};
template <class Format>
struct Tanh {
  static std::uint16_t apply(std::uint16_t a) {
    return Format::round(static_cast<double>(numerics::tanh_approx(Format::widen(a))));
  }
};
/// abs and neg change the sign bit only, as those of f32.
template <class Format>
struct Absolute {
  static std::uint16_t apply(std::uint16_t a) {
    return static_cast<std::uint16_t>(a & ~std::uint32_t{kSignBit16});
  }
};
template <class Format>
struct Negate {
  static std::uint16_t apply(std::uint16_t a) { return static_cast<std::uint16_t>(a ^ kSignBit16); }
};

/// The exponent field of an infinity is all ones, that of a subnormal zero.
template <class Format>
std::uint16_t flush(std::uint16_t bits) {
  return (bits & Format::kInfinity) == 0 ? static_cast<std::uint16_t>(bits & kSignBit16) : bits;
}

/// .sat clamps to [0, 1] and makes NaN +0; .relu makes what is negative, -0 too, +0.
template <class Format>
struct Unclamped {
  static std::uint16_t apply(std::uint16_t bits) { return bits; }
};
template <class Format>
struct Saturated {
  static std::uint16_t apply(std::uint16_t bits) {
    const std::uint16_t one = Format::round(1.0);
    if ((bits & kSignBit16) != 0 || bits > Format::kInfinity) return 0;
    return bits > one ? one : bits;
  }
};
template <class Format>
struct Rectified {
  static std::uint16_t apply(std::uint16_t bits) {
    // A NaN that arithmetic leaves is canonical and has no sign.
    return (bits & kSignBit16) != 0 ? std::uint16_t{0} : bits;
  }
};

template <class Operation, class Format, template <class> class Clamp, bool is_ftz>
struct One {
  template <class... Sources>
  static std::uint16_t apply(Sources... sources) {
    if constexpr (is_ftz) {
      return Clamp<Format>::apply(flush<Format>(Operation::apply(flush<Format>(sources)...)));
    } else {
      return Clamp<Format>::apply(Operation::apply(sources...));
    }
  }
};

template <class Operation>
struct Pair {
  template <class... Sources>
  static std::uint32_t apply(Sources... sources) {
    return numerics::pack_halves(Operation::apply(static_cast<std::uint16_t>(sources >> 16)...),
                                 Operation::apply(static_cast<std::uint16_t>(sources)...));
  }
};

template <class Operation>
Handler unary(bool is_pair) {
  return is_pair ? &lanewise<Pair<Operation>, std::uint32_t, std::uint32_t>
                 : &lanewise<Operation, std::uint16_t, std::uint16_t>;
}
template <class Operation>
Handler binary(bool is_pair) {
  return is_pair ? &lanewise<Pair<Operation>, std::uint32_t, std::uint32_t, std::uint32_t>
                 : &lanewise<Operation, std::uint16_t, std::uint16_t, std::uint16_t>;
}
template <class Operation>
Handler ternary(bool is_pair) {
  return is_pair ? &lanewise<Pair<Operation>, std::uint32_t, std::uint32_t, std::uint32_t,
                             std::uint32_t>
                 : &lanewise<Operation, std::uint16_t, std::uint16_t, std::uint16_t, std::uint16_t>;
}

bool is_bf16(const Modifiers& modifiers) {
  return modifiers.type == Type::bf16 || modifiers.type == Type::bf16x2;
}
bool is_pair(const Modifiers& modifiers) {
  return size_bytes(modifiers.type) == 4;
}

template <template <class> class Operation, template <class> class Clamp, bool is_ftz>
using F16 = One<Operation<Float16Format>, Float16Format, Clamp, is_ftz>;
template <template <class> class Operation, template <class> class Clamp>
using Bf16 = One<Operation<BFloat16Format>, BFloat16Format, Clamp, false>;

template <template <class> class Operation>
Handler select_arithmetic(const Modifiers& modifiers) {
  const bool pair = is_pair(modifiers);
  if (is_bf16(modifiers)) {
    if (modifiers.is_ftz || modifiers.is_sat) return nullptr;
    return binary<Bf16<Operation, Unclamped>>(pair);
  }
  if (modifiers.is_sat) {
    return modifiers.is_ftz ? binary<F16<Operation, Saturated, true>>(pair)
                            : binary<F16<Operation, Saturated, false>>(pair);
  }
  return modifiers.is_ftz ? binary<F16<Operation, Unclamped, true>>(pair)
                          : binary<F16<Operation, Unclamped, false>>(pair);
}

template <template <class> class Clamp>
Handler select_fma(const Modifiers& modifiers) {
  const bool pair = is_pair(modifiers);
  if (is_bf16(modifiers)) return ternary<Bf16<Fma, Clamp>>(pair);
  return modifiers.is_ftz ? ternary<F16<Fma, Clamp, true>>(pair)
                          : ternary<F16<Fma, Clamp, false>>(pair);
}

template <template <class> class Operation>
Handler select_order(const Modifiers& modifiers) {
  const bool pair = is_pair(modifiers);
  if (is_bf16(modifiers)) {
    return modifiers.is_ftz ? nullptr : binary<Bf16<Operation, Unclamped>>(pair);
  }
  return modifiers.is_ftz ? binary<F16<Operation, Unclamped, true>>(pair)
                          : binary<F16<Operation, Unclamped, false>>(pair);
}

template <template <class> class Operation>
Handler select_unary(const Modifiers& modifiers) {
  const bool pair = is_pair(modifiers);
  if (is_bf16(modifiers)) {
    return modifiers.is_ftz ? nullptr : unary<Bf16<Operation, Unclamped>>(pair);
  }
  return modifiers.is_ftz ? unary<F16<Operation, Unclamped, true>>(pair)
                          : unary<F16<Operation, Unclamped, false>>(pair);
}

}  // namespace

template <>
Handler select<Op::add_half>(const Form& form) {
  return select_arithmetic<Add>(form.modifiers);
}
template <>
Handler select<Op::sub_half>(const Form& form) {
  return select_arithmetic<Subtract>(form.modifiers);
}
template <>
Handler select<Op::mul_half>(const Form& form) {
  return select_arithmetic<Multiply>(form.modifiers);
}
template <>
Handler select<Op::fma_half>(const Form& form) {
  const Modifiers& modifiers = form.modifiers;
  if (modifiers.is_sat && modifiers.is_relu) return nullptr;
  if (is_bf16(modifiers) && (modifiers.is_ftz || modifiers.is_sat)) return nullptr;
  if (modifiers.is_sat) return select_fma<Saturated>(modifiers);
  return modifiers.is_relu ? select_fma<Rectified>(modifiers) : select_fma<Unclamped>(modifiers);
}
template <>
Handler select<Op::abs_half>(const Form& form) {
  return select_unary<Absolute>(form.modifiers);
}
template <>
Handler select<Op::neg_half>(const Form& form) {
  return select_unary<Negate>(form.modifiers);
}
template <>
Handler select<Op::min_half>(const Form& form) {
  return form.modifiers.is_nan ? select_order<MinimumNan>(form.modifiers)
                               : select_order<Minimum>(form.modifiers);
}
template <>
Handler select<Op::max_half>(const Form& form) {
  return form.modifiers.is_nan ? select_order<MaximumNan>(form.modifiers)
                               : select_order<Maximum>(form.modifiers);
}
template <>
Handler select<Op::ex2_half>(const Form& form) {
  // The f16 forms have no .ftz, the bf16 forms must have it.
  const Modifiers& modifiers = form.modifiers;
  if (is_bf16(modifiers) != modifiers.is_ftz) return nullptr;
  if (!is_bf16(modifiers)) return unary<F16<Exp2, Unclamped, false>>(is_pair(modifiers));
  return unary<One<Exp2<BFloat16Format>, BFloat16Format, Unclamped, true>>(is_pair(modifiers));
}
template <>
Handler select<Op::tanh_half>(const Form& form) {
  return select_unary<Tanh>(form.modifiers);
}

}  // namespace cpverify::sim
