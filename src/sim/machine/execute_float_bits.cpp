#include <cstdint>

#include "numerics/float32.hpp"
#include "numerics/odd_rounding.hpp"
#include "numerics/trigonometry.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// testp and copysign, which look at bits, and the approximations of sin, cos and tanh.
namespace cpverify::sim {
namespace {

struct Bits32 {
  using Word = std::uint32_t;
  static constexpr Word kSign = numerics::kSignBit32;
  static constexpr Word kInfinity = numerics::kInfinityBits32;
};
struct Bits64 {
  using Word = std::uint64_t;
  static constexpr Word kSign = numerics::kSignBit64;
  static constexpr Word kInfinity = numerics::kInfinityBits64;
};

/// Zeros count as normal. Source: PTX ISA, testp.
template <class Bits, Test test>
struct Property {
  static bool apply(typename Bits::Word value, typename Bits::Word /*same*/) {
    const auto magnitude = static_cast<typename Bits::Word>(value & ~Bits::kSign);
    switch (test) {
      case Test::finite:
        return magnitude < Bits::kInfinity;
      case Test::infinite:
        return magnitude == Bits::kInfinity;
      case Test::number:
        return magnitude <= Bits::kInfinity;
      case Test::not_a_number:
        return magnitude > Bits::kInfinity;
      case Test::normal:
        return magnitude == 0 ||
               (magnitude < Bits::kInfinity && (magnitude & Bits::kInfinity) != 0);
      case Test::subnormal:
        return magnitude != 0 && (magnitude & Bits::kInfinity) == 0;
    }
    return false;
  }
};

template <class Bits, Test test>
const Insn* test_property(Warp& warp, const Insn* insn, std::uint32_t mask) {
  using Word = typename Bits::Word;
  const Word* const values = warp.row<const Word>(insn->r[1]);
  write_predicate(warp.predicate(insn->r[0]),
                  compare_lanes<Property<Bits, test>, Word>(values, values), mask);
  return insn + 1;
}

template <class Bits>
Handler select_test(Test test) {
  switch (test) {
    case Test::finite:
      return &test_property<Bits, Test::finite>;
    case Test::infinite:
      return &test_property<Bits, Test::infinite>;
    case Test::number:
      return &test_property<Bits, Test::number>;
    case Test::not_a_number:
      return &test_property<Bits, Test::not_a_number>;
    case Test::normal:
      return &test_property<Bits, Test::normal>;
    case Test::subnormal:
      return &test_property<Bits, Test::subnormal>;
  }
  return nullptr;
}

/// The magnitude of b with the sign of a.
template <class Bits>
struct CopySign {
  using Word = typename Bits::Word;
  static Word apply(Word a, Word b) {
    return static_cast<Word>((a & Bits::kSign) | (b & ~Bits::kSign));
  }
};

struct Tanh {
  static float apply(float a) { return numerics::tanh_approx(a); }
};
struct Sine {
  static float apply(float a) { return numerics::sine_approx(a); }
};
struct Cosine {
  static float apply(float a) { return numerics::cosine_approx(a); }
};
template <class Operation>
struct Flushed {
  static float apply(float a) {
    return numerics::flush_subnormal(Operation::apply(numerics::flush_subnormal(a)));
  }
};

template <class Operation>
Handler choose(const Form& form) {
  return form.modifiers.is_ftz ? &lanewise<Flushed<Operation>, float, float>
                               : &lanewise<Operation, float, float>;
}

}  // namespace

template <>
Handler select<Op::testp>(const Form& form) {
  return form.modifiers.type == Type::f32 ? select_test<Bits32>(form.modifiers.test)
                                          : select_test<Bits64>(form.modifiers.test);
}
template <>
Handler select<Op::copysign>(const Form& form) {
  return form.modifiers.type == Type::f32
             ? &lanewise<CopySign<Bits32>, std::uint32_t, std::uint32_t, std::uint32_t>
             : &lanewise<CopySign<Bits64>, std::uint64_t, std::uint64_t, std::uint64_t>;
}
template <>
Handler select<Op::tanh_f32>(const Form& /*form*/) {
  return &lanewise<Tanh, float, float>;
}
template <>
Handler select<Op::sin_f32>(const Form& form) {
  return choose<Sine>(form);
}
template <>
Handler select<Op::cos_f32>(const Form& form) {
  return choose<Cosine>(form);
}

}  // namespace cpverify::sim
