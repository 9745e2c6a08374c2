#include <array>
#include <cstddef>
#include <cstdint>

#include "numerics/float16.hpp"
#include "numerics/float64.hpp"
#include "numerics/odd_rounding.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// setp of f64, f16, bf16 and pairs of the last two. All of them compare as doubles.
namespace cpverify::sim {
namespace {

using Values = std::array<double, kLanes>;

bool compares(Compare compare, double a, double b) {
  const bool is_unordered = numerics::is_nan_bits64(numerics::to_bits64(a)) ||
                            numerics::is_nan_bits64(numerics::to_bits64(b));
  switch (compare) {
    case Compare::eq:
      return a == b;
    case Compare::ne:
      return a < b || a > b;
    case Compare::lt:
      return a < b;
    case Compare::le:
      return a <= b;
    case Compare::gt:
      return a > b;
    case Compare::ge:
      return a >= b;
    case Compare::equ:
      return a == b || is_unordered;
    case Compare::neu:
      return a < b || a > b || is_unordered;
    case Compare::ltu:
      return a < b || is_unordered;
    case Compare::leu:
      return a <= b || is_unordered;
    case Compare::gtu:
      return a > b || is_unordered;
    case Compare::geu:
      return a >= b || is_unordered;
    case Compare::num:
      return !is_unordered;
    case Compare::nan:
      return is_unordered;
    default:  // lo, ls, hi and hs are of integers.
      return false;
  }
}

std::uint32_t compare_all(const Insn* insn, const Values& a, const Values& b) {
  const auto compare = static_cast<Compare>((insn->immediate >> kComparePosition) & 0xff);
  std::uint32_t bits = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    bits |= static_cast<std::uint32_t>(compares(compare, a[lane], b[lane])) << lane;
  }
  return bits;
}

/// Writes p and q, each combined with the predicate c when there is one.
template <bool has_bool>
const Insn* write_both(Warp& warp, const Insn* insn, std::uint32_t mask,
                       const std::array<std::uint32_t, 2>& bits) {
  std::array<std::uint32_t, 2> values = bits;
  if constexpr (has_bool) {
    const auto op = static_cast<BoolOp>(insn->immediate & kBoolOpMask);
    const std::uint32_t other = warp.predicate(insn->r[4]);
    values = {combine(op, bits[0], other), combine(op, bits[1], other)};
  }
  write_predicate(warp.predicate(insn->r[1]), values[1], mask);
  write_predicate(warp.predicate(insn->r[0]), values[0], mask);
  return insn + 1;
}

struct FromF64 {
  using Word = double;
  static double widen(double value, bool /*is_ftz*/) { return value; }
};
struct FromF16 {
  using Word = std::uint16_t;
  static double widen(std::uint16_t bits, bool is_ftz) {
    const bool is_flushed = is_ftz && (bits & 0x7c00U) == 0;
    return is_flushed ? 0.0 : static_cast<double>(numerics::f16_to_f32(bits));
  }
};
struct FromBf16 {
  using Word = std::uint16_t;
  static double widen(std::uint16_t bits, bool /*is_ftz*/) {
    return static_cast<double>(numerics::bf16_to_f32(bits));
  }
};

/// q is the opposite of p.
template <class Format, bool has_bool>
const Insn* set_predicate(Warp& warp, const Insn* insn, std::uint32_t mask) {
  using Word = typename Format::Word;
  const Word* const a = warp.row<const Word>(insn->r[2]);
  const Word* const b = warp.row<const Word>(insn->r[3]);
  const bool is_ftz = (insn->immediate & kCompareFlushes) != 0;
  Values wide_a{};
  Values wide_b{};
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    wide_a[lane] = Format::widen(a[lane], is_ftz);
    wide_b[lane] = Format::widen(b[lane], is_ftz);
  }
  const std::uint32_t bits = compare_all(insn, wide_a, wide_b);
  return write_both<has_bool>(warp, insn, mask, {bits, ~bits});
}

/// p compares the lower halves, q the upper ones.
template <class Format, bool has_bool>
const Insn* set_pair(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto* const a = warp.row<const std::uint32_t>(insn->r[2]);
  const auto* const b = warp.row<const std::uint32_t>(insn->r[3]);
  const bool is_ftz = (insn->immediate & kCompareFlushes) != 0;
  std::array<std::uint32_t, 2> bits{};
  for (std::size_t half = 0; half < 2; ++half) {
    Values wide_a{};
    Values wide_b{};
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      wide_a[lane] = Format::widen(static_cast<std::uint16_t>(a[lane] >> (16 * half)), is_ftz);
      wide_b[lane] = Format::widen(static_cast<std::uint16_t>(b[lane] >> (16 * half)), is_ftz);
    }
    bits[half] = compare_all(insn, wide_a, wide_b);
  }
  return write_both<has_bool>(warp, insn, mask, bits);
}

template <bool has_bool>
Handler select_half(const Modifiers& modifiers) {
  if (modifiers.type == Type::f16) return &set_predicate<FromF16, has_bool>;
  return modifiers.is_ftz ? nullptr : &set_predicate<FromBf16, has_bool>;
}
template <bool has_bool>
Handler select_pair(const Modifiers& modifiers) {
  if (modifiers.type == Type::f16x2) return &set_pair<FromF16, has_bool>;
  return modifiers.is_ftz ? nullptr : &set_pair<FromBf16, has_bool>;
}

}  // namespace

template <>
Handler select<Op::setp_f64>(const Form& /*form*/) {
  return &set_predicate<FromF64, false>;
}
template <>
Handler select<Op::setp_f64_bool>(const Form& /*form*/) {
  return &set_predicate<FromF64, true>;
}
template <>
Handler select<Op::setp_half>(const Form& form) {
  return select_half<false>(form.modifiers);
}
template <>
Handler select<Op::setp_half_bool>(const Form& form) {
  return select_half<true>(form.modifiers);
}
template <>
Handler select<Op::setp_half2>(const Form& form) {
  return select_pair<false>(form.modifiers);
}
template <>
Handler select<Op::setp_half2_bool>(const Form& form) {
  return select_pair<true>(form.modifiers);
}

}  // namespace cpverify::sim
