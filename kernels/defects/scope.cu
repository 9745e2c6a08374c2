#include "defects/defect.cuh"

// What orders the threads of a CTA need not order CTAs.

namespace kernels = cpverify::kernels;

namespace {

/// Adds 1, seen by the CTA only.
__device__ __intrinsic__ int count_within_cta(int* counter) {
  int old;
  asm volatile("atom.acq_rel.cta.global.add.u32 %0, [%1], 1;"
               : "=r"(old)
               : "l"(counter)
               : "memory");
  return old;
}

__device__ __intrinsic__ int count_on_device(int* counter) {
  int old;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;"
               : "=r"(old)
               : "l"(counter)
               : "memory");
  return old;
}

__device__ __intrinsic__ void fence_of_cta() {
  asm volatile("membar.cta;" : : : "memory");
}

}  // namespace

/// The ticket that tells the last CTA is drawn with an atomic of each CTA's own scope.
extern "C" __global__ void cta_scope_between_ctas(const int* in, int* partial, int* finished,
                                                  int* out) {
  const int cta = kernels::block_index_x();
  if (kernels::thread_index() != 0) return;
  partial[cta] = in[cta];
  if (count_within_cta(finished) != kernels::grid_blocks() - 1) return;  // defect
  int total = 0;
#pragma unroll 1
  for (int i = 0; i < kernels::grid_blocks(); ++i) {
    total += partial[i];  // defect
  }
  out[0] = total;
}

/// The fence before the flag is one for the CTA.
extern "C" __global__ void cta_fence_between_ctas(int* flag, int* data, int* out) {
  if (kernels::thread_index() != 0) return;
  if (kernels::block_index_x() == 0) {
    data[0] = 7;
    fence_of_cta();
    kernels::store_volatile(flag, 1);
    return;
  }
  while (kernels::load_volatile(flag) == 0) {
  }
  fence_of_cta();
  out[0] = data[0];  // defect
}

// The twins without a defect: nothing may be reported.

extern "C" __global__ void gpu_scope_between_ctas(const int* in, int* partial, int* finished,
                                                  int* out) {
  const int cta = kernels::block_index_x();
  if (kernels::thread_index() != 0) return;
  partial[cta] = in[cta];
  if (count_on_device(finished) != kernels::grid_blocks() - 1) return;
  int total = 0;
#pragma unroll 1
  for (int i = 0; i < kernels::grid_blocks(); ++i) total += partial[i];
  out[0] = total;
}

/// Between warps of a CTA, the CTA's scope is enough.
extern "C" __global__ void cta_scope_within_cta(const int* in, int* counter, int* out) {
  const int i = kernels::thread_index();
  if (in[i] > 31) count_within_cta(counter + kernels::block_index_x());
  kernels::barrier();
  if (i == 0)
    out[kernels::block_index_x()] = kernels::load_plain(counter + kernels::block_index_x());
}
