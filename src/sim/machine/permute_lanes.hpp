#pragma once

#include <cstddef>
#include <cstdint>

#ifdef __AVX512F__
#include <immintrin.h>
#endif

#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// target[i] = values[sources[i]]; all three are aligned, sources are below 32. With AVX-512 the 32
/// lanes are one table for two permutes; the compiler makes a gather of the loop, three times as
/// slow.
inline void permute_lanes(const std::uint32_t* values, const std::uint32_t* sources,
                          std::uint32_t* target) {
#ifdef __AVX512F__
  const __m512i low = _mm512_load_si512(values);
  const __m512i high = _mm512_load_si512(values + 16);
  for (std::size_t half = 0; half < kLanes; half += 16) {
    const __m512i index = _mm512_load_si512(sources + half);
    _mm512_store_si512(target + half, _mm512_permutex2var_epi32(low, index, high));
  }
#else
  for (std::size_t lane = 0; lane < kLanes; ++lane) target[lane] = values[sources[lane]];
#endif
}

}  // namespace cpverify::sim
