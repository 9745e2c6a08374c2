#pragma once

#include "device.cuh"

namespace cpverify::kernels {

// Element types. Each says how its values lie in 32-bit words: `Storage` in memory, kPerWord values
// per word with the lower index in the lower bits, unpack() to f32 (exact), pack() from f32 (round
// to nearest even; more than the largest finite value becomes infinite).

struct F32 {
  using Storage = float;
  static constexpr int kPerWord = 1;

  static __device__ __intrinsic__ void unpack(unsigned word, float* values) {
    values[0] = float_of_bits(word);
  }
  static __device__ __intrinsic__ unsigned pack(const float* values) {
    return bits_of_float(values[0]);
  }
};

struct F16 {
  using Storage = unsigned short;
  static constexpr int kPerWord = 2;

  static __device__ __intrinsic__ void unpack(unsigned word, float* values) {
    const auto low = static_cast<unsigned short>(word);
    const auto high = static_cast<unsigned short>(word >> 16U);
    asm("cvt.f32.f16 %0, %1;" : "=f"(values[0]) : "h"(low));
    asm("cvt.f32.f16 %0, %1;" : "=f"(values[1]) : "h"(high));
  }
  static __device__ __intrinsic__ unsigned pack(const float* values) {
    unsigned word;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(values[1]), "f"(values[0]));
    return word;
  }
  /// c += a . b for a 16x16 tile a, a 16x8 tile b and f32 accumulators c.
  static __device__ __intrinsic__ void multiply_accumulate(float (&c)[4], const unsigned (&a)[4],
                                                           unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

struct Bf16 {
  using Storage = unsigned short;
  static constexpr int kPerWord = 2;

  static __device__ __intrinsic__ void unpack(unsigned word, float* values) {
    values[0] = float_of_bits(word << 16U);
    values[1] = float_of_bits(word & 0xffff0000U);
  }
  static __device__ __intrinsic__ unsigned pack(const float* values) {
    unsigned word;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(values[1]), "f"(values[0]));
    return word;
  }
  /// c += a . b for a 16x16 tile a, a 16x8 tile b and f32 accumulators c.
  static __device__ __intrinsic__ void multiply_accumulate(float (&c)[4], const unsigned (&a)[4],
                                                           unsigned b0, unsigned b1) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
};

/// Widens kElements values, which fill 1, 2 or 4 words, to f32.
template <class T, int kElements>
__device__ __intrinsic__ void load_elements(const typename T::Storage* source,
                                            float (&values)[kElements]) {
  constexpr int kWords = kElements / T::kPerWord;
  unsigned words[kWords];
  load_words(source, words);
#pragma unroll
  for (int word = 0; word < kWords; ++word) T::unpack(words[word], &values[word * T::kPerWord]);
}

/// Rounds kElements f32 values, which fill 1, 2 or 4 words, to T.
template <class T, int kElements>
__device__ __intrinsic__ void store_elements(typename T::Storage* target,
                                             const float (&values)[kElements]) {
  constexpr int kWords = kElements / T::kPerWord;
  unsigned words[kWords];
#pragma unroll
  for (int word = 0; word < kWords; ++word) words[word] = T::pack(&values[word * T::kPerWord]);
  store_words(target, words);
}

}  // namespace cpverify::kernels
