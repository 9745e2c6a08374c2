#include "kv_write.cuh"

/// Takes two neighbouring slots for one: two rows, of different CTAs or warps, are written there.
struct TwoRowsInOneSlot {
  static __device__ __forceinline__ bool is_skipped(long long slot) { return slot < 0; }
  static __device__ __forceinline__ long long target_slot(long long slot) { return slot / 2 * 2; }
};

using EntryPolicy = TwoRowsInOneSlot;

#include "kv_write_entries.inc"
