#pragma once

#include "device.cuh"

namespace cpverify::kernels {

extern __shared__ __attribute__((aligned(128))) unsigned char dynamic_shared_memory[];

/// Where the launch's dynamic shared memory begins, as an address of the shared window.
__device__ __intrinsic__ unsigned dynamic_shared_base() {
  unsigned long long address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(&dynamic_shared_memory[0]));
  return static_cast<unsigned>(address);
}

/// Rows of kHeadDim 16-bit elements in shared memory, in chunks of 16 bytes. The chunks of a row
/// are permuted by the row's number so that the eight rows of a matrix load fall into different
/// banks.
template <int kHeadDim>
struct SharedTile {
  static constexpr unsigned kRowBytes = kHeadDim * 2;
  static constexpr int kChunks = kHeadDim / 8;
  static constexpr unsigned kRowsPerBankLine = kChunks < 8 ? 8 / kChunks : 1;
  static constexpr unsigned kPermutations = kChunks < 8 ? kChunks : 8;

  static constexpr __device__ unsigned bytes(int num_rows) { return num_rows * kRowBytes; }

  static __device__ __intrinsic__ unsigned offset(int row, int chunk) {
    const auto unsigned_row = static_cast<unsigned>(row);
    const unsigned permutation = unsigned_row / kRowsPerBankLine % kPermutations;
    return unsigned_row * kRowBytes + (static_cast<unsigned>(chunk) ^ permutation) * 16U;
  }
};

/// Starts an asynchronous copy of 16 bytes to shared memory, or of 16 zero bytes without reading.
__device__ __intrinsic__ void copy_chunk(unsigned target, const void* source, bool exists) {
  const int source_bytes = exists ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(target), "l"(source),
               "r"(source_bytes)
               : "memory");
}

__device__ __intrinsic__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

/// Four 8x8 matrices of 16-bit elements; lane i gives the address of row i % 8 of matrix i / 8.
__device__ __intrinsic__ void load_matrices(unsigned address, unsigned (&matrices)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

__device__ __intrinsic__ void load_matrices_transposed(unsigned address, unsigned (&matrices)[4]) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(matrices[0]), "=r"(matrices[1]), "=r"(matrices[2]), "=r"(matrices[3])
               : "r"(address)
               : "memory");
}

}  // namespace cpverify::kernels
