#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/mma_accumulation.hpp"
#include "cpverify/observer.hpp"
#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/float8.hpp"
#include "numerics/mma_accumulation.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/mma_policy.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/whole_warp.hpp"

/// mma.sync in tf32, 8-bit floats, 8-bit integers and with f16 accumulators, element by element.
/// Floats accumulate as the launch's policy says, without one as a chain of f32 fma over ascending
/// k, from c; f16 results are rounded once, at the end. Integer sums are exact, then wrapped or,
/// with .satfinite, clamped.
///
/// Fragments, source: PTX ISA, "Matrix Fragments for mma". With e elements to a register, register
/// r of lane 4g + t holds of A row g + 8 (r % 2), columns e t + 4 e (r / 2) and following; of B
/// column g and rows e t + 4 e r and following. C and D hold row g (and g + 8), columns 2 t and 2 t
/// + 1.
namespace cpverify::sim {
namespace {

constexpr std::size_t kRows = 16;
constexpr std::size_t kColumns = 8;

/// Of D and C: one register to a value.
constexpr std::size_t kWideRegisters = 4;
/// Or one to two values of 16 bits.
constexpr std::size_t kHalfRegisters = 2;

struct FromTf32 {
  using Value = float;
  static constexpr std::size_t kPerRegister = 1;
  /// The hardware ignores the low 13 bits.
  static float get(std::uint32_t word, std::size_t /*i*/) {
    return numerics::from_bits(word & ~0x1fffU);
  }
};
struct FromF16 {
  using Value = float;
  static constexpr std::size_t kPerRegister = 2;
  static float get(std::uint32_t word, std::size_t i) {
    return numerics::f16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
  }
};
struct FromBf16 {
  using Value = float;
  static constexpr std::size_t kPerRegister = 2;
  static float get(std::uint32_t word, std::size_t i) {
    return numerics::bf16_to_f32(static_cast<std::uint16_t>(word >> (16 * i)));
  }
};
template <class Format>
struct FromF8 {
  using Value = float;
  static constexpr std::size_t kPerRegister = 4;
  static float get(std::uint32_t word, std::size_t i) {
    return numerics::f8_to_f32<Format>(static_cast<std::uint8_t>(word >> (8 * i)));
  }
};
template <class Byte>
struct FromByte {
  using Value = std::int64_t;
  static constexpr std::size_t kPerRegister = 4;
  static std::int64_t get(std::uint32_t word, std::size_t i) {
    return static_cast<Byte>(word >> (8 * i));
  }
};

/// D and C as f32, s32 or f16.
struct Float32Sums {
  using Value = float;
  static constexpr std::size_t kRegisters = kWideRegisters;
  static float get(std::uint32_t word, std::size_t /*i*/) { return numerics::from_bits(word); }
  static void put(std::uint32_t& word, std::size_t /*i*/, float value) {
    word = numerics::to_bits(numerics::canonical(value));
  }
  static float step(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }
};
struct Float16Sums {
  using Value = float;
  static constexpr std::size_t kRegisters = kHalfRegisters;
  static float get(std::uint32_t word, std::size_t i) { return FromF16::get(word, i); }
  static void put(std::uint32_t& word, std::size_t i, float value) {
    const std::uint32_t half = numerics::f32_to_f16(value);
    word = i == 0 ? (word & 0xffff0000U) | half : (word & 0xffffU) | (half << 16);
  }
  static float step(float a, float b, float sum) { return __builtin_fmaf(a, b, sum); }
};
template <bool is_satfinite>
struct IntegerSums {
  using Value = std::int64_t;
  static constexpr std::size_t kRegisters = kWideRegisters;
  static std::int64_t get(std::uint32_t word, std::size_t /*i*/) {
    return static_cast<std::int32_t>(word);
  }
  static void put(std::uint32_t& word, std::size_t /*i*/, std::int64_t value) {
    using Limits = std::numeric_limits<std::int32_t>;
    if (is_satfinite) value = std::clamp<std::int64_t>(value, Limits::min(), Limits::max());
    word = static_cast<std::uint32_t>(value);
  }
  static std::int64_t step(std::int64_t a, std::int64_t b, std::int64_t sum) { return a * b + sum; }
};

template <class T, std::size_t rows, std::size_t columns>
using Matrix = std::array<std::array<T, columns>, rows>;

/// Where lane `lane` keeps its values of C and D: calls visit(register, index in it, row, column).
template <class Sums, class Visit>
void for_each_sum(std::size_t lane, Visit visit) {
  constexpr std::size_t kPerRegister = kWideRegisters / Sums::kRegisters;
  for (std::size_t i = 0; i < kWideRegisters; ++i) {
    visit(i / kPerRegister, i % kPerRegister, lane / 4 + 8 * (i / 2), 2 * (lane % 4) + i % 2);
  }
}

template <class From, std::size_t registers, std::size_t k>
void load_a(const Warp& warp, const std::uint32_t* rows,
            Matrix<typename From::Value, kRows, k>& a) {
  constexpr std::size_t kElements = From::kPerRegister;
  for (std::size_t r = 0; r < registers; ++r) {
    const auto* const words = warp.row<const std::uint32_t>(rows[r]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < kElements; ++i) {
        a[lane / 4 + 8 * (r % 2)][kElements * (lane % 4) + i + 4 * kElements * (r / 2)] =
            From::get(words[lane], i);
      }
    }
  }
}

template <class From, std::size_t registers, std::size_t k>
void load_b(const Warp& warp, const std::uint32_t* rows,
            Matrix<typename From::Value, k, kColumns>& b) {
  constexpr std::size_t kElements = From::kPerRegister;
  for (std::size_t r = 0; r < registers; ++r) {
    const auto* const words = warp.row<const std::uint32_t>(rows[r]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      for (std::size_t i = 0; i < kElements; ++i) {
        b[kElements * (lane % 4) + i + 4 * kElements * r][lane / 4] = From::get(words[lane], i);
      }
    }
  }
}

template <class Sums, std::size_t depth, class Value>
void add_products(MmaAccumulation policy, const Matrix<Value, kRows, depth>& a,
                  const Matrix<Value, depth, kColumns>& b,
                  Matrix<typename Sums::Value, kRows, kColumns>& sums) {
  if constexpr (std::is_same_v<typename Sums::Value, float>) {
    if (policy != MmaAccumulation::fma_chain) {
      for (std::size_t column = 0; column < kColumns; ++column) {
        std::array<float, depth> factors{};
        for (std::size_t k = 0; k < depth; ++k) factors[k] = b[k][column];
        for (std::size_t row = 0; row < kRows; ++row) {
          sums[row][column] = numerics::accumulate(policy, a[row], factors, sums[row][column]);
        }
      }
      return;
    }
  }
  for (std::size_t row = 0; row < kRows; ++row) {
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t column = 0; column < kColumns; ++column) {
        sums[row][column] = Sums::step(a[row][k], b[k][column], sums[row][column]);
      }
    }
  }
}

