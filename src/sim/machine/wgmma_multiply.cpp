#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include <immintrin.h>

#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/float8.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/matrix_descriptor.hpp"
#include "sim/machine/sum_rows.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

/// The arithmetic of wgmma.mma_async: that of mma.sync, a chain of f32 fma over ascending k, from D
/// or from 0; f16 sums are rounded once, at the end; integer sums are exact, then wrapped or
/// clamped.
///
/// Fragments, source: PTX ISA, "Register Fragments and Shared Memory Matrix Layouts" of wgmma. Warp
/// w holds rows 16 w to 16 w + 15. Of D, register 4 j + 2 h + o of lane 4 g + t holds row g + 8 h,
/// column 8 j + 2 t + o; an f16 register both of o. A is as in mma.sync.
namespace cpverify::sim {
namespace {

constexpr std::size_t kBlock = 8;  ///< Rows and columns that are summed together.
constexpr std::size_t kRows = 64;
constexpr std::size_t kWarpRows = 16;
constexpr std::size_t kChunkBytes = 16;

/// Columns of a block stand in the order 0 2 4 6 1 3 5 7, as in the registers of D.
constexpr std::size_t place_of(std::size_t column) {
  return column / 2 + 4 * (column % 2);
}

/// Elements of A or B: 16 bytes hold kPerChunk.
struct FromBf16 {
  using Value = float;
  static constexpr std::size_t kPerChunk = 8;
  static void widen(const std::byte* bytes, float* values) {
    __m128i halves;
    std::memcpy(&halves, bytes, sizeof halves);
    _mm256_storeu_ps(values,
                     _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16)));
  }
};
struct FromF16 {
  using Value = float;
  static constexpr std::size_t kPerChunk = 8;
  static void widen(const std::byte* bytes, float* values) {
    __m128i halves;
    std::memcpy(&halves, bytes, sizeof halves);
    _mm256_storeu_ps(values, _mm256_cvtph_ps(halves));
  }
};
struct FromTf32 {
  using Value = float;
  static constexpr std::size_t kPerChunk = 4;
  /// The hardware ignores the low 13 bits.
  static void widen(const std::byte* bytes, float* values) {
    for (std::size_t i = 0; i < kPerChunk; ++i) {
      std::uint32_t word = 0;
      std::memcpy(&word, bytes + 4 * i, sizeof word);
      values[i] = numerics::from_bits(word & ~0x1fffU);
    }
  }
};
template <class Format>
struct FromF8 {
  using Value = float;
  static constexpr std::size_t kPerChunk = 16;
  static void widen(const std::byte* bytes, float* values) {
    for (std::size_t i = 0; i < kPerChunk; ++i) {
      values[i] = numerics::f8_to_f32<Format>(std::to_integer<std::uint8_t>(bytes[i]));
    }
  }
};
template <class Byte>
struct FromByte {
  using Value = std::int32_t;
  static constexpr std::size_t kPerChunk = 16;
  static void widen(const std::byte* bytes, std::int32_t* values) {
    for (std::size_t i = 0; i < kPerChunk; ++i) {
      values[i] = static_cast<Byte>(std::to_integer<std::uint8_t>(bytes[i]));
    }
  }
};

/// A row by row; B in blocks of eight columns, k by k, each in the order of place_of().
template <class Value, std::size_t depth>
struct Operands {
  alignas(64) std::array<Value, kRows * depth> a;
  alignas(64) std::array<Value, 256 * depth> b;

  void put_a(std::size_t row, std::size_t k, Value value) { a[row * depth + k] = value; }
  void put_b(std::size_t column, std::size_t k, Value value) {
    b[(column / kBlock * depth + k) * kBlock + place_of(column % kBlock)] = value;
  }
};

/// Calls put(row of M or N, k, value) for every element of an operand in shared memory.
template <class From, class Put>
void load_shared(const std::byte* shared, const MatrixDescriptor& operand, std::size_t rows,
                 Put put) {
  std::array<typename From::Value, From::kPerChunk> values{};
  const auto load = [&](std::size_t i, std::size_t part) {
    const std::uint32_t address =
        operand.address(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(part));
    From::widen(shared + address, values.data());
  };
  // Only elements of 16 bits may be transposed.
  if constexpr (From::kPerChunk == kBlock) {
    if (operand.is_transposed) {
      for (std::size_t block = 0; block < rows / kBlock; ++block) {
        for (std::size_t k = 0; k < 16; ++k) {
          load(block, k);
          for (std::size_t i = 0; i < kBlock; ++i) put(block * kBlock + i, k, values[i]);
        }
      }
      return;
    }
  }
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t half = 0; half < 2; ++half) {
      load(row, half);
      for (std::size_t i = 0; i < From::kPerChunk; ++i)
        put(row, half * From::kPerChunk + i, values[i]);
    }
  }
}

