#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cpverify/observer.hpp"
#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/float64.hpp"
#include "numerics/half_arithmetic.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// atom and red: read, combine, write, one lane after the other in lane order.
namespace cpverify::sim {
namespace {

float sum(float a, float b) {
  return numerics::canonical(a + b);
}
double sum(double a, double b) {
  return numerics::canonical(a + b);
}
/// Halves, alone or in pairs, are words of their own so that an operation knows what they hold.
template <class Format>
struct Half {
  std::uint16_t bits;
};
template <class Format>
struct HalfPair {
  std::uint32_t bits;
};
template <class Format>
Half<Format> sum(Half<Format> a, Half<Format> b) {
  return {numerics::half_add<Format>(a.bits, b.bits)};
}
/// The manual promises atomicity of each half only; ours is of both.
template <class Format>
HalfPair<Format> sum(HalfPair<Format> a, HalfPair<Format> b) {
  const auto add = [&](std::uint32_t shift) {
    return numerics::half_add<Format>(static_cast<std::uint16_t>(a.bits >> shift),
                                      static_cast<std::uint16_t>(b.bits >> shift));
  };
  return {numerics::pack_halves(add(16), add(0))};
}
/// Wraps.
template <class T>
T sum(T a, T b) {
  using U = std::make_unsigned_t<T>;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}

template <class T, Reduce op>
T combine(T old, T value) {
  if constexpr (op == Reduce::add) return sum(old, value);
  if constexpr (op == Reduce::min) return std::min(old, value);
  if constexpr (op == Reduce::max) return std::max(old, value);
  if constexpr (op == Reduce::and_op) return old & value;
  if constexpr (op == Reduce::or_op) return old | value;
  if constexpr (op == Reduce::xor_op) return old ^ value;
  if constexpr (op == Reduce::inc) return old >= value ? T{0} : old + 1;
  if constexpr (op == Reduce::dec) return old == 0 || old > value ? value : old - 1;
  return value;
}

/// Calls update(lane, old) for each lane in order and stores what it returns.
template <class T, class Update>
bool for_each_access(Warp& warp, const Insn* insn, std::uint32_t mask,
                     const AddressOperand& address, Update update) {
  Access access;
  for (std::uint32_t left = mask; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {address, {AccessKind::atomic, sizeof(T)}}, access)) {
      return false;
    }
    for (std::uint32_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      std::byte* const place = access.bytes->data() + access.offsets[lane];
      T old{};
      std::memcpy(&old, place, sizeof old);
      const T now = update(lane, old);
      std::memcpy(place, &now, sizeof now);
    }
  }
  return true;
}

template <class T, Reduce op, bool has_target>
const Insn* atomic(Warp& warp, const Insn* insn, std::uint32_t mask) {
  constexpr std::size_t kAddress = has_target ? 1 : 0;
  const T* const values = warp.row<const T>(insn->r[kAddress + 1]);
  T* const target = warp.row<T>(insn->r[0]);
  const bool is_good = for_each_access<T>(warp, insn, mask, address_operand(insn, kAddress),
                                          [&](std::size_t lane, T old) {
                                            const T now = combine<T, op>(old, values[lane]);
                                            if constexpr (has_target) target[lane] = old;
                                            return now;
                                          });
  return is_good ? insn + 1 : nullptr;
}

template <class T>
const Insn* compare_and_swap(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const T* const expected = warp.row<const T>(insn->r[2]);
  const T* const values = warp.row<const T>(insn->r[3]);
  T* const target = warp.row<T>(insn->r[0]);
  const bool is_good =
      for_each_access<T>(warp, insn, mask, address_operand(insn, 1), [&](std::size_t lane, T old) {
        const T now = old == expected[lane] ? values[lane] : old;
        target[lane] = old;
        return now;
      });
  return is_good ? insn + 1 : nullptr;
}

