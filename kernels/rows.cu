#include "device.cuh"
#include "row_copy.cuh"

namespace kernels = cpverify::kernels;

/// target[i] = source[index[i]]; a row of zeros where index[i] < 0.
extern "C" __global__ void __launch_bounds__(128)
    gather_rows(const unsigned char* source, const int* index, unsigned char* target, int num_rows,
                int row_bytes, long long source_stride_bytes, long long target_stride_bytes) {
  const int row = kernels::warp_row();
  if (row >= num_rows) return;
  unsigned char* const target_row = target + row * target_stride_bytes;
  const int source_row = index[row];
  if (source_row < 0) {
    kernels::zero_row(target_row, row_bytes);
  } else {
    kernels::copy_row(source + source_row * source_stride_bytes, target_row, row_bytes);
  }
}

/// target[index[i]] = source[i]; nothing where index[i] < 0.
extern "C" __global__ void __launch_bounds__(128)
    scatter_rows(const unsigned char* source, const int* index, unsigned char* target, int num_rows,
                 int row_bytes, long long source_stride_bytes, long long target_stride_bytes) {
  const int row = kernels::warp_row();
  if (row >= num_rows) return;
  const int target_row = index[row];
  if (target_row < 0) return;
  kernels::copy_row(source + row * source_stride_bytes, target + target_row * target_stride_bytes,
                    row_bytes);
}

/// Zeros in rows [first_row, first_row + num_rows) of target.
extern "C" __global__ void __launch_bounds__(128)
    pad_rows(unsigned char* target, int first_row, int num_rows, int row_bytes,
             long long target_stride_bytes) {
  const int row = kernels::warp_row();
  if (row >= num_rows) return;
  const long long target_row = static_cast<long long>(first_row) + row;
  kernels::zero_row(target + target_row * target_stride_bytes, row_bytes);
}
