#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;

/// Barriers are numbered 0 to 15.
extern "C" __global__ void barrier_of_each_group(int* out) {
  const int i = kernels::thread_index();
  kernels::barrier(i / 32, 32);  // defect
  out[i] = i;
}

/// A barrier takes whole warps.
extern "C" __global__ void barrier_of_the_valid(int* out, int valid) {
  const int i = kernels::thread_index();
  kernels::barrier(1, valid);  // defect
  out[i] = i;
}

/// Lanes of a warp name different barriers.
extern "C" __global__ void barrier_of_each_lane(int* out) {
  const int i = kernels::thread_index();
  kernels::barrier(i % 2 + 1, 64);  // defect
  out[i] = i;
}

/// Producers count all warps, consumers forget those that only produce.
extern "C" __global__ void barrier_counts_differ(int* out) {
  const int i = kernels::thread_index();
  const int threads = i < 32 ? 96 : 64;
  kernels::barrier(1, threads);  // defect
  out[i] = i;
}

/// The last tile is announced, and nobody waits for it.
extern "C" __global__ void arrival_of_the_last_tile(int* out, int tiles) {
  const int i = kernels::thread_index();
#pragma unroll 1
  for (int tile = 0; tile < tiles; ++tile) {
    if (i < 32) {
      kernels::arrive(1, 64);  // defect
    } else if (tile + 1 < tiles) {
      kernels::barrier(1, 64);
    }
    kernels::barrier();
  }
  out[i] = i;
}

/// Lanes leave the loop after different turns; the barrier is inside.
extern "C" __global__ void barrier_in_uneven_loop(const int* turns, int* out) {
  const int i = kernels::thread_index();
#pragma unroll 1
  for (int turn = 0; turn < turns[i]; ++turn) {
    kernels::barrier();  // defect
    out[i] = turn;
  }
}

/// Every lane is asked for its part of the sum, and some rows have no such lane.
extern "C" __global__ void sum_in_divergent_code(const float* in, float* out, int count) {
  const int i = kernels::thread_index();
  float value = in[i];
  if (i < count) {
    value += kernels::shuffle_xor(value, 1);  // defect
  }
  out[i] = value;
}

/// The mask is that of the even lanes, and all execute it.
extern "C" __global__ void sum_with_mask_of_others(const int* in, int* out) {
  const int i = kernels::thread_index();
  int sum = in[i];
  asm volatile("redux.sync.add.s32 %0, %0, 0x55555555;" : "+r"(sum));  // defect
  out[i] = sum;
}

/// The lanes of a warp add up in shared memory, as if they ran in lockstep.
extern "C" __global__ void sum_without_syncwarp(const int* in, int* out) {
  __shared__ int sums[32];
  const int i = kernels::thread_index();
  kernels::store_shared(sums + i, in[i]);
  kernels::synchronise_warp();
  if (i < 16) {
    const int other = kernels::load_shared(sums + i + 16);
    kernels::store_shared(sums + i, kernels::load_shared(sums + i) + other);
  }
  if (i < 8) {
    const int other = kernels::load_shared(sums + i + 8);  // defect
    kernels::store_shared(sums + i, kernels::load_shared(sums + i) + other);
  }
  kernels::synchronise_warp();
  out[i] = sums[i & 7];
}

/// Lane 0 sets the flag behind the loop in which the others wait for it: where threads are
/// converged, it waits there for them.
extern "C" __global__ void lane_waits_for_lane(int* flag, int* out) {
  const int i = kernels::thread_index();
  bool is_done = i == 0;
  while (!is_done) {
    is_done = kernels::load_volatile(flag) != 0;  // defect
  }
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  if (lane == 0) kernels::store_volatile(flag, 1);
  out[i] = i;
}
