#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;

/// Half a warp waits for the other half, which does not come.
extern "C" __global__ void barrier_in_half_a_warp(int* out) {
  const int i = kernels::thread_index();
  if (i % 32 < 16) {
    kernels::barrier();  // defect
  }
  out[i] = i;
}

/// The barrier is for 96 threads, and 64 come.
extern "C" __global__ void barrier_count_too_large(int* out) {
  const int i = kernels::thread_index();
  if (i < 64) {
    kernels::barrier(1, 96);  // defect
  }
  kernels::barrier();
  out[i] = i;
}

/// The producers leave without the arrival that the consumers wait for.
extern "C" __global__ void missing_arrive(int* out, int producers) {
  const int i = kernels::thread_index();
  if (i < 32 && producers > 0) kernels::arrive(1, 64);
  if (i >= 32) {
    kernels::barrier(1, 64);  // defect
  }
  out[i] = i;
}

/// Two warps take two barriers in opposite order.
extern "C" __global__ void barriers_in_opposite_order(int* out) {
  const int i = kernels::thread_index();
  const int first = 1 + i / 32;
  kernels::barrier(first, 64);  // defect
  kernels::barrier(3 - first, 64);
  out[i] = i;
}

/// Each CTA waits for the flag that the other sets afterwards.
extern "C" __global__ void ctas_wait_for_each_other(int* flags) {
  if (kernels::thread_index() != 0) return;
  const int cta = kernels::block_index_x();
  while (kernels::load_volatile(flags + 1 - cta) == 0) {  // defect
  }
  kernels::store_volatile(flags + cta, 1);
}

/// The lane that holds the lock waits for the lanes that want it.
extern "C" __global__ void lock_within_a_warp(int* lock, int* counter) {
  int old = 1;
  do {
    asm volatile("atom.global.cas.b32 %0, [%1], 0, 1;"  // defect
                 : "=r"(old)
                 : "l"(lock)
                 : "memory");
  } while (old != 0);
  counter[0] = kernels::load_volatile(counter) + 1;
  kernels::store_volatile(lock, 0);
}

/// Names lanes that do not execute the shuffle.
extern "C" __global__ void shuffle_mask_too_wide(int* out) {
  const int i = kernels::thread_index();
  int value = i;
  if (i < 16) {
    asm volatile("shfl.sync.idx.b32 %0, %0, 0, 31, 0xffffffff;" : "+r"(value));  // defect
  }
  out[i] = value;
}

/// Leaves out lanes that execute the vote.
extern "C" __global__ void vote_mask_too_narrow(int* out) {
  const int i = kernels::thread_index();
  unsigned votes;
  asm volatile(  // defect
      "{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffff; }"
      : "=r"(votes)
      : "r"(i));
  out[i] = static_cast<int>(votes);
}

/// The step may be 0. Counts, so that no state repeats.
extern "C" __global__ void endless_loop(int* out, int step) {
  int turns = 0;
#pragma unroll 1
  for (int i = 0; i < 100; i += step) {
    asm volatile("add.s32 %0, %0, 1;" : "+r"(turns));
  }
  out[0] = turns;
}

/// What an assertion becomes.
extern "C" __global__ void trap_on_bad_index(const int* index, int* out) {
  const int i = kernels::thread_index();
  if (index[i] < 0) {
    asm volatile("trap;");  // defect
  }
  out[i] = index[i];
}
