#pragma once

#include "device.cuh"

namespace cpverify::kernels {

/// The decisions of an attention kernel that are easy to get wrong, gathered in one place. The
/// kernels take them as a template parameter, so that a deliberately wrong kernel differs from the
/// right one in exactly one of these functions; see mutants/.
struct CorrectAttention {
  /// How many keys of a sequence may be read.
  static __device__ __forceinline__ int readable_keys(int kv_len, int /*block_size*/) {
    return kv_len;
  }

  /// How many keys, from key 0, query `query` of its sequence sees where the call is causal:
  /// aligned bottom right, i.e. the last query sees all of them.
  static __device__ __forceinline__ int visible_keys(int query, int query_len, int kv_len) {
    return maximum(kv_len - query_len + query + 1, 0);
  }

  /// What to multiply accumulated rows by: 1/sum, or 0 for a row that saw no key. A NaN stays one.
  static __device__ __forceinline__ float inverse_sum(float sum) {
    return sum == 0.0F ? 0.0F : 1.0F / sum;
  }

  /// The LSE of a row that saw no key.
  static __device__ __forceinline__ float empty_lse() { return kNegativeInfinity; }

  /// Natural log of sum * 2^maximum_log2.
  static __device__ __forceinline__ float log_sum_exp(float maximum_log2, float sum) {
    return (maximum_log2 + log2_approximate(sum)) * kLn2;
  }

  /// Waits until the thread's own asynchronous copies have arrived in shared memory.
  static __device__ __forceinline__ void wait_for_copies() {
    asm volatile("cp.async.wait_group 0;" ::: "memory");
  }

  /// Whether a tile that was copied while another was computed on is waited for at the end of that
  /// one, or at its beginning.
  static constexpr bool kFinishesCopiesBehindTile = true;

  /// After it, all threads see what each has waited for, and nobody still reads the other stage.
  static __device__ __forceinline__ void publish_copies() { __syncthreads(); }
};

}  // namespace cpverify::kernels
