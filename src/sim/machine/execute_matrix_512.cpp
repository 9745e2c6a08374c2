#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include <immintrin.h>

#include "cpverify/mma_accumulation.hpp"
#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/mma_policy.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/whole_warp.hpp"

/// mma.sync on AVX-512: the same chains of fma as execute_matrix.cpp. A vector holds one column of
/// all 16 rows, so that each element of B meets a whole column of A in one instruction, and comes
/// from memory by broadcast.
///
/// Lane 4r + q of a register of A holds elements 2q and 2q + 1 of row r; of C it holds element 2q
/// (or 2q + 1, in the next register); lane 4j + q of B elements 2q and 2q + 1 of column j. Source:
/// PTX ISA, "Matrix Fragments for mma.m16n8k16".
namespace cpverify::sim {
namespace {

constexpr std::size_t kQuads = 4;    ///< Values of q.
constexpr std::size_t kColumns = 8;  ///< Of B and C.

// Bare vector types as template arguments would lose their attributes.
struct Floats {
  __m512 v;
};
struct Words {
  __m512i v;
};

/// Lanes 4r + q of two halves (rows 0-7 and 8-15) become, for each q, a vector over 16 rows.
struct ByRow {
  std::array<Words, kQuads> q;

  ByRow(const void* upper, const void* lower) {
    // Of 32 lanes: those with q = 0, then those with q = 1; 2 more for the other pair.
    const __m512i pair =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i next = _mm512_add_epi32(pair, _mm512_set1_epi32(2));
    const __m512i u0 = _mm512_load_si512(upper);
    const __m512i u1 = _mm512_load_si512(static_cast<const std::byte*>(upper) + 64);
    const __m512i l0 = _mm512_load_si512(lower);
    const __m512i l1 = _mm512_load_si512(static_cast<const std::byte*>(lower) + 64);
    const __m512i u01 = _mm512_permutex2var_epi32(u0, pair, u1);
    const __m512i u23 = _mm512_permutex2var_epi32(u0, next, u1);
    const __m512i l01 = _mm512_permutex2var_epi32(l0, pair, l1);
    const __m512i l23 = _mm512_permutex2var_epi32(l0, next, l1);
    q[0].v = _mm512_shuffle_i64x2(u01, l01, 0x44);
    q[1].v = _mm512_shuffle_i64x2(u01, l01, 0xee);
    q[2].v = _mm512_shuffle_i64x2(u23, l23, 0x44);
    q[3].v = _mm512_shuffle_i64x2(u23, l23, 0xee);
  }
};

/// The way back.
void store_by_lane(const std::array<Floats, kQuads>& q, float* upper, float* lower) {
  const __m512i low = _mm512_setr_epi32(0, 8, 16, 24, 1, 9, 17, 25, 2, 10, 18, 26, 3, 11, 19, 27);
  const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(4));
  const __m512 u01 = _mm512_shuffle_f32x4(q[0].v, q[1].v, 0x44);
  const __m512 u23 = _mm512_shuffle_f32x4(q[2].v, q[3].v, 0x44);
  const __m512 l01 = _mm512_shuffle_f32x4(q[0].v, q[1].v, 0xee);
  const __m512 l23 = _mm512_shuffle_f32x4(q[2].v, q[3].v, 0xee);
  _mm512_store_ps(upper, _mm512_permutex2var_ps(u01, low, u23));
  _mm512_store_ps(upper + 16, _mm512_permutex2var_ps(u01, high, u23));
  _mm512_store_ps(lower, _mm512_permutex2var_ps(l01, low, l23));
  _mm512_store_ps(lower + 16, _mm512_permutex2var_ps(l01, high, l23));
}

struct FromBf16 {
  static __m512 even(__m512i words) { return _mm512_castsi512_ps(_mm512_slli_epi32(words, 16)); }
  static __m512 odd(__m512i words) {
    return _mm512_castsi512_ps(
        _mm512_and_si512(words, _mm512_set1_epi32(static_cast<std::int32_t>(0xffff0000U))));
  }
};
struct FromF16 {
  static __m512 even(__m512i words) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(words)); }
  static __m512 odd(__m512i words) { return even(_mm512_srli_epi32(words, 16)); }
};

__m512 canonical(__m512 value) {
  const __m512 nan =
      _mm512_castsi512_ps(_mm512_set1_epi32(static_cast<std::int32_t>(numerics::kCanonicalNan32)));
  return _mm512_mask_mov_ps(value, _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q), nan);
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

  const ByRow c_even{warp.row<const float>(c_rows[0]), warp.row<const float>(c_rows[2])};
  const ByRow c_odd{warp.row<const float>(c_rows[1]), warp.row<const float>(c_rows[3])};
  std::array<Floats, kQuads> even;  // Columns 2q of the sums.
  std::array<Floats, kQuads> odd;
  for (std::size_t q = 0; q < kQuads; ++q) {
    even[q].v = _mm512_castsi512_ps(c_even.q[q].v);
    odd[q].v = _mm512_castsi512_ps(c_odd.q[q].v);
  }
  for (std::size_t block = 0; block < k_blocks; ++block) {
    const auto* const words = warp.row<const std::byte>(b_rows[block]);
    alignas(64) std::array<float, kLanes> b_even;
    alignas(64) std::array<float, kLanes> b_odd;
    for (std::size_t half = 0; half < 2; ++half) {
      const __m512i b = _mm512_load_si512(words + 64 * half);
      _mm512_store_ps(b_even.data() + 16 * half, Convert::even(b));
      _mm512_store_ps(b_odd.data() + 16 * half, Convert::odd(b));
    }
    // Makes g++ keep the arrays in memory: a broadcast from there is free, one from the middle of a
    // register costs two shuffles on a port that fma needs.
    __asm__ volatile("" : "+m"(b_even), "+m"(b_odd));
    const ByRow a{warp.row<const std::byte>(a_rows[2 * block]),
                  warp.row<const std::byte>(a_rows[2 * block + 1])};
    for (std::size_t q = 0; q < kQuads; ++q) {
      const __m512 a_even = Convert::even(a.q[q].v);
      const __m512 a_odd = Convert::odd(a.q[q].v);
      for (std::size_t j = 0; j < kColumns; ++j) {
        __m512& sum = j % 2 == 0 ? even[j / 2].v : odd[j / 2].v;
        sum = _mm512_fmadd_ps(a_even, _mm512_set1_ps(b_even[kQuads * j + q]), sum);
        sum = _mm512_fmadd_ps(a_odd, _mm512_set1_ps(b_odd[kQuads * j + q]), sum);
      }
    }
  }
  for (std::size_t q = 0; q < kQuads; ++q) {
    even[q].v = canonical(even[q].v);
    odd[q].v = canonical(odd[q].v);
  }
  // D may be any of the sources: it is written when all have been read.
  store_by_lane(even, warp.row<float>(rows[0]), warp.row<float>(rows[2]));
  store_by_lane(odd, warp.row<float>(rows[1]), warp.row<float>(rows[3]));
  return insn + 1;
}

}  // namespace

Handler mma_by_chain(bool is_bf16, bool is_k8) {
  if (is_bf16) return is_k8 ? &multiply<FromBf16, 1> : &multiply<FromBf16, 2>;
  return is_k8 ? &multiply<FromF16, 1> : &multiply<FromF16, 2>;
}

}  // namespace cpverify::sim
