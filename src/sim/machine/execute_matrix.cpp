#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <immintrin.h>

#include "cpverify/mma_accumulation.hpp"
#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/mma_policy.hpp"
#include "sim/machine/sum_rows.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/whole_warp.hpp"

/// mma.sync on AVX2; execute_matrix_512.cpp stands in for this file in the build for AVX-512. The
/// manual leaves order and rounding of the accumulation open; ours, unless the launch asks for
/// another policy, is a chain of f32 fma over ascending k, from c. NaN results are canonical.
///
/// Fragments, source: PTX ISA, "Matrix Fragments for mma.m16n8k16". A register of A or B holds,
/// over its 32 lanes, an 8x8 block of 16-bit elements row by row (of B: column by column); one of C
/// or D holds every second element of an 8x8 block of f32.
namespace cpverify::sim {
namespace {

constexpr std::size_t kBlock = 8;  ///< Rows and columns of the block that a register holds.
constexpr std::size_t kPairs = 4;  ///< Registers hold elements k = 2q and 2q + 1 in one word.

/// The lower and upper halves of 32 words as f32.
struct FromBf16 {
  static void widen(const std::uint32_t* __restrict words, float* __restrict even,
                    float* __restrict odd) {
    for (std::size_t i = 0; i < kLanes; ++i) {
      even[i] = numerics::from_bits(words[i] << 16);
      odd[i] = numerics::from_bits(words[i] & 0xffff0000U);
    }
  }
};
struct FromF16 {
  static void widen(const std::uint32_t* __restrict words, float* __restrict even,
                    float* __restrict odd) {
    alignas(64) std::array<std::uint16_t, kLanes> lower{};
    alignas(64) std::array<std::uint16_t, kLanes> upper{};
    for (std::size_t i = 0; i < kLanes; ++i) {
      lower[i] = static_cast<std::uint16_t>(words[i]);
      upper[i] = static_cast<std::uint16_t>(words[i] >> 16);
    }
    for (std::size_t i = 0; i < kLanes; i += kBlock) {
      _mm256_store_ps(even + i, _mm256_cvtph_ps(load_halves(lower.data() + i)));
      _mm256_store_ps(odd + i, _mm256_cvtph_ps(load_halves(upper.data() + i)));
    }
  }

 private:
  static __m128i load_halves(const std::uint16_t* halves) {
    __m128i bits;
    std::memcpy(&bits, halves, sizeof bits);
    return bits;
  }
};

/// Eight rows of C.
struct Accumulator : SumRows {
  /// Adds column k of A times row k of B.
  void add(const float* a, const float* b) {
    const __m256 factor = _mm256_load_ps(b);
    for (std::size_t row = 0; row < kBlock; ++row) {
      rows[row].columns =
          _mm256_fmadd_ps(_mm256_broadcast_ss(a + kPairs * row), factor, rows[row].columns);
    }
  }
};

/// An 8x8 block of A or B: element (i, 2q) at even[4i + q] of A, at even[8q + j] of B.
struct WideBlock {
  alignas(64) std::array<float, kLanes> even;
  alignas(64) std::array<float, kLanes> odd;
};

/// B's words stand column by column; the accumulator wants rows, in its own order of columns.
template <class Convert>
void load_b(const std::uint32_t* words, WideBlock& b) {
  alignas(64) std::array<std::uint32_t, kLanes> by_row{};
  for (std::size_t pair = 0; pair < kPairs; ++pair) {
    for (std::size_t i = 0; i < kPairs; ++i) {
      by_row[kBlock * pair + i] = words[kPairs * (2 * i) + pair];
      by_row[kBlock * pair + kPairs + i] = words[kPairs * (2 * i + 1) + pair];
    }
  }
  Convert::widen(by_row.data(), b.even.data(), b.odd.data());
}

/// k_blocks is k / 8. Operands: d0-d3, then 2 * k_blocks registers of A, k_blocks of B, c0-c3.
template <class Convert, std::size_t k_blocks>
const Insn* multiply(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (warp.cta->launch->request->mma_accumulation != MmaAccumulation::fma_chain) [[unlikely]] {
    return mma_by_policy(std::is_same_v<Convert, FromBf16>, k_blocks == 1)(warp, insn, mask);
  }
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  const std::uint32_t* const rows = warp.wide + insn->target;
  const std::uint32_t* const a_rows = rows + 4;
  const std::uint32_t* const b_rows = a_rows + 2 * k_blocks;
  const std::uint32_t* const c_rows = b_rows + k_blocks;

  std::array<WideBlock, k_blocks> b{};
  for (std::size_t block = 0; block < k_blocks; ++block) {
    load_b<Convert>(warp.row<const std::uint32_t>(b_rows[block]), b[block]);
  }
  std::array<Accumulator, 2> halves{};  // Rows 0-7 and 8-15.
  for (std::size_t half = 0; half < 2; ++half) {
    Accumulator sum{};
    sum.load(warp.row<const float>(c_rows[2 * half]), warp.row<const float>(c_rows[2 * half + 1]));
    for (std::size_t block = 0; block < k_blocks; ++block) {
      WideBlock a{};
      Convert::widen(warp.row<const std::uint32_t>(a_rows[2 * block + half]), a.even.data(),
                     a.odd.data());
      for (std::size_t pair = 0; pair < kPairs; ++pair) {
        sum.add(a.even.data() + pair, b[block].even.data() + kBlock * pair);
        sum.add(a.odd.data() + pair, b[block].odd.data() + kBlock * pair);
      }
    }
    halves[half] = sum;
  }
  // D may be any of the sources: it is written when all have been read.
  for (std::size_t half = 0; half < 2; ++half) {
    halves[half].store(warp.row<float>(rows[2 * half]), warp.row<float>(rows[2 * half + 1]));
  }
  return insn + 1;
}

}  // namespace

Handler mma_by_chain(bool is_bf16, bool is_k8) {
  if (is_bf16) return is_k8 ? &multiply<FromBf16, 1> : &multiply<FromBf16, 2>;
  return is_k8 ? &multiply<FromF16, 1> : &multiply<FromF16, 2>;
}

}  // namespace cpverify::sim
