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

__device__ __intrinsic__ int load_shared(const int* place) {
  int value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared_address(place)) : "memory");
  return value;
}

__device__ __intrinsic__ void store_shared(int* place, int value) {
  asm volatile("st.shared.u32 [%0], %1;" : : "r"(shared_address(place)), "r"(value) : "memory");
}

__device__ __intrinsic__ void synchronise_warp() {
  asm volatile("bar.warp.sync 0xffffffff;" : : : "memory");
}

__device__ __intrinsic__ float square_root(float x) {
  float result;
  asm("sqrt.rn.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

/// The bits of x rounded to f16.
__device__ __intrinsic__ unsigned short half_bits(float x) {
  unsigned short result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(x));
  return result;
}

__device__ __intrinsic__ void mbarrier_init(unsigned long long* object, int count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;"
               :
               : "r"(shared_address(object)), "r"(count)
               : "memory");
}

__device__ __intrinsic__ void mbarrier_arrive(unsigned long long* object) {
  asm volatile("{ .reg .b64 token; mbarrier.arrive.shared.b64 token, [%0]; }"
               :
               : "r"(shared_address(object))
               : "memory");
}

/// Until the phase of this parity is complete.
__device__ __intrinsic__ void mbarrier_wait(unsigned long long* object, int parity) {
  asm volatile(
      "{ .reg .pred done; WAIT: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra "
      "WAIT; }"
      :
      : "r"(shared_address(object)), "r"(parity)
      : "memory");
}

/// Arrives, and announces that `bytes` will come.
__device__ __intrinsic__ void mbarrier_expect(unsigned long long* object, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
               :
               : "r"(shared_address(object)), "r"(bytes)
               : "memory");
}

__device__ __intrinsic__ void copy_bulk(void* target, const void* source, int bytes,
                                        unsigned long long* object) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      :
      : "r"(shared_address(target)), "l"(source), "r"(bytes), "r"(shared_address(object))
      : "memory");
}

__device__ __intrinsic__ void store_bulk(void* target, const void* source, int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;"
      :
      : "l"(target), "r"(shared_address(source)), "r"(bytes)
      : "memory");
}

__device__ __intrinsic__ void wait_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group 0;" : : : "memory");
}

__device__ __intrinsic__ unsigned cluster_rank() {
  unsigned value;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(value));
  return value;
}

/// All threads of the cluster; what came before is seen by all of them.
__device__ __intrinsic__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" : : : "memory");
}

/// Into the place of the CTA with this rank that `place` is in the own one.
__device__ __intrinsic__ void store_remote(int* place, unsigned rank, int value) {
  asm volatile(
      "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1; st.shared::cluster.u32 [there], "
      "%2; }"
      :
      : "r"(shared_address(place)), "r"(rank), "r"(value)
      : "memory");
}

/// Between ordinary accesses of shared memory and bulk copies.
__device__ __intrinsic__ void fence_async() {
  asm volatile("fence.proxy.async;" : : : "memory");
}

}  // namespace cpverify::kernels
