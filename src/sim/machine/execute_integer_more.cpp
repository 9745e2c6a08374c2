#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/wide_product.hpp"

/// Integer instructions that compilers use seldom: 24-bit products, dot products, searches for
/// bits.
namespace cpverify::sim {
namespace {

constexpr std::uint32_t kAllOnes = 0xffffffffU;

template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// The 48-bit product of the low 24 bits, which are sign-extended for signed types.
template <class T>
auto product24(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    const auto low = [](T value) {
      return static_cast<std::int32_t>(static_cast<std::uint32_t>(value) << 8) >> 8;
    };
    return std::int64_t{low(a)} * low(b);
  } else {
    return std::uint64_t{a & 0xffffffU} * (b & 0xffffffU);
  }
}
template <class T>
struct Multiply24Low {
  static T apply(T a, T b) { return static_cast<T>(product24(a, b)); }
};
/// Bits 16 to 47 of the product.
template <class T>
struct Multiply24High {
  static T apply(T a, T b) { return static_cast<T>(product24(a, b) >> 16); }
};
template <template <class> class Product, class T>
struct PlusC {
  static T apply(T a, T b, T c) {
    return static_cast<T>(static_cast<Unsigned<T>>(Product<T>::apply(a, b)) +
                          static_cast<Unsigned<T>>(c));
  }
};
std::int32_t clamp32(std::int64_t value) {
  using Limits = std::numeric_limits<std::int32_t>;
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(value, Limits::min(), Limits::max()));
}
struct MultiplyAdd24HighSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return clamp32(std::int64_t{Multiply24High<std::int32_t>::apply(a, b)} + c);
  }
};

template <class T>
struct MultiplyAddHigh {
  static T apply(T a, T b, T c) {
    const auto sum = static_cast<std::uint64_t>(high_product(a, b)) + static_cast<std::uint64_t>(c);
    return static_cast<T>(sum);
  }
};
struct MultiplyAddHighSaturated {
  static std::int32_t apply(std::int32_t a, std::int32_t b, std::int32_t c) {
    return clamp32(std::int64_t{high_product(a, b)} + c);
  }
};

/// c + |a - b|, which wraps.
template <class T>
struct SumOfDifference {
  static T apply(T a, T b, T c) {
    using Word = std::conditional_t<sizeof(T) < 4, std::uint32_t, Unsigned<T>>;
    const auto x = static_cast<Word>(a);
    const auto y = static_cast<Word>(b);
    return static_cast<T>(static_cast<Word>(c) + (a > b ? x - y : y - x));
  }
};

/// Sum of the products of the four bytes, plus c; wraps. A and B are bytes of their own signs.
template <class A, class B>
struct DotProduct4 {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
    std::uint32_t sum = c;
    for (std::uint32_t i = 0; i < 32; i += 8) {
      const std::int32_t x{static_cast<A>(a >> i)};
      const std::int32_t y{static_cast<B>(b >> i)};
      sum += static_cast<std::uint32_t>(x * y);
    }
    return sum;
  }
};

/// The place of the highest 1, or for a negative number of the highest 0; all ones when there is
/// none. With .shiftamt the left shift that would bring it to the top.
template <class T, bool is_shift_amount>
struct FindBit {
  static std::uint32_t apply(T a) {
    using U = Unsigned<T>;
    auto bits = static_cast<U>(a);
    if (std::is_signed_v<T> && a < 0) bits = static_cast<U>(~bits);
    if (bits == 0) return kAllOnes;
    const auto leading = static_cast<std::uint32_t>(std::countl_zero(bits));
    return is_shift_amount ? leading : static_cast<std::uint32_t>(8 * sizeof(T)) - 1 - leading;
  }
};

/// The n-th set bit of `mask` from bit `base` on, upwards for n > 0 and downwards for n < 0, the
/// base counting; for n = 0 the base itself if it is set. All ones when there is none. Bases beyond
/// 31 are undefined and find nothing. Source: PTX ISA, fns, its pseudocode.
struct FindNthSet {
  static std::uint32_t apply(std::uint32_t mask, std::uint32_t base, std::int32_t n) {
    if (base > 31) return kAllOnes;
    if (n == 0) return ((mask >> base) & 1U) != 0 ? base : kAllOnes;
    std::int64_t left = n > 0 ? std::int64_t{n} : -std::int64_t{n};
    const std::int32_t step = n > 0 ? 1 : -1;
    for (auto at = static_cast<std::int32_t>(base); at >= 0 && at < 32; at += step) {
      if (((mask >> at) & 1U) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
    }
    return kAllOnes;
  }
};

/// b ones from bit a on. .clamp takes what is beyond 32 as 32, .wrap takes both modulo 32.
template <bool is_wrapped>
struct BitMask {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    const std::uint32_t first = is_wrapped ? a & 31U : std::min(a, 32U);
    const std::uint32_t count = is_wrapped ? b & 31U : std::min(b, 32U);
    const std::uint64_t ones = (1ULL << count) - 1;
    return static_cast<std::uint32_t>(ones << first);
  }
};

/// The low b bits of a, extended to 32 with zeros or with their sign; b as in BitMask.
template <class T, bool is_wrapped>
struct Extend {
  static T apply(T a, std::uint32_t b) {
    const std::uint32_t count = is_wrapped ? b & 31U : std::min(b, 32U);
    if (count == 0) return 0;
    const std::uint32_t shift = 32 - count;
    return static_cast<T>(static_cast<T>(static_cast<std::uint32_t>(a) << shift) >> shift);
  }
};

