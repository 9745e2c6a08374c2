#include <cstdint>
#include <limits>
#include <type_traits>

#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"

/// cvt. Source: PTX ISA, cvt; between integers it cuts or extends by the source's signedness.
namespace cpverify::sim {
namespace {

using numerics::flush_subnormal;
using numerics::from_bits;
using numerics::to_bits;

template <class Target, class Source>
struct Resize {
  static Target apply(Source a) { return static_cast<Target>(a); }
};

/// .sat clamps to the limits of the target.
template <class Target, class Source>
struct Saturate {
  static Target apply(Source a) {
    using Limits = std::numeric_limits<Target>;
    if constexpr (std::is_signed_v<Source>) {
      const std::int64_t low{Limits::min()};
      const std::int64_t value{a};
      if (value < low) return Limits::min();
      if (value < 0) return static_cast<Target>(a);
    }
    const auto high = static_cast<std::uint64_t>(Limits::max());
    return static_cast<std::uint64_t>(a) > high ? Limits::max() : static_cast<Target>(a);
  }
};

template <class Target, class Source>
Handler choose_resize(bool is_sat) {
  return is_sat ? &lanewise<Saturate<Target, Source>, Target, Source>
                : &lanewise<Resize<Target, Source>, Target, Source>;
}

template <class Target>
Handler select_resize(Type from, bool is_sat) {
  switch (from) {
    case Type::u8:
      return choose_resize<Target, std::uint8_t>(is_sat);
    case Type::u16:
      return choose_resize<Target, std::uint16_t>(is_sat);
    case Type::u32:
      return choose_resize<Target, std::uint32_t>(is_sat);
    case Type::u64:
      return choose_resize<Target, std::uint64_t>(is_sat);
    case Type::s8:
      return choose_resize<Target, std::int8_t>(is_sat);
    case Type::s16:
      return choose_resize<Target, std::int16_t>(is_sat);
    case Type::s32:
      return choose_resize<Target, std::int32_t>(is_sat);
    case Type::s64:
      return choose_resize<Target, std::int64_t>(is_sat);
    default:
      return nullptr;
  }
}

float saturate(float value) {
  // NaN and -0 fail the first comparison and give +0.
  const float low = value > 0.0F ? value : 0.0F;
  return low < 1.0F ? low : 1.0F;
}

/// To nearest even. 64-bit integers have more bits than x86 can convert in lanes; the scalar
/// conversion rounds the same way.
template <class Source, bool is_sat>
struct IntegerToFloat {
  static float apply(Source a) {
    const auto value = static_cast<float>(a);
    return is_sat ? saturate(value) : value;
  }
};

template <class Source>
Handler choose_to_float(bool is_sat) {
  return is_sat ? &lanewise<IntegerToFloat<Source, true>, float, Source>
                : &lanewise<IntegerToFloat<Source, false>, float, Source>;
}

/// Rounds to an integral value; exact for |a| >= 2^23, where every float is integral.
template <Rounding rounding>
float round_to_integral(float a) {
  const std::uint32_t sign = to_bits(a) & numerics::kSignBit32;
  const float magnitude = from_bits(to_bits(a) ^ sign);
  if (!(magnitude < 8388608.0F)) return a;
  // Adding and taking away 2^23 rounds to nearest even.
  const float nearest = (magnitude + 8388608.0F) - 8388608.0F;
  float rounded = nearest;
  const float down = nearest > magnitude ? nearest - 1.0F : nearest;
  const float up = nearest < magnitude ? nearest + 1.0F : nearest;
  if constexpr (rounding == Rounding::to_zero) rounded = down;
  if constexpr (rounding == Rounding::down) rounded = sign != 0 ? up : down;
  if constexpr (rounding == Rounding::up) rounded = sign != 0 ? down : up;
  return from_bits(to_bits(rounded) | sign);
}

/// Values outside of the target's range clamp to it, NaN gives 0. Source: PTX ISA, cvt: "the result
/// is clamped to the range of the destination type"; NaN to 0 is what the hardware does.
template <class Target, Rounding rounding, bool is_ftz>
struct FloatToInteger {
  static Target apply(float a) {
    using Limits = std::numeric_limits<Target>;
    const float value = round_to_integral<rounding>(is_ftz ? flush_subnormal(a) : a);
    if (numerics::is_nan_bits(to_bits(value))) return 0;
    // 2^bits is exact in float where Limits::max() is not.
    const float beyond = 2.0F * static_cast<float>(Target{1} << (Limits::digits - 1));
    if (value >= beyond) return Limits::max();
    const float least = std::is_signed_v<Target> ? -beyond : 0.0F;
    return value <= least ? Limits::min() : static_cast<Target>(value);
  }
};

template <class Target, Rounding rounding>
Handler choose_to_integer(bool is_ftz) {
  return is_ftz ? &lanewise<FloatToInteger<Target, rounding, true>, Target, float>
                : &lanewise<FloatToInteger<Target, rounding, false>, Target, float>;
}

template <class Target>
Handler select_to_integer(const Modifiers& modifiers) {
  switch (modifiers.rounding) {
    case Rounding::to_nearest:
      return choose_to_integer<Target, Rounding::to_nearest>(modifiers.is_ftz);
    case Rounding::to_zero:
      return choose_to_integer<Target, Rounding::to_zero>(modifiers.is_ftz);
    case Rounding::down:
      return choose_to_integer<Target, Rounding::down>(modifiers.is_ftz);
    case Rounding::up:
      return choose_to_integer<Target, Rounding::up>(modifiers.is_ftz);
    case Rounding::none:
    case Rounding::to_nearest_away:
      return nullptr;
  }
  return nullptr;
}

template <Rounding rounding, bool is_ftz, bool is_sat>
struct FloatToFloat {
  static float apply(float a) {
    float value = is_ftz ? flush_subnormal(a) : a;
    if constexpr (rounding != Rounding::none) value = round_to_integral<rounding>(value);
    return is_sat ? saturate(value) : numerics::canonical(value);
  }
};

template <Rounding rounding>
Handler select_float_to_float(const Modifiers& modifiers) {
  if (modifiers.is_sat) {
    return modifiers.is_ftz ? &lanewise<FloatToFloat<rounding, true, true>, float, float>
                            : &lanewise<FloatToFloat<rounding, false, true>, float, float>;
  }
  return modifiers.is_ftz ? &lanewise<FloatToFloat<rounding, true, false>, float, float>
                          : &lanewise<FloatToFloat<rounding, false, false>, float, float>;
}

struct WidenF16 {
  static float apply(std::uint16_t a) { return numerics::f16_to_f32(a); }
};
struct WidenBf16 {
  static float apply(std::uint16_t a) { return numerics::bf16_to_f32(a); }
};
template <bool is_ftz>
struct NarrowF16 {
  static std::uint16_t apply(float a) {
    return numerics::f32_to_f16(is_ftz ? flush_subnormal(a) : a);
  }
};
struct NarrowBf16 {
  static std::uint16_t apply(float a) { return numerics::f32_to_bf16(a); }
};
struct NarrowF16x2 {
  static std::uint32_t apply(float a, float b) {
    return numerics::pack_halves(numerics::f32_to_f16(a), numerics::f32_to_f16(b));
  }
};
struct NarrowBf16x2 {
  static std::uint32_t apply(float a, float b) {
    return numerics::pack_halves(numerics::f32_to_bf16(a), numerics::f32_to_bf16(b));
  }
};

}  // namespace

template <>
Handler select<Op::cvt_int>(const Form& form) {
  const bool is_sat = form.modifiers.is_sat;
  const Type from = form.modifiers.atype;
  switch (form.modifiers.type) {
    case Type::u8:
      return select_resize<std::uint8_t>(from, is_sat);
    case Type::u16:
      return select_resize<std::uint16_t>(from, is_sat);
    case Type::u32:
      return select_resize<std::uint32_t>(from, is_sat);
    case Type::u64:
      return select_resize<std::uint64_t>(from, is_sat);
    case Type::s8:
      return select_resize<std::int8_t>(from, is_sat);
    case Type::s16:
      return select_resize<std::int16_t>(from, is_sat);
    case Type::s32:
      return select_resize<std::int32_t>(from, is_sat);
    case Type::s64:
      return select_resize<std::int64_t>(from, is_sat);
    default:
      return nullptr;
  }
}
template <>
Handler select<Op::cvt_f32_int>(const Form& form) {
  const bool is_sat = form.modifiers.is_sat;
  switch (form.modifiers.atype) {
    case Type::u8:
      return choose_to_float<std::uint8_t>(is_sat);
    case Type::u16:
      return choose_to_float<std::uint16_t>(is_sat);
    case Type::u32:
      return choose_to_float<std::uint32_t>(is_sat);
    case Type::u64:
      return choose_to_float<std::uint64_t>(is_sat);
    case Type::s8:
      return choose_to_float<std::int8_t>(is_sat);
    case Type::s16:
      return choose_to_float<std::int16_t>(is_sat);
    case Type::s32:
      return choose_to_float<std::int32_t>(is_sat);
    default:
      return choose_to_float<std::int64_t>(is_sat);
  }
}
template <>
Handler select<Op::cvt_int_f32>(const Form& form) {
  switch (form.modifiers.type) {
    case Type::u8:
      return select_to_integer<std::uint8_t>(form.modifiers);
    case Type::u16:
      return select_to_integer<std::uint16_t>(form.modifiers);
    case Type::u32:
      return select_to_integer<std::uint32_t>(form.modifiers);
    case Type::u64:
      return select_to_integer<std::uint64_t>(form.modifiers);
    case Type::s8:
      return select_to_integer<std::int8_t>(form.modifiers);
    case Type::s16:
      return select_to_integer<std::int16_t>(form.modifiers);
    case Type::s32:
      return select_to_integer<std::int32_t>(form.modifiers);
    default:
      return select_to_integer<std::int64_t>(form.modifiers);
  }
}
template <>
Handler select<Op::cvt_f32_f32>(const Form& form) {
  switch (form.modifiers.rounding) {
    case Rounding::none:
      return select_float_to_float<Rounding::none>(form.modifiers);
    case Rounding::to_nearest:
      return select_float_to_float<Rounding::to_nearest>(form.modifiers);
    case Rounding::to_zero:
      return select_float_to_float<Rounding::to_zero>(form.modifiers);
    case Rounding::down:
      return select_float_to_float<Rounding::down>(form.modifiers);
    case Rounding::up:
      return select_float_to_float<Rounding::up>(form.modifiers);
    case Rounding::to_nearest_away:
      return nullptr;
  }
  return nullptr;
}
template <>
Handler select<Op::cvt_f32_f16>(const Form& /*form*/) {
  // Every f16, subnormals included, is a normal f32: .ftz has nothing to flush.
  return &lanewise<WidenF16, float, std::uint16_t>;
}
template <>
Handler select<Op::cvt_f32_bf16>(const Form& form) {
  if (form.modifiers.is_ftz) return nullptr;
  return &lanewise<WidenBf16, float, std::uint16_t>;
}
template <>
Handler select<Op::cvt_f16_f32>(const Form& form) {
  return form.modifiers.is_ftz ? &lanewise<NarrowF16<true>, std::uint16_t, float>
                               : &lanewise<NarrowF16<false>, std::uint16_t, float>;
}
template <>
Handler select<Op::cvt_bf16_f32>(const Form& /*form*/) {
  return &lanewise<NarrowBf16, std::uint16_t, float>;
}
template <>
Handler select<Op::cvt_f16x2>(const Form& /*form*/) {
  return &lanewise<NarrowF16x2, std::uint32_t, float, float>;
}
template <>
Handler select<Op::cvt_bf16x2>(const Form& /*form*/) {
  return &lanewise<NarrowBf16x2, std::uint32_t, float, float>;
}

}  // namespace cpverify::sim
