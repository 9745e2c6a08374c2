#include "defects/defect.cuh"

// Mbarriers and bulk copies, as sm_90 has them.

namespace kernels = cpverify::kernels;

constexpr int kTileWords = 64;
constexpr int kTileBytes = kTileWords * 4;

/// Nobody waits for the tile: the CTA ends while it is still being copied.
extern "C" __global__ void unfinished_prefetch(const int* in, int* out) {
  alignas(16) __shared__ int tile[kTileWords];
  __shared__ unsigned long long full;
  const int i = kernels::thread_index();
  if (i == 0) {
    kernels::mbarrier_init(&full, 1);
    kernels::fence_async();
    kernels::mbarrier_expect(&full, kTileBytes);
    kernels::copy_bulk(tile, in, kTileBytes, &full);  // defect
  }
  kernels::barrier();
  out[i] = i;
}

/// The next tile comes into the buffer that slow warps still read.
extern "C" __global__ void refill_without_barrier(const int* in, int* out) {
  alignas(16) __shared__ int tile[kTileWords];
  __shared__ unsigned long long full[2];
  const int i = kernels::thread_index();
  if (i < 2) kernels::mbarrier_init(&full[i], 1);
  kernels::fence_async();
  kernels::barrier();
  int sum = 0;
#pragma unroll 1
  for (int t = 0; t < 2; ++t) {
    if (i == 0) {
      kernels::mbarrier_expect(&full[t], kTileBytes);
      kernels::copy_bulk(tile, in + t * kTileWords, kTileBytes, &full[t]);  // defect
    }
    kernels::mbarrier_wait(&full[t], 0);
    sum += tile[kTileWords - 1 - i];  // defect
  }
  out[i] = sum;
}

/// The parity is that of the phase before, so that the wait is over at once.
extern "C" __global__ void wait_with_wrong_parity(const int* in, int* out) {
  alignas(16) __shared__ int tile[kTileWords];
  __shared__ unsigned long long full;
  const int i = kernels::thread_index();
  if (i == 0) {
    kernels::mbarrier_init(&full, 1);
    kernels::fence_async();
    kernels::mbarrier_expect(&full, kTileBytes);
    kernels::copy_bulk(tile, in, kTileBytes, &full);
  }
  kernels::barrier();
  kernels::mbarrier_wait(&full, 1);
  out[i] = tile[i];  // defect
  kernels::mbarrier_wait(&full, 0);
}

/// More bytes are expected than are copied.
extern "C" __global__ void expects_too_many_bytes(const int* in, int* out) {
  alignas(16) __shared__ int tile[kTileWords];
  __shared__ unsigned long long full;
  const int i = kernels::thread_index();
  if (i == 0) {
    kernels::mbarrier_init(&full, 1);
    kernels::fence_async();
    kernels::mbarrier_expect(&full, kTileBytes);
    kernels::copy_bulk(tile, in, kTileBytes - 16, &full);
  }
  kernels::barrier();
  kernels::mbarrier_wait(&full, 0);  // defect
  out[i] = tile[i];
}

/// Ordinary stores are not seen by a bulk copy before a fence of the asynchronous proxy.
extern "C" __global__ void store_without_proxy_fence(int* out) {
  alignas(16) __shared__ int tile[kTileWords];
  const int i = kernels::thread_index();
  tile[i] = i;
  kernels::barrier();
  if (i == 0) {
    kernels::store_bulk(out, tile, kTileBytes);  // defect
    kernels::wait_bulk_stores();
  }
}

/// An arrival at an object that nobody has initialised.
extern "C" __global__ void mbarrier_without_init(int* out) {
  __shared__ unsigned long long object;
  const int i = kernels::thread_index();
  kernels::mbarrier_arrive(&object);  // defect
  out[i] = i;
}

/// The object is for the warps that have work, and there are none.
extern "C" __global__ void mbarrier_for_nobody(int* out, int warps) {
  __shared__ unsigned long long object;
  const int i = kernels::thread_index();
  if (i == 0) kernels::mbarrier_init(&object, warps);  // defect
  kernels::barrier();
  out[i] = i;
}

/// One of the threads that the object counts returns early.
extern "C" __global__ void mbarrier_arrival_missing(int* out, int count) {
  __shared__ unsigned long long object;
  const int i = kernels::thread_index();
  if (i == 0) kernels::mbarrier_init(&object, 64);
  kernels::barrier();
  if (i >= count) return;
  kernels::mbarrier_arrive(&object);
  kernels::mbarrier_wait(&object, 0);  // defect
  out[i] = i;
}

// The twins without a defect: nothing may be reported.

extern "C" __global__ void refill(const int* in, int* out, int tiles) {
  alignas(16) __shared__ int tile[kTileWords];
  __shared__ unsigned long long full;
  const int i = kernels::thread_index();
  if (i == 0) kernels::mbarrier_init(&full, 1);
  kernels::fence_async();
  kernels::barrier();
  int sum = 0;
#pragma unroll 1
  for (int t = 0; t < tiles; ++t) {
    if (i == 0) {
      kernels::mbarrier_expect(&full, kTileBytes);
      kernels::copy_bulk(tile, in + t * kTileWords, kTileBytes, &full);
    }
    kernels::mbarrier_wait(&full, t & 1);
    sum += tile[kTileWords - 1 - i];
    kernels::barrier();
  }
  out[i] = sum;
}

extern "C" __global__ void store_with_proxy_fence(int* out) {
  alignas(16) __shared__ int tile[kTileWords];
  const int i = kernels::thread_index();
  tile[i] = i;
  kernels::fence_async();
  kernels::barrier();
  if (i == 0) {
    kernels::store_bulk(out, tile, kTileBytes);
    kernels::wait_bulk_stores();
  }
}
