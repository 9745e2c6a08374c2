#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;

/// A two-stage pipeline: while a tile is used, the next one is copied. Nothing keeps a fast warp
/// from refilling a stage that slow warps still read. On most days the output is right.
extern "C" __global__ void pipeline_without_trailing_barrier(const float* in, float* out,
                                                             int num_tiles) {
  __shared__ float stages[2][128 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(&stages[0][i * 4], in + i * 4);
  kernels::commit_async();
  float sum = 0.0F;
#pragma unroll 1
  for (int tile = 0; tile < num_tiles; ++tile) {
    const int next = tile + 1 < num_tiles ? tile + 1 : tile;
    kernels::copy_async(&stages[(tile + 1) & 1][i * 4], in + (next * 128 + i) * 4);  // defect
    kernels::commit_async();
    kernels::wait_async<1>();
    kernels::barrier();
    sum += stages[tile & 1][(i < 96 ? i + 32 : i) * 4];
  }
  kernels::wait_async<0>();
  out[i] = sum;
}

/// The copies are committed and nobody waits for them.
extern "C" __global__ void missing_wait(const float* in, float* out) {
  __shared__ float tile[32 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(tile + i * 4, in + i * 4);
  kernels::commit_async();
  kernels::barrier();
  out[i] = tile[(31 - i) * 4];  // defect
  kernels::wait_async<0>();
}

/// Waits for all groups but the newest, which is the one that it uses.
extern "C" __global__ void wait_for_too_few(const float* in, float* out) {
  __shared__ float tiles[2][32 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(&tiles[0][i * 4], in + i * 4);
  kernels::commit_async();
  kernels::copy_async(&tiles[1][i * 4], in + (32 + i) * 4);
  kernels::commit_async();
  kernels::wait_async<1>();
  kernels::barrier();
  const float first = tiles[0][(31 - i) * 4];
  out[i] = first + tiles[1][(31 - i) * 4];  // defect
  kernels::wait_async<0>();
}

/// A wait is for the thread's own copies: those of other warps need a barrier as well.
extern "C" __global__ void missing_barrier_after_wait(const float* in, float* out) {
  __shared__ float tile[128 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(tile + i * 4, in + i * 4);  // defect
  kernels::commit_async();
  kernels::wait_async<0>();
  out[i] = tile[(127 - i) * 4];  // defect
}

/// The source is overwritten while it is copied.
extern "C" __global__ void source_overwritten_in_flight(float* rows, float* out) {
  __shared__ float tile[32 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(tile + i * 4, rows + i * 4);
  kernels::commit_async();
  rows[i * 4] = 0.0F;  // defect
  kernels::wait_async<0>();
  kernels::barrier();
  out[i] = tile[(31 - i) * 4];
}

/// The target is cleared after the copy began.
extern "C" __global__ void target_written_in_flight(const float* in, float* out) {
  __shared__ float tile[32 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(tile + i * 4, in + i * 4);
  kernels::commit_async();
  tile[i * 4] = 0.0F;  // defect
  kernels::wait_async<0>();
  kernels::barrier();
  out[i] = tile[(31 - i) * 4];
}

extern "C" __global__ void copy_past_the_end(const float* in, float* out) {
  __shared__ float tile[32 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(tile + i * 4, in + (i + 1) * 4);  // defect
  kernels::commit_async();
  kernels::wait_async<0>();
  kernels::barrier();
  out[i] = tile[(31 - i) * 4];
}

extern "C" __global__ void misaligned_copy(const float* in, float* out) {
  __shared__ float tile[33 * 4];
  const int i = kernels::thread_index();
  kernels::copy_async(tile + i * 4, in + i * 4 + 2);  // defect
  kernels::commit_async();
  kernels::wait_async<0>();
  kernels::barrier();
  out[i] = tile[(31 - i) * 4];
}