/// `b_registers` of B and twice as many of A. Operands: D, A, B, C.
template <class FromA, class FromB, class Sums, std::size_t b_registers>
const Insn* multiply(Warp& warp, const Insn* insn, std::uint32_t mask) {
  static_assert(FromA::kPerRegister == FromB::kPerRegister);
  constexpr std::size_t kDepth = 4 * FromA::kPerRegister * b_registers;
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  const std::uint32_t* const d_rows = warp.wide + insn->target;
  const std::uint32_t* const a_rows = d_rows + Sums::kRegisters;
  const std::uint32_t* const b_rows = a_rows + 2 * b_registers;
  const std::uint32_t* const c_rows = b_rows + b_registers;
  Matrix<typename FromA::Value, kRows, kDepth> a{};
  Matrix<typename FromB::Value, kDepth, kColumns> b{};
  Matrix<typename Sums::Value, kRows, kColumns> sums{};
  load_a<FromA, 2 * b_registers, kDepth>(warp, a_rows, a);
  load_b<FromB, b_registers, kDepth>(warp, b_rows, b);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for_each_sum<Sums>(
        lane, [&](std::size_t r, std::size_t i, std::size_t row, std::size_t column) {
          sums[row][column] = Sums::get(warp.row<const std::uint32_t>(c_rows[r])[lane], i);
        });
  }
  add_products<Sums, kDepth>(warp.cta->launch->request->mma_accumulation, a, b, sums);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    for_each_sum<Sums>(lane,
                       [&](std::size_t r, std::size_t i, std::size_t row, std::size_t column) {
                         Sums::put(warp.row<std::uint32_t>(d_rows[r])[lane], i, sums[row][column]);
                       });
  }
  return insn + 1;
}

