#pragma once

#include "attention_policy.cuh"
#include "device.cuh"

// Attention policies with one defect each. A mutant module has the entries of the kernel it breaks.

namespace cpverify::kernels {

/// Every query sees one key too many. The last one has no further key to see.
struct CausalPlusOne : CorrectAttention {
  static __device__ __forceinline__ int visible_keys(int query, int query_len, int kv_len) {
    return minimum(CorrectAttention::visible_keys(query + 1, query_len, kv_len), kv_len);
  }
};

/// Forgets to leave base 2.
struct LseBase2 : CorrectAttention {
  static __device__ __forceinline__ float log_sum_exp(float maximum_log2, float sum) {
    return maximum_log2 + log2_approximate(sum);
  }
};

/// Divides by the sum of a row that saw no key.
struct UnguardedEmptyRow : CorrectAttention {
  static __device__ __forceinline__ float inverse_sum(float sum) { return 1.0F / sum; }
};

/// Has the LSE of one key of score 0 for a row that saw no key.
struct EmptyRowFinite : CorrectAttention {
  static __device__ __forceinline__ float empty_lse() { return 0.0F; }
};

/// Takes whole pages, and with them the unwritten slots at the end of the last one, for keys.
struct PageRounded : CorrectAttention {
  static __device__ __forceinline__ int readable_keys(int kv_len, int block_size) {
    return (kv_len + block_size - 1) / block_size * block_size;
  }
};

/// Reads shared memory that other threads may not have written yet.
struct MissingBarrier : CorrectAttention {
  static __device__ __forceinline__ void publish_copies() {}
};

/// Every tile is there before it is read, but no barrier keeps a fast warp from refilling a stage
/// that a slow one still reads.
struct NoTrailingBarrier : CorrectAttention {
  static constexpr bool kFinishesCopiesBehindTile = false;
};

/// Reads shared memory while copies into it are still under way.
struct NoWait : CorrectAttention {
  static __device__ __forceinline__ void wait_for_copies() {}
};

/// Only lanes that have copied a whole chunk wait for the others, as if the rest had nothing to
/// publish.
struct DivergentBarrier : CorrectAttention {
  static __device__ __forceinline__ void publish_copies() {
    if (lane_index() % 2 == 0) __syncthreads();
  }
};

/// Waits for a warp that only copies, which this kernel does not have.
struct CrowdedBarrier : CorrectAttention {
  static __device__ __forceinline__ void publish_copies() {
    asm volatile("bar.sync 0, %0;" ::"n"(kCtaThreads + kWarpLanes) : "memory");
  }
};

/// Asks all lanes of the warp for the sum where only those that store an LSE run.
struct DivergentShuffle : CorrectAttention {
  static __device__ __forceinline__ float log_sum_exp(float maximum_log2, float sum) {
    const float whole = (sum + shuffle_xor(sum, 1)) * 0.5F;
    return CorrectAttention::log_sum_exp(maximum_log2, whole);
  }
};

}  // namespace cpverify::kernels