template <template <class> class Operation>
Handler select_ternary(Type type) {
  switch (type) {
    case Type::u16:
      return &lanewise<Operation<std::uint16_t>, std::uint16_t, std::uint16_t, std::uint16_t,
                       std::uint16_t>;
    case Type::u32:
      return &lanewise<Operation<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t,
                       std::uint32_t>;
    case Type::u64:
      return &lanewise<Operation<std::uint64_t>, std::uint64_t, std::uint64_t, std::uint64_t,
                       std::uint64_t>;
    case Type::s16:
      return &lanewise<Operation<std::int16_t>, std::int16_t, std::int16_t, std::int16_t,
                       std::int16_t>;
    case Type::s32:
      return &lanewise<Operation<std::int32_t>, std::int32_t, std::int32_t, std::int32_t,
                       std::int32_t>;
    case Type::s64:
      return &lanewise<Operation<std::int64_t>, std::int64_t, std::int64_t, std::int64_t,
                       std::int64_t>;
    default:
      return nullptr;
  }
}

template <template <class> class Product>
Handler select_product(Type type) {
  return type == Type::u32
             ? &lanewise<Product<std::uint32_t>, std::uint32_t, std::uint32_t, std::uint32_t>
             : &lanewise<Product<std::int32_t>, std::int32_t, std::int32_t, std::int32_t>;
}
template <template <class> class Product>
Handler select_product_sum(Type type) {
  return type == Type::u32 ? &lanewise<PlusC<Product, std::uint32_t>, std::uint32_t, std::uint32_t,
                                       std::uint32_t, std::uint32_t>
                           : &lanewise<PlusC<Product, std::int32_t>, std::int32_t, std::int32_t,
                                       std::int32_t, std::int32_t>;
}

template <class A, class B>
Handler dot_product() {
  return &lanewise<DotProduct4<A, B>, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
}

template <bool is_shift_amount>
Handler select_find(Type type) {
  switch (type) {
    case Type::u32:
      return &lanewise<FindBit<std::uint32_t, is_shift_amount>, std::uint32_t, std::uint32_t>;
    case Type::s32:
      return &lanewise<FindBit<std::int32_t, is_shift_amount>, std::uint32_t, std::int32_t>;
    case Type::u64:
      return &lanewise<FindBit<std::uint64_t, is_shift_amount>, std::uint32_t, std::uint64_t>;
    default:
      return &lanewise<FindBit<std::int64_t, is_shift_amount>, std::uint32_t, std::int64_t>;
  }
}

template <bool is_wrapped>
Handler select_extend(Type type) {
  return type == Type::u32 ? &lanewise<Extend<std::uint32_t, is_wrapped>, std::uint32_t,
                                       std::uint32_t, std::uint32_t>
                           : &lanewise<Extend<std::int32_t, is_wrapped>, std::int32_t, std::int32_t,
                                       std::uint32_t>;
}

}  // namespace

template <>
Handler select<Op::mad_hi>(const Form& form) {
  if (!form.modifiers.is_sat) return select_ternary<MultiplyAddHigh>(form.modifiers.type);
  if (form.modifiers.type != Type::s32) return nullptr;
  return &lanewise<MultiplyAddHighSaturated, std::int32_t, std::int32_t, std::int32_t,
                   std::int32_t>;
}
template <>
Handler select<Op::mul24_lo>(const Form& form) {
  return select_product<Multiply24Low>(form.modifiers.type);
}
template <>
Handler select<Op::mul24_hi>(const Form& form) {
  return select_product<Multiply24High>(form.modifiers.type);
}
template <>
Handler select<Op::mad24_lo>(const Form& form) {
  return select_product_sum<Multiply24Low>(form.modifiers.type);
}
template <>
Handler select<Op::mad24_hi>(const Form& form) {
  if (!form.modifiers.is_sat) return select_product_sum<Multiply24High>(form.modifiers.type);
  if (form.modifiers.type != Type::s32) return nullptr;
  return &lanewise<MultiplyAdd24HighSaturated, std::int32_t, std::int32_t, std::int32_t,
                   std::int32_t>;
}
template <>
Handler select<Op::sad>(const Form& form) {
  return select_ternary<SumOfDifference>(form.modifiers.type);
}
template <>
Handler select<Op::dp4a>(const Form& form) {
  const bool is_a_signed = form.modifiers.type == Type::s32;
  if (form.modifiers.atype == Type::s32) {
    return is_a_signed ? dot_product<std::int8_t, std::int8_t>()
                       : dot_product<std::uint8_t, std::int8_t>();
  }
  if (form.modifiers.atype != Type::u32) return nullptr;
  return is_a_signed ? dot_product<std::int8_t, std::uint8_t>()
                     : dot_product<std::uint8_t, std::uint8_t>();
}
template <>
Handler select<Op::bfind>(const Form& form) {
  return form.modifiers.is_shift_amount ? select_find<true>(form.modifiers.type)
                                        : select_find<false>(form.modifiers.type);
}
template <>
Handler select<Op::fns>(const Form& /*form*/) {
  return &lanewise<FindNthSet, std::uint32_t, std::uint32_t, std::uint32_t, std::int32_t>;
}
template <>
Handler select<Op::bmsk>(const Form& form) {
  return form.modifiers.is_wrapped
             ? &lanewise<BitMask<true>, std::uint32_t, std::uint32_t, std::uint32_t>
             : &lanewise<BitMask<false>, std::uint32_t, std::uint32_t, std::uint32_t>;
}
template <>
Handler select<Op::szext>(const Form& form) {
  return form.modifiers.is_wrapped ? select_extend<true>(form.modifiers.type)
                                   : select_extend<false>(form.modifiers.type);
}

}  // namespace cpverify::sim
