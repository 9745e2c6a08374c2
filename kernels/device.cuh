#pragma once

// The device language that the kernels are written in: CUDA's keywords and, as inline PTX, the few
// machine operations they need. One source serves nvcc and plain clang without a CUDA toolkit, and
// both emit the same instruction for the same line.

#if !defined(__NVCC__)
// clang implements CUDA's attributes, but its keywords come from a toolkit's headers.
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(threads) __attribute__((launch_bounds(threads)))
#endif

// For functions that stand for an instruction: a source line reported for one is its caller's.
#if defined(__NVCC__)
#define __intrinsic__ __forceinline__
#else
#define __intrinsic__ inline __attribute__((always_inline, nodebug))
#endif

namespace cpverify::kernels {

#if defined(__NVCC__)
using Vector8 = uint2;
using Vector16 = uint4;
#else
using Vector8 = unsigned __attribute__((ext_vector_type(2)));
using Vector16 = unsigned __attribute__((ext_vector_type(4)));
#endif

/// Element offsets: pools and query tensors may hold more than 2^31 elements.
using Index = long long;

inline constexpr int kWarpLanes = 32;
inline constexpr int kCtaThreads = 128;
inline constexpr int kCtaWarps = kCtaThreads / kWarpLanes;
inline constexpr float kNegativeInfinity = -__builtin_huge_valf();
inline constexpr float kLn2 = 0.693147180559945309F;
inline constexpr float kLog2E = 1.44269504088896341F;

__device__ __intrinsic__ int thread_index() {
  int value;
  asm("mov.u32 %0, %%tid.x;" : "=r"(value));
  __builtin_assume(value >= 0);
  return value;
}

__device__ __intrinsic__ int lane_index() {
  return thread_index() & (kWarpLanes - 1);
}

__device__ __intrinsic__ int warp_index() {
  return thread_index() / kWarpLanes;
}

__device__ __intrinsic__ int block_index_x() {
  int value;
  asm("mov.u32 %0, %%ctaid.x;" : "=r"(value));
  return value;
}

__device__ __intrinsic__ int block_index_y() {
  int value;
  asm("mov.u32 %0, %%ctaid.y;" : "=r"(value));
  return value;
}

__device__ __intrinsic__ int block_index_z() {
  int value;
  asm("mov.u32 %0, %%ctaid.z;" : "=r"(value));
  return value;
}

__device__ __intrinsic__ int minimum(int a, int b) {
  return a < b ? a : b;
}

__device__ __intrinsic__ int maximum(int a, int b) {
  return a > b ? a : b;
}

/// A NaN operand is ignored, as PTX defines max.
__device__ __intrinsic__ float maximum(float a, float b) {
  float result;
  asm("max.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

/// a * b + c, rounded once.
__device__ __intrinsic__ float fused_multiply_add(float a, float b, float c) {
  float result;
  asm("fma.rn.f32 %0, %1, %2, %3;" : "=f"(result) : "f"(a), "f"(b), "f"(c));
  return result;
}

/// 2^x. exp2_approximate(0) is exactly 1 and exp2_approximate(-inf) exactly 0.
__device__ __intrinsic__ float exp2_approximate(float x) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __intrinsic__ float log2_approximate(float x) {
  float result;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

__device__ __intrinsic__ float float_of_bits(unsigned bits) {
  return __builtin_bit_cast(float, bits);
}

__device__ __intrinsic__ unsigned bits_of_float(float value) {
  return __builtin_bit_cast(unsigned, value);
}

/// The value of lane (own lane XOR mask).
__device__ __intrinsic__ float shuffle_xor(float value, int mask) {
  float result;
  asm volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;"
               : "=f"(result)
               : "f"(value), "r"(mask));
  return result;
}

/// The value of lane `source`.
__device__ __intrinsic__ unsigned shuffle(unsigned value, int source) {
  unsigned result;
  asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
               : "=r"(result)
               : "r"(value), "r"(source));
  return result;
}

__device__ __intrinsic__ float shuffle(float value, int source) {
  return float_of_bits(shuffle(bits_of_float(value), source));
}

__device__ __intrinsic__ Index shuffle(Index value, int source) {
  const auto bits = static_cast<unsigned long long>(value);
  const unsigned low = shuffle(static_cast<unsigned>(bits), source);
  const unsigned high = shuffle(static_cast<unsigned>(bits >> 32U), source);
  return static_cast<Index>((static_cast<unsigned long long>(high) << 32U) | low);
}

__device__ __intrinsic__ float warp_maximum(float value) {
#pragma unroll
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) {
    value = maximum(value, shuffle_xor(value, mask));
  }
  return value;
}

__device__ __intrinsic__ float warp_sum(float value) {
#pragma unroll
  for (int mask = kWarpLanes / 2; mask > 0; mask /= 2) value += shuffle_xor(value, mask);
  return value;
}

/// Reads kWords consecutive 32-bit words; `source` is aligned to min(4 * kWords, 16) bytes.
template <int kWords>
__device__ __intrinsic__ void load_words(const void* source, unsigned (&words)[kWords]) {
  if constexpr (kWords == 1) {
    words[0] = *static_cast<const unsigned*>(source);
  } else if constexpr (kWords == 2) {
    const Vector8 vector = *static_cast<const Vector8*>(source);
    words[0] = vector.x;
    words[1] = vector.y;
  } else {
    static_assert(kWords == 4);
    const Vector16 vector = *static_cast<const Vector16*>(source);
    words[0] = vector.x;
    words[1] = vector.y;
    words[2] = vector.z;
    words[3] = vector.w;
  }
}

/// The opposite of load_words.
template <int kWords>
__device__ __intrinsic__ void store_words(void* target, const unsigned (&words)[kWords]) {
  if constexpr (kWords == 1) {
    *static_cast<unsigned*>(target) = words[0];
  } else if constexpr (kWords == 2) {
    *static_cast<Vector8*>(target) = Vector8{words[0], words[1]};
  } else {
    static_assert(kWords == 4);
    *static_cast<Vector16*>(target) = Vector16{words[0], words[1], words[2], words[3]};
  }
}

}  // namespace cpverify::kernels
