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

/// A row that the mask leaves nothing of gives zeros.
extern "C" __global__ void masked_softmax(const float* scores, float* out, int num_keys) {
  const int i = kernels::thread_index();
  const float score = i < num_keys ? scores[i] : kernels::kNegativeInfinity;
  const float largest = kernels::warp_maximum(score);
  const float base = largest == kernels::kNegativeInfinity ? 0.0F : largest;
  const float weight = kernels::exp2_approximate(score - base);
  const float sum = kernels::warp_sum(weight);
  out[i] = sum > 0.0F ? weight / sum : 0.0F;
}

/// Of two partial results without keys, the merged one is zeros with LSE -inf.
extern "C" __global__ void merge_of_partials(const float* outs, const float* lses, float* out,
                                             float* lse) {
  const int i = kernels::thread_index();
  const float largest = kernels::maximum(lses[0], lses[1]);
  const float base = largest == kernels::kNegativeInfinity ? 0.0F : largest;
  const float first = kernels::exp2_approximate(lses[0] - base);
  const float second = kernels::exp2_approximate(lses[1] - base);
  const float weights = first + second;
  const float sum = first * outs[i] + second * outs[32 + i];
  out[i] = weights > 0.0F ? sum / weights : 0.0F;
  if (i == 0) lse[0] = base + kernels::log2_approximate(weights);
}

/// Lanes of a warp add up in shared memory and meet between the steps.
extern "C" __global__ void sum_with_syncwarp(const int* in, int* out) {
  __shared__ int sums[32];
  const int i = kernels::thread_index();
  kernels::store_shared(sums + i, in[i]);
  kernels::synchronise_warp();
#pragma unroll 1
  for (int half = 16; half >= 8; half /= 2) {
    const int other = i < half ? kernels::load_shared(sums + i + half) : 0;
    kernels::synchronise_warp();
    if (i < half) kernels::store_shared(sums + i, kernels::load_shared(sums + i) + other);
    kernels::synchronise_warp();
  }
  out[i] = kernels::load_shared(sums + (i & 7));
}

/// Lanes with different numbers of turns meet before the barrier.
extern "C" __global__ void barrier_behind_uneven_loop(const int* turns, int* out) {
  const int i = kernels::thread_index();
  int sum = 0;
#pragma unroll 1
  for (int turn = 0; turn < turns[i]; ++turn) sum += turns[turn];
  kernels::barrier();
  out[i] = sum;
}

/// The mask names the lanes that take the branch.
extern "C" __global__ void sum_of_some_lanes(const int* in, int* out, int count) {
  const int i = kernels::thread_index();
  int sum = 0;
  if (i < count) {
    const unsigned mask = count < 32 ? (1U << static_cast<unsigned>(count)) - 1 : ~0U;
    asm volatile("redux.sync.add.s32 %0, %1, %2;" : "=r"(sum) : "r"(in[i]), "r"(mask));
  }
  out[i] = sum;
}
