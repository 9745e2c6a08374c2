#include "kv_write.cuh"

/// Writes the rows of negative slots into slot 0, which belongs to the null block.
struct NegativeSlotToZero {
  static __device__ __forceinline__ bool is_skipped(long long /*slot*/) { return false; }
  static __device__ __forceinline__ long long target_slot(long long slot) {
    return slot < 0 ? 0 : slot;
  }
};

using EntryPolicy = NegativeSlotToZero;

#include "kv_write_entries.inc"