/// Register r of lane 4 g + t holds row g + 8 (r % 2) and, with e elements to a register, columns
/// e t + 4 e (r / 2) and following: a half of a row is in four neighbouring lanes.
template <class From, class Put>
void load_registers(const Warp& warp, std::span<const std::uint32_t> rows, std::size_t first_row,
                    Put put) {
  std::array<typename From::Value, From::kPerChunk> values{};
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::byte* const words = warp.registers + rows[r];
    for (std::size_t g = 0; g < kBlock; ++g) {
      From::widen(words + kChunkBytes * g, values.data());
      for (std::size_t i = 0; i < From::kPerChunk; ++i) {
        put(first_row + g + 8 * (r % 2), i + From::kPerChunk * (r / 2), values[i]);
      }
    }
  }
}

/// Eight rows of a block of D, in registers of f32.
struct Float32Sums : SumRows {
  using Value = float;

  void clear() { rows.fill({_mm256_setzero_ps()}); }
  void load(const Warp& warp, std::span<const std::uint32_t> d, std::size_t block,
            std::size_t half) {
    SumRows::load(warp.row<const float>(d[4 * block + 2 * half]),
                  warp.row<const float>(d[4 * block + 2 * half + 1]));
  }
  void store(const Warp& warp, std::span<const std::uint32_t> d, std::size_t block,
             std::size_t half) const {
    SumRows::store(warp.row<float>(d[4 * block + 2 * half]),
                   warp.row<float>(d[4 * block + 2 * half + 1]));
  }
  /// Adds column k of A, whose elements are `stride` apart, times row k of B.
  void add(const float* a, std::size_t stride, const float* b) {
    const __m256 factor = _mm256_load_ps(b);
    for (std::size_t row = 0; row < kBlock; ++row) {
      rows[row].columns =
          _mm256_fmadd_ps(_mm256_broadcast_ss(a + stride * row), factor, rows[row].columns);
    }
  }
};

/// The same, kept as f16.
struct Float16Sums : Float32Sums {
  void load(const Warp& warp, std::span<const std::uint32_t> d, std::size_t block,
            std::size_t half) {
    const auto* const words = warp.row<const std::uint32_t>(d[2 * block + half]);
    for (std::size_t row = 0; row < kBlock; ++row) {
      alignas(32) std::array<float, kBlock> values{};
      for (std::size_t t = 0; t < 4; ++t) {
        const std::uint32_t word = words[4 * row + t];
        values[t] = numerics::f16_to_f32(static_cast<std::uint16_t>(word));
        values[4 + t] = numerics::f16_to_f32(static_cast<std::uint16_t>(word >> 16));
      }
      rows[row].columns = _mm256_load_ps(values.data());
    }
  }
  void store(const Warp& warp, std::span<const std::uint32_t> d, std::size_t block,
             std::size_t half) const {
    auto* const words = warp.row<std::uint32_t>(d[2 * block + half]);
    for (std::size_t row = 0; row < kBlock; ++row) {
      alignas(32) std::array<float, kBlock> values{};
      _mm256_store_ps(values.data(), rows[row].columns);
      for (std::size_t t = 0; t < 4; ++t) {
        words[4 * row + t] = numerics::pack_halves(numerics::f32_to_f16(values[4 + t]),
                                                   numerics::f32_to_f16(values[t]));
      }
    }
  }
};

/// Products of 32 bytes fit 32 bits; only adding them to D may overflow.
template <bool is_satfinite>
struct IntegerSums {
  using Value = std::int32_t;
  std::array<std::array<std::int32_t, kBlock>, kBlock> products;
  std::array<std::array<std::int32_t, kBlock>, kBlock> before;

  void clear() {
    products = {};
    before = {};
  }
  void load(const Warp& warp, std::span<const std::uint32_t> d, std::size_t block,
            std::size_t half) {
    clear();
    for (std::size_t odd = 0; odd < 2; ++odd) {
      const auto* const words = warp.row<const std::int32_t>(d[4 * block + 2 * half + odd]);
      for (std::size_t i = 0; i < kLanes; ++i) before[i / 4][i % 4 + 4 * odd] = words[i];
    }
  }
  void store(const Warp& warp, std::span<const std::uint32_t> d, std::size_t block,
             std::size_t half) const {
    using Limits = std::numeric_limits<std::int32_t>;
    for (std::size_t odd = 0; odd < 2; ++odd) {
      auto* const words = warp.row<std::int32_t>(d[4 * block + 2 * half + odd]);
      for (std::size_t i = 0; i < kLanes; ++i) {
        const std::size_t column = i % 4 + 4 * odd;
        std::int64_t sum = std::int64_t{products[i / 4][column]} + before[i / 4][column];
        if (is_satfinite) sum = std::clamp<std::int64_t>(sum, Limits::min(), Limits::max());
        words[i] = static_cast<std::int32_t>(sum);
      }
    }
  }
  void add(const std::int32_t* a, std::size_t stride, const std::int32_t* b) {
    for (std::size_t row = 0; row < kBlock; ++row) {
      for (std::size_t i = 0; i < kBlock; ++i) products[row][i] += a[stride * row] * b[i];
    }
  }
};

