#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;

/// Reads what another warp writes, without a barrier.
extern "C" __global__ void missing_barrier_read_after_write(const float* in, float* out) {
  __shared__ float tile[128];
  const int i = kernels::thread_index();
  tile[i] = 0.0F;
  kernels::barrier();
  tile[i] = in[i];         // defect
  out[i] = tile[127 - i];  // defect
}

/// Overwrites what another warp may not have read.
extern "C" __global__ void missing_barrier_write_after_read(const float* in, float* out) {
  __shared__ float tile[128];
  const int i = kernels::thread_index();
  tile[i] = in[i];
  kernels::barrier();
  const float value = tile[127 - i];  // defect
  tile[i] = value * 2.0F;             // defect
  kernels::barrier();
  out[i] = tile[i];
}

/// Two warps write one place; the later one wins.
extern "C" __global__ void missing_barrier_write_after_write(float* out) {
  __shared__ float tile[32];
  const int i = kernels::thread_index();
  tile[i & 31] = static_cast<float>(i);  // defect
  kernels::barrier();
  if (i < 32) out[i] = tile[i];
}

/// The barrier between write and read is there, the one between read and next write is not.
extern "C" __global__ void one_sided_barrier_in_loop(const float* in, float* out, int num_tiles) {
  __shared__ float tile[128];
  const int i = kernels::thread_index();
  float sum = 0.0F;
#pragma unroll 1
  for (int step = 0; step < num_tiles; ++step) {
    tile[i] = in[step * 128 + i];  // defect
    kernels::barrier();
    sum += tile[127 - i];  // defect
  }
  out[i] = sum;
}

/// Each half of the CTA waits for itself and reads what the other wrote.
extern "C" __global__ void wrong_barrier_id(const float* in, float* out) {
  __shared__ float tile[128];
  const int i = kernels::thread_index();
  tile[i] = 0.0F;
  kernels::barrier();
  tile[i] = in[i];
  kernels::barrier(1 + i / 64, 64);
  out[i] = tile[127 - i];  // defect
}

/// Two block sums share their buffer.
extern "C" __global__ void reduction_buffer_reused(const float* in, float* out) {
  __shared__ float sums[4];
  const int i = kernels::thread_index();
  const float sum = kernels::warp_sum(in[i]);
  if (kernels::lane_index() == 0) sums[kernels::warp_index()] = sum;
  kernels::barrier();
  const float total = sums[0] + sums[1] + sums[2] + sums[3];  // defect
  const float square = kernels::warp_sum(in[i] * in[i]);
  if (kernels::lane_index() == 0) sums[kernels::warp_index()] = square;  // defect
  kernels::barrier();
  out[i] = total + sums[0] + sums[1] + sums[2] + sums[3];
}

/// Kernels end before what they wrote is there for others; CTAs of one launch have no order.
extern "C" __global__ void read_of_another_cta(float* rows, float* out) {
  const int i = kernels::global_index();
  const int count = kernels::grid_blocks() * kernels::block_threads();
  rows[i] = static_cast<float>(i);  // defect
  out[i] = rows[count - 1 - i];     // defect
}

/// The last CTA to finish adds up what the others left, which nothing makes visible to it.
extern "C" __global__ void last_block_without_fence(const float* in, float* partial, int* finished,
                                                    float* out) {
  const float sum = kernels::warp_sum(in[kernels::global_index()]);
  if (kernels::thread_index() != 0) return;
  partial[kernels::block_index_x()] = sum;
  if (kernels::atomic_add(finished, 1) != kernels::grid_blocks() - 1) return;
  float total = 0.0F;
#pragma unroll 1
  for (int block = 0; block < kernels::grid_blocks(); ++block) {
    total += partial[block];  // defect
  }
  out[0] = total;
}

extern "C" __global__ void plain_counter(int* counter) {
  if (kernels::thread_index() != 0) return;
  counter[0] = counter[0] + 1;  // defect
}

/// CTA 1 waits for a flag that CTA 0 sets, with accesses that order nothing.
extern "C" __global__ void plain_flag(int* flag, int* data, int* out) {
  if (kernels::block_index_x() == 0) {
    data[0] = 7;
    kernels::fence();
    kernels::store_volatile(flag, 1);
    return;
  }
  while (kernels::load_plain(flag) == 0) {  // defect
  }
  out[0] = 1;
}

/// The tiles of two CTAs have a row in common.
extern "C" __global__ void overlapping_rows(float* out, int rows_of_cta) {
  const int i = kernels::thread_index();
  const int first_row = kernels::block_index_x() * rows_of_cta;
#pragma unroll 1
  for (int row = first_row; row <= first_row + rows_of_cta; ++row) {
    out[row * 32 + i] = static_cast<float>(kernels::block_index_x());  // defect
  }
}

extern "C" __global__ void plain_histogram(const int* values, int* bins) {
  const int bin = values[kernels::global_index()];
  bins[bin] = bins[bin] + 1;  // defect
}

/// A step of the scan reads and writes the same array without a barrier in between.
extern "C" __global__ void in_place_scan(const float* in, float* out) {
  __shared__ float sums[64];
  const int i = kernels::thread_index();
  sums[i] = in[i];
  kernels::barrier();
#pragma unroll 1
  for (int distance = 1; distance < 64; distance *= 2) {
    const float left = i >= distance ? sums[i - distance] : 0.0F;  // defect
    sums[i] = sums[i] + left;
    kernels::barrier();
  }
  out[i] = sums[i];
}

/// Two lanes store different values to one place.
extern "C" __global__ void lanes_share_a_place(int* out) {
  const int i = kernels::thread_index();
  out[i / 2] = i;  // defect
}

/// Every CTA normalises by a maximum that others are still raising.
extern "C" __global__ void maximum_read_too_early(const float* in, float* maxima, float* out) {
  const int i = kernels::global_index();
  const float largest = kernels::warp_maximum(in[i]);
  if (kernels::thread_index() == 0) maxima[kernels::block_index_x()] = largest;    // defect
  out[i] = in[i] / maxima[kernels::grid_blocks() - 1 - kernels::block_index_x()];  // defect
}

/// The request's slot is written by two CTAs that both think it theirs.
extern "C" __global__ void one_slot_of_two_tokens(const int* slots, const float* k, float* pool) {
  const int token = kernels::block_index_x();
  const int i = kernels::thread_index();
  pool[slots[token] * 32 + i] = k[token * 32 + i];  // defect
}
