#pragma once

#include "device.cuh"
#include "row_copy.cuh"

namespace cpverify::kernels {

/// Parameters of the entry, in order; contracts/kv_write.md says what they mean.
struct KvWriteArguments {
  const unsigned char* k;
  const unsigned char* v;
  const long long* slot_mapping;
  unsigned char* k_pool;
  unsigned char* v_pool;
  int num_rows;
  int row_bytes;
  long long source_stride_bytes;
};

struct CorrectKvWrite {
  /// Pad rows carry a negative slot and are not written.
  static __device__ __forceinline__ bool is_skipped(long long slot) { return slot < 0; }
  static __device__ __forceinline__ long long target_slot(long long slot) { return slot; }
};

/// Body of the entry. Grid ceil(num_rows / 4), 128 threads.
template <class Policy>
__device__ __forceinline__ void kv_write_rows(const KvWriteArguments& arguments) {
  const int row = warp_row();
  if (row >= arguments.num_rows) return;
  const long long slot = arguments.slot_mapping[row];
  if (Policy::is_skipped(slot)) return;
  const long long source = row * arguments.source_stride_bytes;
  const long long target = Policy::target_slot(slot) * arguments.row_bytes;
  copy_row(arguments.k + source, arguments.k_pool + target, arguments.row_bytes);
  copy_row(arguments.v + source, arguments.v_pool + target, arguments.row_bytes);
}

}  // namespace cpverify::kernels