template <class FromA, class FromB, std::size_t depth>
void load_operands(const Cta& cta, std::size_t first, const GroupProduct& product,
                   Operands<typename FromA::Value, depth>& operands) {
  using Value = typename FromA::Value;
  const Value a_sign = product.negates_a ? Value{-1} : Value{1};
  const Value b_sign = product.negates_b ? Value{-1} : Value{1};
  const auto put_a = [&](std::size_t row, std::size_t k, Value value) {
    operands.put_a(row, k, a_sign * value);
  };
  const std::byte* const shared = cta.shared.data();
  if (product.a_rows.empty()) {
    load_shared<FromA>(shared, product.a, kRows, put_a);
  } else {
    for (std::size_t i = 0; i < kGroupWarps; ++i) {
      load_registers<FromA>(cta.warps[first + i], product.a_rows, kWarpRows * i, put_a);
    }
  }
  load_shared<FromB>(shared, product.b, product.columns,
                     [&](std::size_t column, std::size_t k, Value value) {
                       operands.put_b(column, k, b_sign * value);
                     });
}

template <class FromA, class FromB, class Sums>
void multiply(Cta& cta, std::size_t first, const GroupProduct& product) {
  static_assert(FromA::kPerChunk == FromB::kPerChunk);
  constexpr std::size_t kDepth = 2 * FromA::kPerChunk;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): the part that is read is set below.
  Operands<typename FromA::Value, kDepth> operands;
  load_operands<FromA, FromB, kDepth>(cta, first, product, operands);
  for (std::size_t row = 0; row < kRows; row += kBlock) {
    const Warp& warp = cta.warps[first + row / kWarpRows];
    const std::size_t half = row / kBlock % 2;
    const typename FromA::Value* const a = operands.a.data() + row * kDepth;
    for (std::size_t block = 0; block < product.columns / kBlock; ++block) {
      Sums sums;
      if (product.accumulates) {
        sums.load(warp, product.d_rows, block, half);
      } else {
        sums.clear();
      }
      const typename FromA::Value* const b = operands.b.data() + block * kDepth * kBlock;
      for (std::size_t k = 0; k < kDepth; ++k) sums.add(a + k, kDepth, b + k * kBlock);
      sums.store(warp, product.d_rows, block, half);
    }
  }
}

template <class Sums>
GroupMultiply choose_f8(Type a, Type b) noexcept {
  using E4 = FromF8<numerics::E4M3>;
  using E5 = FromF8<numerics::E5M2>;
  if (a == Type::e4m3) return b == Type::e4m3 ? &multiply<E4, E4, Sums> : &multiply<E4, E5, Sums>;
  return b == Type::e4m3 ? &multiply<E5, E4, Sums> : &multiply<E5, E5, Sums>;
}

template <class Sums>
GroupMultiply choose_bytes(Type a, Type b) noexcept {
  using U8 = FromByte<std::uint8_t>;
  using S8 = FromByte<std::int8_t>;
  if (a == Type::u8) return b == Type::u8 ? &multiply<U8, U8, Sums> : &multiply<U8, S8, Sums>;
  return b == Type::u8 ? &multiply<S8, U8, Sums> : &multiply<S8, S8, Sums>;
}

/// Beyond 32 columns only every second number. Source: PTX ISA, "Matrix Shape" of wgmma.
bool is_integer_shape(std::uint32_t columns) noexcept {
  return columns <= 24 || columns % 16 == 0;
}

}  // namespace

GroupMultiply find_multiply(const Form& form) noexcept {
  const Modifiers& modifiers = form.modifiers;
  const Type a = modifiers.a_element;
  const Type b = modifiers.b_element;
  switch (form.op) {
    case Op::wgmma_half:
    case Op::wgmma_half_registers:
      if (a != b) return nullptr;
      return a == Type::bf16 ? &multiply<FromBf16, FromBf16, Float32Sums>
                             : &multiply<FromF16, FromF16, Float32Sums>;
    case Op::wgmma_half_f16:
    case Op::wgmma_half_f16_registers:
      return &multiply<FromF16, FromF16, Float16Sums>;
    case Op::wgmma_tf32:
    case Op::wgmma_tf32_registers:
      return &multiply<FromTf32, FromTf32, Float32Sums>;
    case Op::wgmma_f8:
    case Op::wgmma_f8_registers:
      return choose_f8<Float32Sums>(a, b);
    case Op::wgmma_f8_f16:
    case Op::wgmma_f8_f16_registers:
      return choose_f8<Float16Sums>(a, b);
    case Op::wgmma_int8:
    case Op::wgmma_int8_registers:
      if (!is_integer_shape(modifiers.columns)) return nullptr;
      return modifiers.is_satfinite ? choose_bytes<IntegerSums<true>>(a, b)
                                    : choose_bytes<IntegerSums<false>>(a, b);
    default:
      return nullptr;
  }
}

}  // namespace cpverify::sim
