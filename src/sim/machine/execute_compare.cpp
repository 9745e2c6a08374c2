#include <cstdint>

#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// setp and selp.
namespace cpverify::sim {
namespace {

struct Equal {
  template <class T>
  static bool apply(T a, T b) {
    return a == b;
  }
};
struct NotEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a != b;
  }
};
struct Less {
  template <class T>
  static bool apply(T a, T b) {
    return a < b;
  }
};
struct LessEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  static bool apply(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual {
  template <class T>
  static bool apply(T a, T b) {
    return a >= b;
  }
};
/// True when a number is missing; the plain comparisons are then false, and ne is too in PTX.
struct IsUnordered {
  static bool apply(float a, float b) {
    return numerics::is_nan_bits(numerics::to_bits(a)) ||
           numerics::is_nan_bits(numerics::to_bits(b));
  }
};
struct IsOrdered {
  static bool apply(float a, float b) { return !IsUnordered::apply(a, b); }
};
struct OrderedNotEqual {
  static bool apply(float a, float b) { return a < b || a > b; }
};
template <class Ordered>
struct OrUnordered {
  static bool apply(float a, float b) { return Ordered::apply(a, b) || IsUnordered::apply(a, b); }
};
template <class Operation>
struct Flushed {
  static bool apply(float a, float b) {
    return Operation::apply(numerics::flush_subnormal(a), numerics::flush_subnormal(b));
  }
};

/// p|q, a, b: p is the comparison and q its opposite.
template <class Operation, class T>
const Insn* set_predicate(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t bits =
      compare_lanes<Operation, T>(warp.row<const T>(insn->r[2]), warp.row<const T>(insn->r[3]));
  write_predicate(warp.predicate(insn->r[1]), ~bits, mask);
  write_predicate(warp.predicate(insn->r[0]), bits, mask);
  return insn + 1;
}

/// p|q, a, b, c: both combined with the predicate c.
template <class Operation, class T>
const Insn* set_predicate_bool(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::uint32_t bits =
      compare_lanes<Operation, T>(warp.row<const T>(insn->r[2]), warp.row<const T>(insn->r[3]));
  const std::uint32_t other = warp.predicate(insn->r[4]);
  const auto op = static_cast<BoolOp>(insn->immediate & kBoolOpMask);
  write_predicate(warp.predicate(insn->r[1]), combine(op, ~bits, other), mask);
  write_predicate(warp.predicate(insn->r[0]), combine(op, bits, other), mask);
  return insn + 1;
}

template <class Operation, class T>
Handler choose(bool has_bool) {
  return has_bool ? &set_predicate_bool<Operation, T> : &set_predicate<Operation, T>;
}

template <class T>
Handler select_ordered(Compare compare, bool has_bool) {
  switch (compare) {
    case Compare::eq:
      return choose<Equal, T>(has_bool);
    case Compare::ne:
      return choose<NotEqual, T>(has_bool);
    case Compare::lt:
      return choose<Less, T>(has_bool);
    case Compare::le:
      return choose<LessEqual, T>(has_bool);
    case Compare::gt:
      return choose<Greater, T>(has_bool);
    case Compare::ge:
      return choose<GreaterEqual, T>(has_bool);
    default:
      return nullptr;
  }
}

/// lo, ls, hi and hs are lt, le, gt and ge of unsigned types.
Compare signed_spelling(Compare compare) {
  switch (compare) {
    case Compare::lo:
      return Compare::lt;
    case Compare::ls:
      return Compare::le;
    case Compare::hi:
      return Compare::gt;
    case Compare::hs:
      return Compare::ge;
    default:
      return compare;
  }
}

Handler select_integer(const Modifiers& modifiers, bool has_bool) {
  const Compare compare = modifiers.compare;
  const bool is_equality = compare == Compare::eq || compare == Compare::ne;
  const bool is_unsigned_spelling = signed_spelling(compare) != compare;
  switch (modifiers.type) {
    case Type::b16:
      return is_equality ? select_ordered<std::uint16_t>(compare, has_bool) : nullptr;
    case Type::b32:
      return is_equality ? select_ordered<std::uint32_t>(compare, has_bool) : nullptr;
    case Type::b64:
      return is_equality ? select_ordered<std::uint64_t>(compare, has_bool) : nullptr;
    case Type::u16:
      return select_ordered<std::uint16_t>(signed_spelling(compare), has_bool);
    case Type::u32:
      return select_ordered<std::uint32_t>(signed_spelling(compare), has_bool);
    case Type::u64:
      return select_ordered<std::uint64_t>(signed_spelling(compare), has_bool);
    case Type::s16:
      return is_unsigned_spelling ? nullptr : select_ordered<std::int16_t>(compare, has_bool);
    case Type::s32:
      return is_unsigned_spelling ? nullptr : select_ordered<std::int32_t>(compare, has_bool);
    case Type::s64:
      return is_unsigned_spelling ? nullptr : select_ordered<std::int64_t>(compare, has_bool);
    default:
      return nullptr;
  }
}

template <class Operation>
Handler choose_flushed(const Modifiers& modifiers, bool has_bool) {
  return modifiers.is_ftz ? choose<Flushed<Operation>, float>(has_bool)
                          : choose<Operation, float>(has_bool);
}

Handler select_float(const Modifiers& modifiers, bool has_bool) {
  switch (modifiers.compare) {
    case Compare::eq:
      return choose_flushed<Equal>(modifiers, has_bool);
    case Compare::ne:
      return choose_flushed<OrderedNotEqual>(modifiers, has_bool);
    case Compare::lt:
      return choose_flushed<Less>(modifiers, has_bool);
    case Compare::le:
      return choose_flushed<LessEqual>(modifiers, has_bool);
    case Compare::gt:
      return choose_flushed<Greater>(modifiers, has_bool);
    case Compare::ge:
      return choose_flushed<GreaterEqual>(modifiers, has_bool);
    case Compare::equ:
      return choose_flushed<OrUnordered<Equal>>(modifiers, has_bool);
    case Compare::neu:
      return choose_flushed<NotEqual>(modifiers, has_bool);
    case Compare::ltu:
      return choose_flushed<OrUnordered<Less>>(modifiers, has_bool);
    case Compare::leu:
      return choose_flushed<OrUnordered<LessEqual>>(modifiers, has_bool);
    case Compare::gtu:
      return choose_flushed<OrUnordered<Greater>>(modifiers, has_bool);
    case Compare::geu:
      return choose_flushed<OrUnordered<GreaterEqual>>(modifiers, has_bool);
    case Compare::num:
      return choose_flushed<IsOrdered>(modifiers, has_bool);
    case Compare::nan:
      return choose_flushed<IsUnordered>(modifiers, has_bool);
    default:
      return nullptr;
  }
}

template <class T>
const Insn* select_by_predicate(Warp& warp, const Insn* insn, std::uint32_t mask) {
  T* __restrict target = warp.row<T>(insn->r[0]);
  const T* __restrict a = warp.row<const T>(insn->r[1]);
  const T* __restrict b = warp.row<const T>(insn->r[2]);
  const std::uint32_t chooses_a = warp.predicate(insn->r[3]);
  if (mask == kFullMask) [[likely]] {
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      target[lane] = ((chooses_a >> lane) & 1U) != 0 ? a[lane] : b[lane];
    }
    return insn + 1;
  }
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const T value = ((chooses_a >> lane) & 1U) != 0 ? a[lane] : b[lane];
    target[lane] = ((mask >> lane) & 1U) != 0 ? value : target[lane];
  }
  return insn + 1;
}

}  // namespace

template <>
Handler select<Op::setp_int>(const Form& form) {
  return select_integer(form.modifiers, false);
}
template <>
Handler select<Op::setp_int_bool>(const Form& form) {
  return select_integer(form.modifiers, true);
}
template <>
Handler select<Op::setp_f32>(const Form& form) {
  return select_float(form.modifiers, false);
}
template <>
Handler select<Op::setp_f32_bool>(const Form& form) {
  return select_float(form.modifiers, true);
}
template <>
Handler select<Op::selp>(const Form& form) {
  switch (size_bytes(form.modifiers.type)) {
    case 2:
      return &select_by_predicate<std::uint16_t>;
    case 4:
      return &select_by_predicate<std::uint32_t>;
    default:
      return &select_by_predicate<std::uint64_t>;
  }
}

}  // namespace cpverify::sim
