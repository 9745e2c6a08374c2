#include "defects/defect.cuh"

namespace kernels = cpverify::kernels;
using kernels::Index;
using kernels::Vector16;
using kernels::Vector8;

extern "C" __global__ void read_one_past_the_end(const float* in, float* out) {
  const int i = kernels::global_index();
  out[i] = in[i + 1];  // defect
}

extern "C" __global__ void write_one_past_the_end(const float* in, float* out) {
  const int i = kernels::global_index();
  out[i + 1] = in[i];  // defect
}

extern "C" __global__ void read_before_the_start(const float* in, float* out) {
  const int i = kernels::global_index();
  out[i] = in[i - 1];  // defect
}

/// Threads beyond `count` should have left.
extern "C" __global__ void guard_off_by_one(const float* in, float* out, int count) {
  const int i = kernels::global_index();
  if (i > count) return;
  const float value = i < count ? in[i] : 0.0F;
  out[i] = value;  // defect
}

/// row * row_floats needs more than 32 bits.
extern "C" __global__ void index_wraps_in_32_bits(const float* in, float* out,
                                                  unsigned row_floats) {
  const unsigned row = static_cast<unsigned>(kernels::thread_index());
  const int offset = static_cast<int>(row * row_floats);
  out[row] = in[offset];  // defect
}

extern "C" __global__ void read_freed(const float* in, float* out) {
  const int i = kernels::global_index();
  out[i] = in[i];  // defect
}

extern "C" __global__ void shared_past_the_end(const float* in, float* out, int shift) {
  __shared__ float tile[32];
  const int i = kernels::thread_index();
  tile[i + shift] = in[i];  // defect
  kernels::barrier();
  out[i] = tile[31 - i];
}

extern "C" __global__ void dynamic_shared_too_small(const float* in, float* out) {
  extern __shared__ float dynamic[];
  const int i = kernels::thread_index();
  dynamic[i] = in[i];  // defect
  kernels::barrier();
  out[i] = dynamic[kernels::block_threads() - 1 - i];
}

extern "C" __global__ void local_past_the_end(const float* in, float* out, int count) {
  float window[4];
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    window[i] = in[i];  // defect
  }
  const int i = kernels::thread_index();
  out[i] = window[i & 3];
}

extern "C" __global__ void misaligned_8_bytes(const unsigned char* in, Vector8* out) {
  const int i = kernels::thread_index();
  out[i] = *reinterpret_cast<const Vector8*>(in + i * 8 + 4);  // defect
}

extern "C" __global__ void misaligned_16_bytes(const Vector16* in, unsigned char* out) {
  const int i = kernels::thread_index();
  *reinterpret_cast<Vector16*>(out + i * 16 + 8) = in[i];  // defect
}

extern "C" __global__ void null_pointer(const float* in, float* out) {
  const int i = kernels::thread_index();
  const float value = in[i];  // defect
  out[i] = value;
}

/// The last block of the request has no page yet.
extern "C" __global__ void page_minus_one(const int* block_table, const float* pool, float* out) {
  const int i = kernels::thread_index();
  const int page = block_table[i / 16];
  out[i] = pool[page * 16 + i % 16];  // defect
}

/// An offset into shared memory is no global address.
extern "C" __global__ void shared_address_as_global(float* out) {
  __shared__ float tile[32];
  const int i = kernels::thread_index();
  tile[i] = 1.0F;
  const auto address = static_cast<unsigned long long>(kernels::shared_address(tile + i));
  float value;
  asm volatile("ld.global.f32 %0, [%1];" : "=f"(value) : "l"(address));  // defect
  out[i] = value + tile[31 - i];
}

/// 16 bytes per thread of a row that is no multiple of them.
extern "C" __global__ void vector_over_the_tail(const Vector16* in, Vector16* out) {
  const int i = kernels::thread_index();
  out[i] = in[i];  // defect
}
