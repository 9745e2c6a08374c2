#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"

/// Integer arithmetic. It wraps: all sums and products are taken in the unsigned type.
namespace cpverify::sim {
namespace {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// Wide enough that a product of two T does not overflow an int when T is narrow.
template <class T>
using Word = std::conditional_t<sizeof(T) < 4, std::uint32_t, Unsigned<T>>;

template <class T>
using Wide =
    std::conditional_t<sizeof(T) == 2,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>;

template <class T>
struct Add {
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Word<T>>(a) + static_cast<Word<T>>(b));
  }
};
template <class T>
struct Subtract {
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Word<T>>(a) - static_cast<Word<T>>(b));
  }
};
template <class T>
struct Multiply {
  static T apply(T a, T b) {
    return static_cast<T>(static_cast<Word<T>>(a) * static_cast<Word<T>>(b));
  }
};
/// The upper half of the product. __int128 is a vendor extension; this is long multiplication.
template <class T>
struct MultiplyHigh {
  static T apply(T a, T b) {
    if constexpr (sizeof(T) < 8) {
      return static_cast<T>((static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)) >> (8 * sizeof(T)));
    } else {
      const auto x = static_cast<std::uint64_t>(a);
      const auto y = static_cast<std::uint64_t>(b);
      const std::uint64_t low = (x & 0xffffffffU) * (y & 0xffffffffU);
      const std::uint64_t middle_a = (x >> 32) * (y & 0xffffffffU) + (low >> 32);
      const std::uint64_t middle_b = (x & 0xffffffffU) * (y >> 32) + (middle_a & 0xffffffffU);
      std::uint64_t high = (x >> 32) * (y >> 32) + (middle_a >> 32) + (middle_b >> 32);
      // A negative factor counts as factor - 2^64 in the signed product.
      if (std::is_signed_v<T> && a < 0) high -= y;
      if (std::is_signed_v<T> && b < 0) high -= x;
      return static_cast<T>(high);
    }
  }
};
template <class T>
struct MultiplyWide {
  static Wide<T> apply(T a, T b) { return static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b); }
};
template <class T>
struct MultiplyAdd {
  static T apply(T a, T b, T c) { return Add<T>::apply(Multiply<T>::apply(a, b), c); }
};
template <class T>
struct MultiplyAddWide {
  static Wide<T> apply(T a, T b, Wide<T> c) {
    return Add<Wide<T>>::apply(MultiplyWide<T>::apply(a, b), c);
  }
};
/// Division by zero is unspecified; we give all ones. So is the overflow of the most negative value
/// by -1: it wraps. Source: PTX ISA, div.
template <class T>
struct Divide {
  static T apply(T a, T b) {
    if (b == 0) return static_cast<T>(~Unsigned<T>{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Subtract<T>::apply(0, a);
    return static_cast<T>(a / b);
  }
};
template <class T>
struct Remainder {
  static T apply(T a, T b) {
    if (b == 0) return a;
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};
template <class T>
struct Negate {
  static T apply(T a) { return Subtract<T>::apply(0, a); }
};
template <class T>
struct Absolute {
  static T apply(T a) { return a < 0 ? Negate<T>::apply(a) : a; }
};
template <class T>
struct Minimum {
  static T apply(T a, T b) { return a < b ? a : b; }
};
template <class T>
struct Maximum {
  static T apply(T a, T b) { return a > b ? a : b; }
};
struct AddSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::int64_t sum = std::int64_t{a} + b;
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(
        sum, std::numeric_limits<std::int32_t>::min(), std::numeric_limits<std::int32_t>::max()));
  }
};
struct SubtractSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b) {
    const std::int64_t difference = std::int64_t{a} - b;
    return static_cast<std::int32_t>(
        std::clamp<std::int64_t>(difference, std::numeric_limits<std::int32_t>::min(),
                                 std::numeric_limits<std::int32_t>::max()));
  }
};
template <class T>
struct PopulationCount {
  static std::uint32_t apply(T a) { return static_cast<std::uint32_t>(std::popcount(a)); }
};
template <class T>
struct CountLeadingZeros {
  static std::uint32_t apply(T a) { return static_cast<std::uint32_t>(std::countl_zero(a)); }
};
template <class T>
struct ReverseBits {
  static T apply(T a) {
    T result = 0;
    for (std::size_t bit = 0; bit < 8 * sizeof(T); ++bit) {
      result = static_cast<T>(result << 1 | ((a >> bit) & 1));
    }
    return result;
  }
};
/// Bits [pos, pos+len) of a, extended with zeros or, for signed types, with the topmost bit that
/// exists. Position and length are taken modulo 256. Source: PTX ISA, bfe, its pseudocode.
template <class T>
struct ExtractBits {
  static T apply(T a, std::uint32_t position, std::uint32_t length) {
    using U = Unsigned<T>;
    constexpr std::uint32_t kMsb = 8 * sizeof(T) - 1;
    const std::uint32_t pos = position & 0xffU;
    const std::uint32_t len = length & 0xffU;
    const auto bits = static_cast<U>(a);
    const std::uint32_t last = std::min(pos + len - 1, kMsb);
    const bool is_negative = std::is_signed_v<T> && len != 0 && ((bits >> last) & 1U) != 0;
    const U field = pos > kMsb ? U{0} : static_cast<U>(bits >> pos);
    // Bits from `kept` up come from the sign.
    const std::uint32_t kept = std::min(len, pos > kMsb ? 0U : kMsb + 1 - pos);
    const U mask = kept > kMsb ? static_cast<U>(~U{0}) : static_cast<U>((U{1} << kept) - 1);
    return static_cast<T>((field & mask) | (is_negative ? static_cast<U>(~mask) : U{0}));
  }
};
/// b with bits [pos, pos+len) replaced by the low bits of a. Source: PTX ISA, bfi.
template <class T>
struct InsertBits {
  static T apply(T a, T b, std::uint32_t position, std::uint32_t length) {
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    const std::uint32_t pos = position & 0xffU;
    const std::uint32_t len = std::min(length & 0xffU, kBits);
    if (pos >= kBits || len == 0) return b;
    const T field = len == kBits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << len) - 1);
    const T mask = static_cast<T>(field << pos);
    return static_cast<T>((b & static_cast<T>(~mask)) | (static_cast<T>(a << pos) & mask));
  }
};

