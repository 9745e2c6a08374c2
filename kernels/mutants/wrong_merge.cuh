#pragma once

#include "device.cuh"
#include "merge_policy.cuh"

// Merge policies with one defect each. A mutant module has the entries of `merge`.

namespace cpverify::kernels {

template <class Base>
struct OtherBase;
template <>
struct OtherBase<NaturalBase> {
  using Type = Base2;
};
template <>
struct OtherBase<Base2> {
  using Type = NaturalBase;
};

/// Takes natural logarithms for logarithms to base 2, and the other way round.
struct LseBaseSwapped : CorrectMerge {
  template <class Base>
  using Read = typename OtherBase<Base>::Type;
};

/// Partials that saw few keys count as much as partials that saw many.
struct PlainMean : CorrectMerge {
  static __device__ __forceinline__ float weight(float power) {
    return power == 0.0F ? 0.0F : 1.0F;
  }
};

/// Weighs by the maximum so far and never rescales what was added under a smaller one.
struct MissingRescale : CorrectMerge {
  static __device__ __forceinline__ float subtrahend(float maximum_so_far, float /*maximum*/) {
    return CorrectMerge::subtrahend(maximum_so_far, maximum_so_far);
  }
};

/// Subtracts -inf from -inf where all partials are empty.
struct UnguardedEmptyMerge : CorrectMerge {
  static __device__ __forceinline__ float subtrahend(float /*maximum_so_far*/, float maximum) {
    return maximum;
  }
};

/// Multiplies whatever an empty partial holds by 0.
struct MultipliedEmpty : CorrectMerge {
  static __device__ __forceinline__ bool is_left_out(float /*weight*/) { return false; }
};

/// Reads LSEs of [rows, heads] as [heads, rows]: no size tells the two apart.
struct LseTransposed : CorrectMerge {
  static __device__ __forceinline__ Index lse_index(Index row, int head, int num_rows,
                                                    int /*num_heads*/) {
    return static_cast<Index>(head) * num_rows + row;
  }
};

/// LSEs travel in bf16.
struct Lse16Bit : CorrectMerge {
  static __device__ __forceinline__ float read_lse(float lse) {
    const unsigned bits = bits_of_float(CorrectMerge::read_lse(lse));
    const unsigned half_minus_tie = 0x7fffU + (bits >> 16U & 1U);
    return float_of_bits((bits + half_minus_tie) & 0xffff0000U);
  }
};

/// Deals the blocks of heads out to the ranks from the last one on.
struct BlocksReversed : CorrectMerge {
  static __device__ __forceinline__ int block_of(int rank, int num_ranks) {
    return num_ranks - 1 - rank;
  }
};

}  // namespace cpverify::kernels
