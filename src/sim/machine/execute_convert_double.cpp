#include <cstdint>
#include <limits>
#include <type_traits>

#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/float64.hpp"
#include "numerics/half_arithmetic.hpp"
#include "numerics/odd_rounding.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"

/// cvt to and from f64, and from f16 to integers, which goes through f64 without loss.
namespace cpverify::sim {
namespace {

using numerics::from_bits64;
using numerics::to_bits64;

constexpr double kIntegral = 0x1p+52;  ///< From here on every double is integral.

template <Rounding rounding>
double round_to_integral(double a) {
  const std::uint64_t sign = to_bits64(a) & numerics::kSignBit64;
  const double magnitude = from_bits64(to_bits64(a) ^ sign);
  if (!(magnitude < kIntegral)) return a;
  // Adding and taking away 2^52 rounds to nearest even.
  const double nearest = (magnitude + kIntegral) - kIntegral;
  const double down = nearest > magnitude ? nearest - 1.0 : nearest;
  const double up = nearest < magnitude ? nearest + 1.0 : nearest;
  double rounded = nearest;
  if constexpr (rounding == Rounding::to_zero) rounded = down;
  if constexpr (rounding == Rounding::down) rounded = sign != 0 ? up : down;
  if constexpr (rounding == Rounding::up) rounded = sign != 0 ? down : up;
  return from_bits64(to_bits64(rounded) | sign);
}

/// Values outside of the target's range clamp to it, NaN gives 0, as from f32.
template <class Target, Rounding rounding>
Target to_integer(double a) {
  using Limits = std::numeric_limits<Target>;
  if (numerics::is_nan_bits64(to_bits64(a))) return 0;
  const double value = round_to_integral<rounding>(a);
  const double beyond = 2.0 * static_cast<double>(Target{1} << (Limits::digits - 1));
  if (value >= beyond) return Limits::max();
  const double least = std::is_signed_v<Target> ? -beyond : 0.0;
  return value <= least ? Limits::min() : static_cast<Target>(value);
}

template <class Target, Rounding rounding>
struct FromDouble {
  static Target apply(double a) { return to_integer<Target, rounding>(a); }
};
/// .ftz does not concern f16.
template <class Target, Rounding rounding>
struct FromHalf {
  static Target apply(std::uint16_t a) {
    return to_integer<Target, rounding>(static_cast<double>(numerics::f16_to_f32(a)));
  }
};

template <template <class, Rounding> class Operation, class Source, class Target>
Handler select_rounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::to_nearest:
      return &lanewise<Operation<Target, Rounding::to_nearest>, Target, Source>;
    case Rounding::to_zero:
      return &lanewise<Operation<Target, Rounding::to_zero>, Target, Source>;
    case Rounding::down:
      return &lanewise<Operation<Target, Rounding::down>, Target, Source>;
    case Rounding::up:
      return &lanewise<Operation<Target, Rounding::up>, Target, Source>;
    default:
      return nullptr;
  }
}

template <template <class, Rounding> class Operation, class Source>
Handler select_to_integer(const Modifiers& modifiers) {
  switch (modifiers.type) {
    case Type::u8:
      return select_rounding<Operation, Source, std::uint8_t>(modifiers.rounding);
    case Type::u16:
      return select_rounding<Operation, Source, std::uint16_t>(modifiers.rounding);
    case Type::u32:
      return select_rounding<Operation, Source, std::uint32_t>(modifiers.rounding);
    case Type::u64:
      return select_rounding<Operation, Source, std::uint64_t>(modifiers.rounding);
    case Type::s8:
      return select_rounding<Operation, Source, std::int8_t>(modifiers.rounding);
    case Type::s16:
      return select_rounding<Operation, Source, std::int16_t>(modifiers.rounding);
    case Type::s32:
      return select_rounding<Operation, Source, std::int32_t>(modifiers.rounding);
    default:
      return select_rounding<Operation, Source, std::int64_t>(modifiers.rounding);
  }
}

/// To nearest even; exact up to 53 bits.
template <class Source>
struct IntegerToDouble {
  static double apply(Source a) { return static_cast<double>(a); }
};
template <class Target, Rounding rounding>
struct ToIntegral {
  static double apply(double a) { return numerics::canonical(round_to_integral<rounding>(a)); }
};

