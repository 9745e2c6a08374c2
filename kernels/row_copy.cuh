#pragma once

#include "device.cuh"

namespace cpverify::kernels {

// Row kernels give each row of `row_bytes` (a multiple of 16) to one warp of a 128-thread CTA.

inline constexpr int kVectorBytes = 16;

__device__ __forceinline__ int warp_row() {
  return block_index_x() * kCtaWarps + warp_index();
}

__device__ __forceinline__ void copy_row(const unsigned char* source, unsigned char* target,
                                         int row_bytes) {
#pragma unroll 1
  for (int byte = lane_index() * kVectorBytes; byte < row_bytes;
       byte += kWarpLanes * kVectorBytes) {
    unsigned words[4];
    load_words(source + byte, words);
    store_words(target + byte, words);
  }
}

__device__ __forceinline__ void zero_row(unsigned char* target, int row_bytes) {
  const unsigned zeros[4] = {};
#pragma unroll 1
  for (int byte = lane_index() * kVectorBytes; byte < row_bytes;
       byte += kWarpLanes * kVectorBytes) {
    store_words(target + byte, zeros);
  }
}

}  // namespace cpverify::kernels