template <template <class> class Operation>
Handler select_binary(Type type) {
  switch (type) {
    case Type::u16:
      return &lanewise<Operation<std::uint16_t>, std::uint16_t, std::uint16_t, std::uint16_t>;
    case Type::u32:
      return &lanewise<Operation<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t>;
    case Type::u64:
      return &lanewise<Operation<std::uint64_t>, std::uint64_t, std::uint64_t, std::uint64_t>;
    case Type::s16:
      return &lanewise<Operation<std::int16_t>, std::int16_t, std::int16_t, std::int16_t>;
    case Type::s32:
      return &lanewise<Operation<std::int32_t>, std::int32_t, std::int32_t, std::int32_t>;
    case Type::s64:
      return &lanewise<Operation<std::int64_t>, std::int64_t, std::int64_t, std::int64_t>;
    default:
      return nullptr;
  }
}

template <template <class> class Operation>
Handler select_signed_unary(Type type) {
  switch (type) {
    case Type::s16:
      return &lanewise<Operation<std::int16_t>, std::int16_t, std::int16_t>;
    case Type::s32:
      return &lanewise<Operation<std::int32_t>, std::int32_t, std::int32_t>;
    case Type::s64:
      return &lanewise<Operation<std::int64_t>, std::int64_t, std::int64_t>;
    default:
      return nullptr;
  }
}

template <template <class> class Operation, class Target32, class Target64>
Handler select_bits_unary(Type type) {
  return type == Type::b32 ? &lanewise<Operation<std::uint32_t>, Target32, std::uint32_t>
                           : &lanewise<Operation<std::uint64_t>, Target64, std::uint64_t>;
}

}  // namespace

