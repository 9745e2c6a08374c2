#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;
using kernels::Vector16;

extern "C" __global__ void read_unwritten_buffer(const float* in, float* out) {
  const int i = kernels::global_index();
  out[i] = in[i] + 1.0F;  // defect
}

extern "C" __global__ void read_unwritten_tile(float* out, int first) {
  __shared__ float tile[64];
  const int i = kernels::thread_index();
  tile[i] = 1.0F;
  kernels::barrier();
  out[i] = tile[first + i];  // defect
}

/// Writes `count` of the 8 that are summed.
extern "C" __global__ void read_unwritten_local(const float* in, float* out, int count, int last) {
  float window[8];
#pragma unroll 1
  for (int i = 0; i < count; ++i) window[i] = in[i];
  const int i = kernels::thread_index();
  out[i] = window[last];  // defect
}

extern "C" __global__ void write_three_of_four(const float* in, float* out) {
  const int i = kernels::thread_index();
#pragma unroll
  for (int j = 0; j < 3; ++j) out[i * 4 + j] = in[i];
}

/// The four words of a vector.
__device__ __intrinsic__ unsigned sum_of_vector(const Vector16* place) {
  unsigned x, y, z, w;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x), "=r"(y), "=r"(z), "=r"(w)
               : "l"(place));
  return x + y + z + w;
}

extern "C" __global__ void read_padding(const Vector16* rows, unsigned* out) {
  const int i = kernels::thread_index();
  out[i] = sum_of_vector(rows + i);  // defect
}

extern "C" __global__ void write_low_halves(unsigned short* words) {
  const int i = kernels::thread_index();
  words[i * 2] = static_cast<unsigned short>(i);
}

extern "C" __global__ void read_half_written_words(const unsigned* words, unsigned* out) {
  const int i = kernels::thread_index();
  out[i] = words[i];  // defect
}

extern "C" __global__ void write_rows(const float* in, float* rows, int num_rows) {
  const int i = kernels::thread_index();
  if (i >= num_rows) return;
#pragma unroll
  for (int j = 0; j < 4; ++j) rows[i * 4 + j] = in[i];
}

/// The last row of the source is not there, and is copied all the same instead of filled with
/// zeros.
extern "C" __global__ void copy_without_zero_fill(const float* rows, float* out, int num_rows) {
  __shared__ float tile[32 * 4];
  const int i = kernels::thread_index();
  const int source_bytes = i <= num_rows ? 16 : 0;
  kernels::copy_async(tile + i * 4, rows + i * 4, source_bytes);
  kernels::commit_async();
  kernels::wait_async<0>();
  out[i] = tile[i * 4];  // defect
}

/// Reads the stage that is filled next, not the one that was filled last.
extern "C" __global__ void read_other_stage(const float* in, float* out, int num_tiles) {
  __shared__ float stages[2][32];
  const int i = kernels::thread_index();
#pragma unroll 1
  for (int tile = 0; tile < num_tiles; ++tile) {
    stages[tile & 1][i] = in[tile * 32 + i];
    kernels::barrier();
    out[tile * 32 + i] = stages[(tile + 1) & 1][31 - i];  // defect
    kernels::barrier();
  }
}

/// One row less than the reader takes.
extern "C" __global__ void write_all_but_the_last(const float* in, float* out, int count) {
  const int i = kernels::global_index();
  if (i < count - 1) out[i] = in[i];
}

extern "C" __global__ void scale_all(const float* in, float* out, float factor) {
  const int i = kernels::global_index();
  out[i] = in[i] * factor;  // defect
}

/// The page is looked up for rows that have one, and the register is used for all.
extern "C" __global__ void page_register_never_written(const int* pages, const int* pool,
                                                       int* out) {
  const int i = kernels::thread_index();
  unsigned page;
  asm volatile(
      "{ .reg .u32 found; .reg .pred has_page; setp.ge.s32 has_page, %1, 0;"
      " @has_page mov.u32 found, %1; add.u32 %0, found, 0; }"
      : "=r"(page)
      : "r"(pages[i]));
  out[i] = pool[page & 3U];  // defect
}

/// Nobody has set the predicate.
extern "C" __global__ void branch_on_unwritten_predicate(int* out) {
  const int i = kernels::thread_index();
  out[i] = i;
  asm volatile(  // defect
      "{ .reg .pred is_last; @is_last bra SKIP; st.global.u32 [%0], %1; SKIP: }"
      :
      : "l"(out + i), "r"(i + 1)
      : "memory");
}