template <bool is_ftz>
struct WidenF32 {
  static double apply(float a) {
    return numerics::canonical(static_cast<double>(is_ftz ? numerics::flush_subnormal(a) : a));
  }
};
struct WidenF16 {
  static double apply(std::uint16_t a) {
    return numerics::canonical(static_cast<double>(numerics::f16_to_f32(a)));
  }
};
struct NarrowF16 {
  static std::uint16_t apply(double a) { return numerics::Float16Format::round(a); }
};

template <Rounding rounding>
float narrow(double a) {
  using numerics::Direction;
  if constexpr (rounding == Rounding::to_zero) {
    return numerics::narrow_directed(a, Direction::to_zero);
  }
  if constexpr (rounding == Rounding::down) return numerics::narrow_directed(a, Direction::down);
  if constexpr (rounding == Rounding::up) return numerics::narrow_directed(a, Direction::up);
  return numerics::canonical(static_cast<float>(a));
}

template <Rounding rounding, bool is_ftz, bool is_sat>
struct NarrowF32 {
  static float apply(double a) {
    float value = narrow<rounding>(a);
    if constexpr (is_ftz) value = numerics::flush_subnormal(value);
    if constexpr (is_sat) {
      // NaN and -0 fail the first comparison and give +0.
      value = value > 0.0F ? value : 0.0F;
      value = value < 1.0F ? value : 1.0F;
    }
    return value;
  }
};

template <Rounding rounding>
Handler select_narrow(const Modifiers& modifiers) {
  if (modifiers.is_sat) {
    return modifiers.is_ftz ? &lanewise<NarrowF32<rounding, true, true>, float, double>
                            : &lanewise<NarrowF32<rounding, false, true>, float, double>;
  }
  return modifiers.is_ftz ? &lanewise<NarrowF32<rounding, true, false>, float, double>
                          : &lanewise<NarrowF32<rounding, false, false>, float, double>;
}

}  // namespace

template <>
Handler select<Op::cvt_int_f16>(const Form& form) {
  return select_to_integer<FromHalf, std::uint16_t>(form.modifiers);
}
template <>
Handler select<Op::cvt_int_f64>(const Form& form) {
  return select_to_integer<FromDouble, double>(form.modifiers);
}
template <>
Handler select<Op::cvt_f64_f64>(const Form& form) {
  return select_rounding<ToIntegral, double, double>(form.modifiers.rounding);
}
template <>
Handler select<Op::cvt_f64_f32>(const Form& form) {
  return form.modifiers.is_ftz ? &lanewise<WidenF32<true>, double, float>
                               : &lanewise<WidenF32<false>, double, float>;
}
template <>
Handler select<Op::cvt_f64_f16>(const Form& /*form*/) {
  return &lanewise<WidenF16, double, std::uint16_t>;
}
template <>
Handler select<Op::cvt_f16_f64>(const Form& /*form*/) {
  return &lanewise<NarrowF16, std::uint16_t, double>;
}
template <>
Handler select<Op::cvt_f32_f64>(const Form& form) {
  switch (form.modifiers.rounding) {
    case Rounding::to_nearest:
      return select_narrow<Rounding::to_nearest>(form.modifiers);
    case Rounding::to_zero:
      return select_narrow<Rounding::to_zero>(form.modifiers);
    case Rounding::down:
      return select_narrow<Rounding::down>(form.modifiers);
    case Rounding::up:
      return select_narrow<Rounding::up>(form.modifiers);
    default:
      return nullptr;
  }
}
template <>
Handler select<Op::cvt_f64_int>(const Form& form) {
  switch (form.modifiers.atype) {
    case Type::u8:
      return &lanewise<IntegerToDouble<std::uint8_t>, double, std::uint8_t>;
    case Type::u16:
      return &lanewise<IntegerToDouble<std::uint16_t>, double, std::uint16_t>;
    case Type::u32:
      return &lanewise<IntegerToDouble<std::uint32_t>, double, std::uint32_t>;
    case Type::u64:
      return &lanewise<IntegerToDouble<std::uint64_t>, double, std::uint64_t>;
    case Type::s8:
      return &lanewise<IntegerToDouble<std::int8_t>, double, std::int8_t>;
    case Type::s16:
      return &lanewise<IntegerToDouble<std::int16_t>, double, std::int16_t>;
    case Type::s32:
      return &lanewise<IntegerToDouble<std::int32_t>, double, std::int32_t>;
    default:
      return &lanewise<IntegerToDouble<std::int64_t>, double, std::int64_t>;
  }
}

}  // namespace cpverify::sim
