#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <immintrin.h>

#include "numerics/float32.hpp"

namespace cpverify::sim {

/// An 8x8 block of the f32 sums of a matrix instruction, one vector per row. Its columns stand in
/// the order 0 2 4 6 1 3 5 7, because a register of the fragment holds the even columns of all rows
/// and the next one the odd ones.
struct SumRows {
  static constexpr std::size_t kRows = 8;
  struct Row {
    __m256 columns;  // A bare __m256 as a template argument would lose its attributes.
  };
  std::array<Row, kRows> rows;

  void load(const float* even, const float* odd) {
    for (std::size_t row = 0; row < kRows; ++row) {
      rows[row].columns = _mm256_set_m128(_mm_load_ps(odd + 4 * row), _mm_load_ps(even + 4 * row));
    }
  }
  void store(float* even, float* odd) const {
    for (std::size_t row = 0; row < kRows; ++row) {
      // NaN results are canonical.
      const __m256 nan = _mm256_castsi256_ps(
          _mm256_set1_epi32(static_cast<std::int32_t>(numerics::kCanonicalNan32)));
      const __m256 is_nan = _mm256_cmp_ps(rows[row].columns, rows[row].columns, _CMP_UNORD_Q);
      const __m256 value = _mm256_blendv_ps(rows[row].columns, nan, is_nan);
      _mm_store_ps(even + 4 * row, _mm256_castps256_ps128(value));
      _mm_store_ps(odd + 4 * row, _mm256_extractf128_ps(value, 1));
    }
  }
};

}  // namespace cpverify::sim