template <class T, bool has_target>
Handler select_arithmetic(Reduce op) {
  switch (op) {
    case Reduce::add:
      return &atomic<T, Reduce::add, has_target>;
    case Reduce::min:
      return &atomic<T, Reduce::min, has_target>;
    case Reduce::max:
      return &atomic<T, Reduce::max, has_target>;
    default:
      return nullptr;
  }
}

template <class T, bool has_target>
Handler select_bits(Reduce op) {
  switch (op) {
    case Reduce::and_op:
      return &atomic<T, Reduce::and_op, has_target>;
    case Reduce::or_op:
      return &atomic<T, Reduce::or_op, has_target>;
    case Reduce::xor_op:
      return &atomic<T, Reduce::xor_op, has_target>;
    case Reduce::exch:
      if constexpr (has_target) return &atomic<T, Reduce::exch, true>;
      return nullptr;
    default:
      return nullptr;
  }
}

bool has_atomics(Space space) {
  return space == Space::global || space == Space::shared || space == Space::generic;
}

/// Which operation goes with which type. Source: PTX ISA, atom.
template <bool has_target>
Handler select_atomic(const Form& form) {
  const Reduce op = form.modifiers.reduce;
  if (!has_atomics(form.modifiers.space)) return nullptr;
  switch (form.modifiers.type) {
    case Type::b32:
      return select_bits<std::uint32_t, has_target>(op);
    case Type::b64:
      return select_bits<std::uint64_t, has_target>(op);
    case Type::u32:
      if (op == Reduce::inc) return &atomic<std::uint32_t, Reduce::inc, has_target>;
      if (op == Reduce::dec) return &atomic<std::uint32_t, Reduce::dec, has_target>;
      return select_arithmetic<std::uint32_t, has_target>(op);
    case Type::u64:
      return select_arithmetic<std::uint64_t, has_target>(op);
    case Type::s32:
      return select_arithmetic<std::int32_t, has_target>(op);
    case Type::s64:  // There is no add of .s64; nor do compilers need one.
      return op == Reduce::add ? nullptr : select_arithmetic<std::int64_t, has_target>(op);
    case Type::f32:
      return op == Reduce::add ? &atomic<float, Reduce::add, has_target> : nullptr;
    case Type::f64:
      return op == Reduce::add ? &atomic<double, Reduce::add, has_target> : nullptr;
    default:
      return nullptr;
  }
}

/// .add.noftz of halves: subnormals stay.
template <bool has_target>
Handler select_half(const Form& form) {
  using numerics::BFloat16Format;
  using numerics::Float16Format;
  switch (form.modifiers.type) {
    case Type::f16:
      return &atomic<Half<Float16Format>, Reduce::add, has_target>;
    case Type::bf16:
      return &atomic<Half<BFloat16Format>, Reduce::add, has_target>;
    case Type::f16x2:
      return &atomic<HalfPair<Float16Format>, Reduce::add, has_target>;
    default:
      return &atomic<HalfPair<BFloat16Format>, Reduce::add, has_target>;
  }
}

}  // namespace

template <>
Handler select<Op::atom>(const Form& form) {
  return select_atomic<true>(form);
}
template <>
Handler select<Op::red>(const Form& form) {
  return select_atomic<false>(form);
}
template <>
Handler select<Op::atom_half>(const Form& form) {
  return has_atomics(form.modifiers.space) ? select_half<true>(form) : nullptr;
}
template <>
Handler select<Op::red_half>(const Form& form) {
  return has_atomics(form.modifiers.space) ? select_half<false>(form) : nullptr;
}
template <>
Handler select<Op::atom_cas>(const Form& form) {
  if (!has_atomics(form.modifiers.space)) return nullptr;
  switch (form.modifiers.type) {
    case Type::b16:
      return &compare_and_swap<std::uint16_t>;
    case Type::b32:
      return &compare_and_swap<std::uint32_t>;
    default:
      return &compare_and_swap<std::uint64_t>;
  }
}

}  // namespace cpverify::sim