template <>
Handler select<Op::add_int>(const Form& form) {
  if (!form.modifiers.is_sat) return select_binary<Add>(form.modifiers.type);
  if (form.modifiers.type != Type::s32) return nullptr;
  return &lanewise<AddSaturated, std::int32_t, std::int32_t, std::int32_t>;
}
template <>
Handler select<Op::sub_int>(const Form& form) {
  if (!form.modifiers.is_sat) return select_binary<Subtract>(form.modifiers.type);
  if (form.modifiers.type != Type::s32) return nullptr;
  return &lanewise<SubtractSaturated, std::int32_t, std::int32_t, std::int32_t>;
}
template <>
Handler select<Op::mul_lo>(const Form& form) {
  return select_binary<Multiply>(form.modifiers.type);
}
template <>
Handler select<Op::mul_hi>(const Form& form) {
  return select_binary<MultiplyHigh>(form.modifiers.type);
}
template <>
Handler select<Op::mul_wide>(const Form& form) {
  switch (form.modifiers.type) {
    case Type::u16:
      return &lanewise<MultiplyWide<std::uint16_t>, std::uint32_t, std::uint16_t, std::uint16_t>;
    case Type::s16:
      return &lanewise<MultiplyWide<std::int16_t>, std::int32_t, std::int16_t, std::int16_t>;
    case Type::u32:
      return &lanewise<MultiplyWide<std::uint32_t>, std::uint64_t, std::uint32_t, std::uint32_t>;
    default:
      return &lanewise<MultiplyWide<std::int32_t>, std::int64_t, std::int32_t, std::int32_t>;
  }
}
template <>
Handler select<Op::mad_lo>(const Form& form) {
  switch (form.modifiers.type) {
    case Type::u16:
    case Type::s16:  // The low half of a product does not depend on signs.
      return &lanewise<MultiplyAdd<std::uint16_t>, std::uint16_t, std::uint16_t, std::uint16_t,
                       std::uint16_t>;
    case Type::u32:
    case Type::s32:
      return &lanewise<MultiplyAdd<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t,
                       std::uint32_t>;
    default:
      return &lanewise<MultiplyAdd<std::uint64_t>, std::uint64_t, std::uint64_t, std::uint64_t,
                       std::uint64_t>;
  }
}
template <>
Handler select<Op::mad_wide>(const Form& form) {
  switch (form.modifiers.type) {
    case Type::u16:
      return &lanewise<MultiplyAddWide<std::uint16_t>, std::uint32_t, std::uint16_t, std::uint16_t,
                       std::uint32_t>;
    case Type::s16:
      return &lanewise<MultiplyAddWide<std::int16_t>, std::int32_t, std::int16_t, std::int16_t,
                       std::int32_t>;
    case Type::u32:
      return &lanewise<MultiplyAddWide<std::uint32_t>, std::uint64_t, std::uint32_t, std::uint32_t,
                       std::uint64_t>;
    default:
      return &lanewise<MultiplyAddWide<std::int32_t>, std::int64_t, std::int32_t, std::int32_t,
                       std::int64_t>;
  }
}
template <>
Handler select<Op::div_int>(const Form& form) {
  return select_binary<Divide>(form.modifiers.type);
}
template <>
Handler select<Op::rem_int>(const Form& form) {
  return select_binary<Remainder>(form.modifiers.type);
}
template <>
Handler select<Op::abs_int>(const Form& form) {
  return select_signed_unary<Absolute>(form.modifiers.type);
}
template <>
Handler select<Op::neg_int>(const Form& form) {
  return select_signed_unary<Negate>(form.modifiers.type);
}
template <>
Handler select<Op::min_int>(const Form& form) {
  return select_binary<Minimum>(form.modifiers.type);
}
template <>
Handler select<Op::max_int>(const Form& form) {
  return select_binary<Maximum>(form.modifiers.type);
}
template <>
Handler select<Op::popc>(const Form& form) {
  return select_bits_unary<PopulationCount, std::uint32_t, std::uint32_t>(form.modifiers.type);
}
template <>
Handler select<Op::clz>(const Form& form) {
  return select_bits_unary<CountLeadingZeros, std::uint32_t, std::uint32_t>(form.modifiers.type);
}
template <>
Handler select<Op::brev>(const Form& form) {
  return select_bits_unary<ReverseBits, std::uint32_t, std::uint64_t>(form.modifiers.type);
}
template <>
Handler select<Op::bfe>(const Form& form) {
  switch (form.modifiers.type) {
    case Type::u32:
      return &lanewise<ExtractBits<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t,
                       std::uint32_t>;
    case Type::u64:
      return &lanewise<ExtractBits<std::uint64_t>, std::uint64_t, std::uint64_t, std::uint32_t,
                       std::uint32_t>;
    case Type::s32:
      return &lanewise<ExtractBits<std::int32_t>, std::int32_t, std::int32_t, std::uint32_t,
                       std::uint32_t>;
    default:
      return &lanewise<ExtractBits<std::int64_t>, std::int64_t, std::int64_t, std::uint32_t,
                       std::uint32_t>;
  }
}
template <>
Handler select<Op::bfi>(const Form& form) {
  if (form.modifiers.type == Type::b32) {
    return &lanewise<InsertBits<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t,
                     std::uint32_t, std::uint32_t>;
  }
  return &lanewise<InsertBits<std::uint64_t>, std::uint64_t, std::uint64_t, std::uint64_t,
                   std::uint32_t, std::uint32_t>;
}

}  // namespace cpverify::sim
