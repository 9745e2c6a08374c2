#pragma once

#include "device.cuh"

namespace cpverify::kernels {

/// LSEs are logarithms to base e.
struct NaturalBase {
  static __device__ __forceinline__ float power(float exponent) {
    return exp2_approximate(exponent * kLog2E);
  }
  static __device__ __forceinline__ float logarithm(float value) {
    return log2_approximate(value) * kLn2;
  }
};

/// LSEs are logarithms to base 2.
struct Base2 {
  static __device__ __forceinline__ float power(float exponent) {
    return exp2_approximate(exponent);
  }
  static __device__ __forceinline__ float logarithm(float value) { return log2_approximate(value); }
};

/// The decisions of the merge kernels that are easy to get wrong; see attention_policy.cuh.
struct CorrectMerge {
  /// The base in which an entry that is given LSEs of base `Base` reads them.
  template <class Base>
  using Read = Base;

  /// An LSE as it is used: a partial whose LSE is NaN or +inf counts as empty.
  static __device__ __forceinline__ float read_lse(float lse) {
    return lse < -kNegativeInfinity ? lse : kNegativeInfinity;
  }

  /// Where the LSE of (row, head) is in a tensor [num_rows, num_heads].
  static __device__ __forceinline__ Index lse_index(Index row, int head, int /*num_rows*/,
                                                    int num_heads) {
    return row * num_heads + head;
  }

  /// What to subtract from an LSE before raising the base to it: the maximum over all partials, not
  /// that over the partials up to this one; 0 where all are empty, because -inf - (-inf) is NaN.
  static __device__ __forceinline__ float subtrahend(float /*maximum_so_far*/, float maximum) {
    return maximum == kNegativeInfinity ? 0.0F : maximum;
  }

  /// The weight of a partial of that power.
  static __device__ __forceinline__ float weight(float power) { return power; }

  /// Whether a partial of that weight is left alone. 0 times a NaN or infinity would be NaN.
  static __device__ __forceinline__ bool is_left_out(float weight) { return weight == 0.0F; }

  /// Where the heads of rank `rank` are among the blocks to scatter.
  static __device__ __forceinline__ int block_of(int rank, int /*num_ranks*/) { return rank; }
};

}  // namespace cpverify::kernels
