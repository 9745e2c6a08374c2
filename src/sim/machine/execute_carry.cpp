#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/wide_product.hpp"

/// Arithmetic on numbers of several words: the carry flag of the manual is a predicate register
/// that the decoder adds as the last operand. Signs do not matter but for the upper half of a
/// product.
namespace cpverify::sim {
namespace {

/// A word and what does not fit into it.
template <class T>
struct Digit {
  T value;
  bool carry;
};

template <class T>
struct Sum {
  static Digit<T> apply(T a, T b, bool carry) {
    const T sum = static_cast<T>(a + b);
    const T all = static_cast<T>(sum + (carry ? 1U : 0U));
    return {all, sum < a || all < sum};
  }
};
/// The carry is a borrow.
template <class T>
struct Difference {
  static Digit<T> apply(T a, T b, bool borrow) {
    const T difference = static_cast<T>(a - b);
    return {static_cast<T>(difference - (borrow ? 1U : 0U)), a < b || (borrow && difference == 0)};
  }
};
template <class T>
struct LowProduct {
  static T apply(T a, T b) { return static_cast<T>(a * b); }
};
template <class T>
struct HighProduct {
  static T apply(T a, T b) { return high_product(a, b); }
};
/// Of words that stand for signed ones.
template <class T>
struct SignedHighProduct {
  static T apply(T a, T b) {
    using Signed = std::make_signed_t<T>;
    return static_cast<T>(high_product(static_cast<Signed>(a), static_cast<Signed>(b)));
  }
};

/// d, a, b and the carry.
template <class Operation, class T, bool has_in, bool has_out>
const Insn* chain(Warp& warp, const Insn* insn, std::uint32_t mask) {
  T* const d = warp.row<T>(insn->r[0]);
  const T* const a = warp.row<const T>(insn->r[1]);
  const T* const b = warp.row<const T>(insn->r[2]);
  std::uint32_t& carry = warp.predicate(insn->r[3]);
  std::uint32_t out = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    const Digit<T> digit = Operation::apply(a[lane], b[lane], has_in && (carry >> lane & 1U) != 0);
    d[lane] = digit.value;
    out |= static_cast<std::uint32_t>(digit.carry) << lane;
  }
  if (has_out) write_predicate(carry, out, mask);
  return insn + 1;
}

/// d, a, b, c and the carry: half of a * b, plus c.
template <class Product, class T, bool has_in, bool has_out>
const Insn* product_chain(Warp& warp, const Insn* insn, std::uint32_t mask) {
  T* const d = warp.row<T>(insn->r[0]);
  const T* const a = warp.row<const T>(insn->r[1]);
  const T* const b = warp.row<const T>(insn->r[2]);
  const T* const c = warp.row<const T>(insn->r[3]);
  std::uint32_t& carry = warp.predicate(insn->r[4]);
  std::uint32_t out = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    const Digit<T> digit = Sum<T>::apply(Product::apply(a[lane], b[lane]), c[lane],
                                         has_in && (carry >> lane & 1U) != 0);
    d[lane] = digit.value;
    out |= static_cast<std::uint32_t>(digit.carry) << lane;
  }
  if (has_out) write_predicate(carry, out, mask);
  return insn + 1;
}

template <template <class> class Operation, bool has_in, bool has_out>
Handler select_chain(Type type) {
  return size_bytes(type) == 4 ? &chain<Operation<std::uint32_t>, std::uint32_t, has_in, has_out>
                               : &chain<Operation<std::uint64_t>, std::uint64_t, has_in, has_out>;
}
template <template <class> class Product, bool has_in, bool has_out>
Handler select_product_chain(Type type) {
  return size_bytes(type) == 4
             ? &product_chain<Product<std::uint32_t>, std::uint32_t, has_in, has_out>
             : &product_chain<Product<std::uint64_t>, std::uint64_t, has_in, has_out>;
}
template <bool has_in, bool has_out>
Handler select_high_chain(Type type) {
  return is_signed(type) ? select_product_chain<SignedHighProduct, has_in, has_out>(type)
                         : select_product_chain<HighProduct, has_in, has_out>(type);
}

}  // namespace

template <>
Handler select<Op::add_cc>(const Form& form) {
  return select_chain<Sum, false, true>(form.modifiers.type);
}
template <>
Handler select<Op::addc>(const Form& form) {
  return select_chain<Sum, true, false>(form.modifiers.type);
}
template <>
Handler select<Op::addc_cc>(const Form& form) {
  return select_chain<Sum, true, true>(form.modifiers.type);
}
template <>
Handler select<Op::sub_cc>(const Form& form) {
  return select_chain<Difference, false, true>(form.modifiers.type);
}
template <>
Handler select<Op::subc>(const Form& form) {
  return select_chain<Difference, true, false>(form.modifiers.type);
}
template <>
Handler select<Op::subc_cc>(const Form& form) {
  return select_chain<Difference, true, true>(form.modifiers.type);
}
template <>
Handler select<Op::mad_lo_cc>(const Form& form) {
  return select_product_chain<LowProduct, false, true>(form.modifiers.type);
}
template <>
Handler select<Op::mad_hi_cc>(const Form& form) {
  return select_high_chain<false, true>(form.modifiers.type);
}
template <>
Handler select<Op::madc_lo>(const Form& form) {
  return select_product_chain<LowProduct, true, false>(form.modifiers.type);
}
template <>
Handler select<Op::madc_lo_cc>(const Form& form) {
  return select_product_chain<LowProduct, true, true>(form.modifiers.type);
}
template <>
Handler select<Op::madc_hi>(const Form& form) {
  return select_high_chain<true, false>(form.modifiers.type);
}
template <>
Handler select<Op::madc_hi_cc>(const Form& form) {
  return select_high_chain<true, true>(form.modifiers.type);
}

}  // namespace cpverify::sim
