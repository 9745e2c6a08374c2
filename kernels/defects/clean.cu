#include "defects/defect.cuh"

// Twins of the other files' kernels without a defect: nothing may be reported.

namespace kernels = cpverify::kernels;
using kernels::Vector16;

extern "C" __global__ void copy_guarded(const float* in, float* out, int count) {
  const int i = kernels::global_index();
  if (i < count) out[i] = in[i];
}

/// An empty page gives zeros.
extern "C" __global__ void read_pages(const int* block_table, const float* pool, float* out) {
  const int i = kernels::thread_index();
  const int page = block_table[i / 16];
  out[i] = page < 0 ? 0.0F : pool[page * 16 + i % 16];
}

extern "C" __global__ void reverse_in_dynamic_shared(const Vector16* in, Vector16* out) {
  extern __shared__ Vector16 dynamic[];
  const int i = kernels::thread_index();
  dynamic[i] = in[i];
  kernels::barrier();
  out[i] = dynamic[kernels::block_threads() - 1 - i];
}

/// Rows past the last are zeros: only the bytes that are there are read.
extern "C" __global__ void copy_with_zero_fill(const float* rows, float* out, int num_rows) {
  __shared__ float tile[32 * 4];
  const int i = kernels::thread_index();
  const int source_bytes = i < num_rows ? 16 : 0;
  kernels::copy_async(tile + i * 4, rows + i * 4, source_bytes);
  kernels::commit_async();
  kernels::wait_async<0>();
  out[i] = tile[i * 4];
}

extern "C" __global__ void pipeline(const float* in, float* out, int num_tiles) {
  __shared__ float stages[2][128 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(&stages[0][i * 4], in + i * 4);
  kernels::commit_async();
  float sum = 0.0F;
#pragma unroll 1
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int next = tile + 1 < num_tiles ? tile + 1 : tile;
    kernels::copy_async(&stages[(tile + 1) & 1][i * 4], in + (next * 128 + i) * 4);
    kernels::commit_async();
    kernels::wait_async<1>();
    kernels::barrier();
    sum += stages[tile & 1][(127 - i) * 4];
    kernels::barrier();
  }
  kernels::wait_async<0>();
  out[i] = sum;
}

extern "C" __global__ void scan(const float* in, float* out) {
  __shared__ float sums[64];
  const int i = kernels::thread_index();
  sums[i] = in[i];
  kernels::barrier();
#pragma unroll 1
  for (int distance = 1; distance < 64; distance *= 2) {
    const float left = i >= distance ? sums[i - distance] : 0.0F;
    kernels::barrier();
    sums[i] = sums[i] + left;
    kernels::barrier();
  }
  out[i] = sums[i];
}

extern "C" __global__ void histogram(const int* values, int* bins) {
  kernels::atomic_add(bins + values[kernels::global_index()], 1);
}

extern "C" __global__ void last_block(const float* in, float* partial, int* finished, float* out) {
  const float sum = kernels::warp_sum(in[kernels::global_index()]);
  if (kernels::thread_index() != 0) return;
  partial[kernels::block_index_x()] = sum;
  kernels::fence();
  if (kernels::atomic_add(finished, 1) != kernels::grid_blocks() - 1) return;
  kernels::fence();
  float total = 0.0F;
#pragma unroll 1
  for (int block = 0; block < kernels::grid_blocks(); ++block) total += partial[block];
  out[0] = total;
}

extern "C" __global__ void flag_between_ctas(int* flag, int* data, int* out) {
  if (kernels::thread_index() != 0) return;
  if (kernels::block_index_x() == 0) {
    data[0] = 7;
    kernels::fence();
    kernels::store_volatile(flag, 1);
    return;
  }
  while (kernels::load_volatile(flag) == 0) {
  }
  kernels::fence();
  out[0] = data[0];
}

/// Warp 0 produces, warp 1 consumes; each goes on as soon as it may.
extern "C" __global__ void producer_and_consumer(const int* in, int* out) {
  __shared__ int tile[32];
  const int i = kernels::thread_index();
  if (i < 32) {
    tile[i] = in[i];
    kernels::arrive(1, 64);
  } else {
    kernels::barrier(1, 64);
    out[i - 32] = tile[63 - i];
  }
}