template <class A, class B, std::size_t b_registers>
Handler choose_satfinite(bool is_satfinite) {
  return is_satfinite ? &multiply<FromByte<A>, FromByte<B>, IntegerSums<true>, b_registers>
                      : &multiply<FromByte<A>, FromByte<B>, IntegerSums<false>, b_registers>;
}

template <std::size_t b_registers>
Handler select_bytes(const Modifiers& modifiers) {
  const bool is_satfinite = modifiers.is_satfinite;
  if (modifiers.a_element == Type::s8) {
    return modifiers.b_element == Type::s8
               ? choose_satfinite<std::int8_t, std::int8_t, b_registers>(is_satfinite)
               : choose_satfinite<std::int8_t, std::uint8_t, b_registers>(is_satfinite);
  }
  return modifiers.b_element == Type::s8
             ? choose_satfinite<std::uint8_t, std::int8_t, b_registers>(is_satfinite)
             : choose_satfinite<std::uint8_t, std::uint8_t, b_registers>(is_satfinite);
}

}  // namespace

Handler mma_by_policy(bool is_bf16, bool is_k8) {
  if (is_bf16) {
    return is_k8 ? &multiply<FromBf16, FromBf16, Float32Sums, 1>
                 : &multiply<FromBf16, FromBf16, Float32Sums, 2>;
  }
  return is_k8 ? &multiply<FromF16, FromF16, Float32Sums, 1>
               : &multiply<FromF16, FromF16, Float32Sums, 2>;
}

template <>
Handler select<Op::mma_bf16>(const Form& /*form*/) {
  return mma_by_chain(true, false);
}
template <>
Handler select<Op::mma_f16>(const Form& /*form*/) {
  return mma_by_chain(false, false);
}
template <>
Handler select<Op::mma_bf16_k8>(const Form& /*form*/) {
  return mma_by_chain(true, true);
}
template <>
Handler select<Op::mma_f16_k8>(const Form& /*form*/) {
  return mma_by_chain(false, true);
}
template <>
Handler select<Op::mma_f16_f16>(const Form& /*form*/) {
  return &multiply<FromF16, FromF16, Float16Sums, 2>;
}
template <>
Handler select<Op::mma_f16_f16_k8>(const Form& /*form*/) {
  return &multiply<FromF16, FromF16, Float16Sums, 1>;
}
template <>
Handler select<Op::mma_tf32_k8>(const Form& /*form*/) {
  return &multiply<FromTf32, FromTf32, Float32Sums, 2>;
}
template <>
Handler select<Op::mma_tf32_k4>(const Form& /*form*/) {
  return &multiply<FromTf32, FromTf32, Float32Sums, 1>;
}
template <>
Handler select<Op::mma_int8>(const Form& form) {
  return select_bytes<2>(form.modifiers);
}
template <>
Handler select<Op::mma_int8_k16>(const Form& form) {
  return select_bytes<1>(form.modifiers);
}
template <>
Handler select<Op::mma_f8>(const Form& form) {
  using E4 = FromF8<numerics::E4M3>;
  using E5 = FromF8<numerics::E5M2>;
  if (form.modifiers.a_element == Type::e4m3) {
    return form.modifiers.b_element == Type::e4m3 ? &multiply<E4, E4, Float32Sums, 2>
                                                  : &multiply<E4, E5, Float32Sums, 2>;
  }
  return form.modifiers.b_element == Type::e4m3 ? &multiply<E5, E4, Float32Sums, 2>
                                                : &multiply<E5, E5, Float32Sums, 2>;
}

}  // namespace cpverify::sim
