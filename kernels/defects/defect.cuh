#pragma once

#include "device.cuh"

// What the defective kernels of this folder are written with. Every entry has one defect, on the
// line that ends in "defect"; the scenarios of scenarios/wrong/<file> expect that line.

namespace cpverify::kernels {

__device__ __intrinsic__ void barrier() {
  asm volatile("bar.sync 0;" : : : "memory");
}

__device__ __intrinsic__ void barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

__device__ __intrinsic__ void arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" : : "r"(id), "r"(threads) : "memory");
}

__device__ __intrinsic__ void fence() {
  asm volatile("membar.gl;" : : : "memory");
}

__device__ __intrinsic__ int block_threads() {
  int value;
  asm("mov.u32 %0, %%ntid.x;" : "=r"(value));
  return value;
}

__device__ __intrinsic__ int grid_blocks() {
  int value;
  asm("mov.u32 %0, %%nctaid.x;" : "=r"(value));
  return value;
}

/// Index of the thread in a grid of one dimension.
__device__ __intrinsic__ int global_index() {
  return block_index_x() * block_threads() + thread_index();
}

/// The old value.
__device__ __intrinsic__ int atomic_add(int* place, int value) {
  int old;
  asm volatile("atom.global.add.u32 %0, [%1], %2;" : "=r"(old) : "l"(place), "r"(value) : "memory");
  return old;
}

/// A load that the compiler must do, and that orders nothing.
__device__ __intrinsic__ int load_plain(const int* place) {
  int value;
  asm volatile("ld.global.u32 %0, [%1];" : "=r"(value) : "l"(place) : "memory");
  return value;
}

__device__ __intrinsic__ int load_volatile(const int* place) {
  int value;
  asm volatile("ld.volatile.global.u32 %0, [%1];" : "=r"(value) : "l"(place) : "memory");
  return value;
}

__device__ __intrinsic__ void store_volatile(int* place, int value) {
  asm volatile("st.volatile.global.u32 [%0], %1;" : : "l"(place), "r"(value) : "memory");
}

__device__ __intrinsic__ unsigned shared_address(const void* place) {
  unsigned address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
      : "=r"(address)
      : "l"(place));
  return address;
}

/// 16 bytes from global to shared memory, of which the last 16 - source_bytes are zeros.
__device__ __intrinsic__ void copy_async(void* target, const void* source, int source_bytes = 16) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(shared_address(target)), "l"(source), "r"(source_bytes)
               : "memory");
}

__device__ __intrinsic__ void commit_async() {
  asm volatile("cp.async.commit_group;" : : : "memory");
}

template <int kPending>
__device__ __intrinsic__ void wait_async() {
  asm volatile("cp.async.wait_group %0;" : : "n"(kPending) : "memory");
}

}  // namespace cpverify::kernels
