#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/float8.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"

/// cvt to and from formats of less than 32 bits, with .rz, .relu and .satfinite, and to tf32.
namespace cpverify::sim {
namespace {

using numerics::from_bits;
using numerics::to_bits;

/// .relu: what is negative, -0 too, becomes +0; NaN stays.
float rectified(float value) {
  const std::uint32_t bits = to_bits(value);
  return (bits & numerics::kSignBit32) != 0 && !numerics::is_nan_bits(bits) ? 0.0F : value;
}

/// The f32 formats that a conversion cuts: bits of f32 that go, at the exponents where the target
/// is normal.
struct ToF16 {
  static constexpr float kLargest = 65504.0F;
  static std::uint16_t nearest(float a) { return numerics::f32_to_f16(a); }
  /// Nearest, and one step back when that went away from zero.
  static std::uint16_t to_zero(float a) {
    const std::uint16_t bits = numerics::f32_to_f16(a);
    const float magnitude = from_bits(to_bits(a) & ~numerics::kSignBit32);
    const float got = numerics::f16_to_f32(static_cast<std::uint16_t>(bits & 0x7fffU));
    const bool is_beyond = got > magnitude;
    return static_cast<std::uint16_t>(is_beyond ? bits - 1 : bits);
  }
};
struct ToBf16 {
  static constexpr float kLargest = 0x1.fep+127F;
  static std::uint16_t nearest(float a) { return numerics::f32_to_bf16(a); }
  static std::uint16_t to_zero(float a) {
    const std::uint32_t bits = to_bits(a);
    return static_cast<std::uint16_t>(numerics::is_nan_bits(bits) ? numerics::kCanonicalNan16
                                                                  : bits >> 16);
  }
};

/// .satfinite: beyond the largest value, infinities too, that value.
template <class Format>
float clamped(float a) {
  if (numerics::is_nan_bits(to_bits(a))) return a;
  return std::clamp(a, -Format::kLargest, Format::kLargest);
}

template <class Format, bool is_to_zero, bool is_relu, bool is_satfinite>
struct Narrow {
  static std::uint16_t apply(float a) {
    float value = is_relu ? rectified(a) : a;
    if constexpr (is_satfinite) value = clamped<Format>(value);
    return is_to_zero ? Format::to_zero(value) : Format::nearest(value);
  }
};
template <class Format, bool is_to_zero, bool is_relu, bool is_satfinite>
struct NarrowPair {
  using One = Narrow<Format, is_to_zero, is_relu, is_satfinite>;
  static std::uint32_t apply(float a, float b) {
    return numerics::pack_halves(One::apply(a), One::apply(b));
  }
};

template <class Format, bool is_to_zero, bool is_relu, bool is_satfinite>
Handler choose_narrow(bool is_pair) {
  return is_pair
             ? &lanewise<NarrowPair<Format, is_to_zero, is_relu, is_satfinite>, std::uint32_t,
                         float, float>
             : &lanewise<Narrow<Format, is_to_zero, is_relu, is_satfinite>, std::uint16_t, float>;
}
template <class Format, bool is_to_zero>
Handler select_flags(const Modifiers& modifiers, bool is_pair) {
  if (modifiers.is_satfinite) {
    return modifiers.is_relu ? choose_narrow<Format, is_to_zero, true, true>(is_pair)
                             : choose_narrow<Format, is_to_zero, false, true>(is_pair);
  }
  return modifiers.is_relu ? choose_narrow<Format, is_to_zero, true, false>(is_pair)
                           : choose_narrow<Format, is_to_zero, false, false>(is_pair);
}
template <class Format>
Handler select_narrow(const Modifiers& modifiers, bool is_pair) {
  return modifiers.rounding == Rounding::to_zero ? select_flags<Format, true>(modifiers, is_pair)
                                                 : select_flags<Format, false>(modifiers, is_pair);
}

/// tf32 is an f32 whose low 13 bits are zero here.
constexpr std::uint32_t kTf32Cut = 0x1fffU;
constexpr std::uint32_t kTf32Largest = 0x7f7fe000U;

template <Rounding rounding, bool is_relu, bool is_satfinite>
struct NarrowTf32 {
  static std::uint32_t apply(float a) {
    const std::uint32_t bits = to_bits(is_relu ? rectified(a) : a);
    if (numerics::is_nan_bits(bits)) return numerics::kCanonicalNan32;
    const std::uint32_t sign = bits & numerics::kSignBit32;
    std::uint32_t magnitude = bits ^ sign;
    if (magnitude != numerics::kInfinityBits32) {
      // Half a unit is 2^12; ties go away from zero, or to the even neighbour. A carry goes on
      // into the exponent by itself.
      if (rounding == Rounding::to_nearest_away) magnitude += 0x1000U;
      if (rounding == Rounding::to_nearest) magnitude += 0xfffU + ((magnitude >> 13) & 1U);
      magnitude &= ~kTf32Cut;
    }
    if (is_satfinite && magnitude > kTf32Largest) magnitude = kTf32Largest;
    return sign | magnitude;
  }
};
template <Rounding rounding>
Handler select_tf32(const Modifiers& modifiers) {
  if (modifiers.is_satfinite) {
    return modifiers.is_relu ? &lanewise<NarrowTf32<rounding, true, true>, std::uint32_t, float>
                             : &lanewise<NarrowTf32<rounding, false, true>, std::uint32_t, float>;
  }
  return modifiers.is_relu ? &lanewise<NarrowTf32<rounding, true, false>, std::uint32_t, float>
                           : &lanewise<NarrowTf32<rounding, false, false>, std::uint32_t, float>;
}

std::uint16_t pack_bytes(std::uint8_t upper, std::uint8_t lower) {
  return static_cast<std::uint16_t>((std::uint32_t{upper} << 8) | lower);
}

template <class Format, bool is_relu>
struct NarrowF8 {
  static std::uint8_t one(float a) {
    return numerics::f32_to_f8<Format>(is_relu ? rectified(a) : a);
  }
  static std::uint16_t apply(float a, float b) { return pack_bytes(one(a), one(b)); }
};
template <class Format, bool is_relu>
struct NarrowF8FromF16 {
  static std::uint16_t apply(std::uint32_t pair) {
    return NarrowF8<Format, is_relu>::apply(
        numerics::f16_to_f32(static_cast<std::uint16_t>(pair >> 16)),
        numerics::f16_to_f32(static_cast<std::uint16_t>(pair)));
  }
};
/// Every value of the 8-bit formats is one of f16.
template <class Format, bool is_relu>
struct WidenF8 {
  static std::uint16_t one(std::uint8_t code) {
    const float value = numerics::f8_to_f32<Format>(code);
    return numerics::f32_to_f16(is_relu ? rectified(value) : value);
  }
  static std::uint32_t apply(std::uint16_t pair) {
    return numerics::pack_halves(one(static_cast<std::uint8_t>(pair >> 8)),
                                 one(static_cast<std::uint8_t>(pair)));
  }
};

template <template <class, bool> class Operation, class Target, class... Sources>
Handler select_f8(Type type, bool is_relu) {
  if (type == Type::e4m3x2) {
    return is_relu ? &lanewise<Operation<numerics::E4M3, true>, Target, Sources...>
                   : &lanewise<Operation<numerics::E4M3, false>, Target, Sources...>;
  }
  return is_relu ? &lanewise<Operation<numerics::E5M2, true>, Target, Sources...>
                 : &lanewise<Operation<numerics::E5M2, false>, Target, Sources...>;
}

/// What is beyond 2^20 becomes an infinity anyhow; what is within is exact in f32.
template <class Source>
struct IntegerToF16 {
  static std::uint16_t apply(Source a) {
    constexpr std::int64_t kLimit = 1 << 20;
    std::int64_t value = kLimit;
    if constexpr (std::is_signed_v<Source>) {
      value = std::clamp<std::int64_t>(a, -kLimit, kLimit);
    } else {
      value = static_cast<std::int64_t>(std::min<std::uint64_t>(a, std::uint64_t{kLimit}));
    }
    return numerics::f32_to_f16(static_cast<float>(value));
  }
};

}  // namespace

template <>
Handler select<Op::cvt_half_f32>(const Form& form) {
  return form.modifiers.type == Type::f16 ? select_narrow<ToF16>(form.modifiers, false)
                                          : select_narrow<ToBf16>(form.modifiers, false);
}
template <>
Handler select<Op::cvt_half2_f32>(const Form& form) {
  return form.modifiers.type == Type::f16x2 ? select_narrow<ToF16>(form.modifiers, true)
                                            : select_narrow<ToBf16>(form.modifiers, true);
}
template <>
Handler select<Op::cvt_tf32_f32>(const Form& form) {
  switch (form.modifiers.rounding) {
    case Rounding::to_nearest_away:
      return form.modifiers.is_relu ? nullptr
                                    : select_tf32<Rounding::to_nearest_away>(form.modifiers);
    case Rounding::to_nearest:
      return select_tf32<Rounding::to_nearest>(form.modifiers);
    case Rounding::to_zero:
      return select_tf32<Rounding::to_zero>(form.modifiers);
    default:
      return nullptr;
  }
}
template <>
Handler select<Op::cvt_f8_f32>(const Form& form) {
  return select_f8<NarrowF8, std::uint16_t, float, float>(form.modifiers.type,
                                                          form.modifiers.is_relu);
}
template <>
Handler select<Op::cvt_f8_half2>(const Form& form) {
  return select_f8<NarrowF8FromF16, std::uint16_t, std::uint32_t>(form.modifiers.type,
                                                                  form.modifiers.is_relu);
}
template <>
Handler select<Op::cvt_half2_f8>(const Form& form) {
  return select_f8<WidenF8, std::uint32_t, std::uint16_t>(form.modifiers.atype,
                                                          form.modifiers.is_relu);
}
template <>
Handler select<Op::cvt_f16_int>(const Form& form) {
  switch (form.modifiers.atype) {
    case Type::u8:
      return &lanewise<IntegerToF16<std::uint8_t>, std::uint16_t, std::uint8_t>;
    case Type::u16:
      return &lanewise<IntegerToF16<std::uint16_t>, std::uint16_t, std::uint16_t>;
    case Type::u32:
      return &lanewise<IntegerToF16<std::uint32_t>, std::uint16_t, std::uint32_t>;
    case Type::u64:
      return &lanewise<IntegerToF16<std::uint64_t>, std::uint16_t, std::uint64_t>;
    case Type::s8:
      return &lanewise<IntegerToF16<std::int8_t>, std::uint16_t, std::int8_t>;
    case Type::s16:
      return &lanewise<IntegerToF16<std::int16_t>, std::uint16_t, std::int16_t>;
    case Type::s32:
      return &lanewise<IntegerToF16<std::int32_t>, std::uint16_t, std::int32_t>;
    default:
      return &lanewise<IntegerToF16<std::int64_t>, std::uint16_t, std::int64_t>;
  }
}

}  // namespace cpverify::sim
