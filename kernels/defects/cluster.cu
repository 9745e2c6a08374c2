#include "defects/defect.cuh"

// Clusters of two CTAs of 32 threads.

namespace kernels = cpverify::kernels;

constexpr int kRows = 32;

/// Nothing is between the writes into the neighbour's shared memory and their reads there.
extern "C" __global__ void exchange_without_barrier(int* out) {
  __shared__ int rows[kRows];
  const int i = kernels::thread_index();
  rows[i] = -1;
  kernels::cluster_barrier();
  kernels::store_remote(&rows[i], kernels::cluster_rank() ^ 1U, kernels::global_index());  // defect
  out[kernels::global_index()] = kernels::load_shared(&rows[i]);                           // defect
  kernels::cluster_barrier();
}

/// A barrier of each CTA is none of both.
extern "C" __global__ void exchange_with_barrier_of_cta(int* out) {
  __shared__ int rows[kRows];
  const int i = kernels::thread_index();
  rows[i] = -1;
  kernels::cluster_barrier();
  kernels::store_remote(&rows[i], kernels::cluster_rank() ^ 1U, kernels::global_index());  // defect
  kernels::barrier();
  out[kernels::global_index()] = kernels::load_shared(&rows[i]);  // defect
  kernels::cluster_barrier();
}

// The twin without a defect: nothing may be reported.

extern "C" __global__ void exchange(int* out) {
  __shared__ int rows[kRows];
  const int i = kernels::thread_index();
  rows[i] = -1;
  kernels::cluster_barrier();
  kernels::store_remote(&rows[i], kernels::cluster_rank() ^ 1U, kernels::global_index());
  kernels::cluster_barrier();
  out[kernels::global_index()] = kernels::load_shared(&rows[i]);
  kernels::cluster_barrier();
}
