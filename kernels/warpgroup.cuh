#pragma once

#include "device.cuh"

namespace cpverify::kernels {

// The machine operations of Hopper's warpgroups, for sm_90a. Every product below is of 64 rows, 64
// columns and four steps of 16 along k, in one piece of assembly: a compiler that moved a register
// of a product in flight would break it.
//
// Matrices in shared memory lie in rows of 128 bytes (64 elements), eight rows to a swizzled
// pattern of 1024 bytes, whose 16-byte columns are permuted by the row's number.

inline constexpr int kGroupThreads = 128;
inline constexpr unsigned kRowBytes = 128;
inline constexpr unsigned kPatternBytes = 8 * kRowBytes;

extern __shared__ __attribute__((aligned(1024))) unsigned char swizzled_shared_memory[];

/// Where the launch's dynamic shared memory begins, as an address of the shared window.
__device__ __intrinsic__ unsigned swizzled_shared_base() {
  unsigned long long address;
  asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(&swizzled_shared_memory[0]));
  return static_cast<unsigned>(address);
}

/// Byte offset of 16 bytes in a matrix of 64-element rows.
__device__ __intrinsic__ unsigned swizzled_offset(int row, int chunk) {
  const auto unsigned_row = static_cast<unsigned>(row);
  return unsigned_row * kRowBytes + (static_cast<unsigned>(chunk) ^ (unsigned_row % 8U)) * 16U;
}

/// Descriptor of a matrix with the 128-byte swizzle: its address, and `block_bytes` to the next 64
/// columns, which counts only for a transposed one. Source: PTX ISA, "Matrix-descriptor Format".
__device__ __intrinsic__ unsigned long long matrix_descriptor(unsigned address,
                                                              unsigned block_bytes) {
  constexpr unsigned long long kSwizzle128 = 1ULL << 62;
  constexpr unsigned long long kStride = static_cast<unsigned long long>(kPatternBytes >> 4) << 32;
  return kSwizzle128 | kStride | static_cast<unsigned long long>(block_bytes >> 4) << 16 |
         (address & 0x3ffffU) >> 4;
}

/// Registers of each thread of the warpgroup, from here on.
template <int kRegisters>
__device__ __intrinsic__ void give_up_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ __intrinsic__ void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

/// What the thread has written to shared memory is visible to wgmma after the next barrier.
__device__ __intrinsic__ void publish_to_wgmma() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

__device__ __intrinsic__ void barrier_sync(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __intrinsic__ void barrier_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

/// A fragment of 64x64 sums: element (block, i) is column 8 * block + 2 * (lane % 4) + i % 2 of row
/// lane / 4 + 8 * (i / 2) of the warp's 16.
using Sums = float[8][4];

/// sums (+)= A . B^T over 64 columns of both: rows along k, which a step of 16 moves by 32 bytes.
__device__ __intrinsic__ void multiply_bf16(Sums& sums, unsigned long long a, unsigned long long b,
                                            int accumulates) {
  asm volatile(
      "{\n"
      ".reg .pred p, q;\n"
      ".reg .b64 a, b;\n"
      "setp.ne.s32 p, %34, 0;\n"
      "setp.eq.s32 q, %34, %34;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u64 a, %32, 0;\n"
      "add.u64 b, %33, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, a, b, p, 1, 1, 0, 0;\n"
      "add.u64 a, %32, 2;\n"
      "add.u64 b, %33, 2;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, a, b, q, 1, 1, 0, 0;\n"
      "add.u64 a, %32, 4;\n"
      "add.u64 b, %33, 4;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, a, b, q, 1, 1, 0, 0;\n"
      "add.u64 a, %32, 6;\n"
      "add.u64 b, %33, 6;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, a, b, q, 1, 1, 0, 0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n"
      "}"
      : "+f"(sums[0][0]), "+f"(sums[0][1]), "+f"(sums[0][2]), "+f"(sums[0][3]), "+f"(sums[1][0]),
        "+f"(sums[1][1]), "+f"(sums[1][2]), "+f"(sums[1][3]), "+f"(sums[2][0]), "+f"(sums[2][1]),
        "+f"(sums[2][2]), "+f"(sums[2][3]), "+f"(sums[3][0]), "+f"(sums[3][1]), "+f"(sums[3][2]),
        "+f"(sums[3][3]), "+f"(sums[4][0]), "+f"(sums[4][1]), "+f"(sums[4][2]), "+f"(sums[4][3]),
        "+f"(sums[5][0]), "+f"(sums[5][1]), "+f"(sums[5][2]), "+f"(sums[5][3]), "+f"(sums[6][0]),
        "+f"(sums[6][1]), "+f"(sums[6][2]), "+f"(sums[6][3]), "+f"(sums[7][0]), "+f"(sums[7][1]),
        "+f"(sums[7][2]), "+f"(sums[7][3])
      : "l"(a), "l"(b), "r"(accumulates)
      : "memory");
}

/// sums += P . B: P in registers, B's rows along k, of which a step takes 16, 2048 bytes.
__device__ __intrinsic__ void multiply_weights_bf16(Sums& sums, const unsigned (&p)[4][4],
                                                    unsigned long long b) {
  asm volatile(
      "{\n"
      ".reg .pred q;\n"
      ".reg .b64 b;\n"
      "setp.eq.s32 q, 0, 0;\n"
      "wgmma.fence.sync.aligned;\n"
      "add.u64 b, %48, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%32, %33, %34, %35}, b, q, 1, 1, 1;\n"
      "add.u64 b, %48, 128;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%36, %37, %38, %39}, b, q, 1, 1, 1;\n"
      "add.u64 b, %48, 256;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%40, %41, %42, %43}, b, q, 1, 1, 1;\n"
      "add.u64 b, %48, 384;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, "
      "%8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, "
      "%24, %25, %26, %27, %28, %29, %30, %31"
      "}, {%44, %45, %46, %47}, b, q, 1, 1, 1;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n"
      "}"
      : "+f"(sums[0][0]), "+f"(sums[0][1]), "+f"(sums[0][2]), "+f"(sums[0][3]), "+f"(sums[1][0]),
        "+f"(sums[1][1]), "+f"(sums[1][2]), "+f"(sums[1][3]), "+f"(sums[2][0]), "+f"(sums[2][1]),
        "+f"(sums[2][2]), "+f"(sums[2][3]), "+f"(sums[3][0]), "+f"(sums[3][1]), "+f"(sums[3][2]),
        "+f"(sums[3][3]), "+f"(sums[4][0]), "+f"(sums[4][1]), "+f"(sums[4][2]), "+f"(sums[4][3]),
        "+f"(sums[5][0]), "+f"(sums[5][1]), "+f"(sums[5][2]), "+f"(sums[5][3]), "+f"(sums[6][0]),
        "+f"(sums[6][1]), "+f"(sums[6][2]), "+f"(sums[6][3]), "+f"(sums[7][0]), "+f"(sums[7][1]),
        "+f"(sums[7][2]), "+f"(sums[7][3])
      : "r"(p[0][0]), "r"(p[0][1]), "r"(p[0][2]), "r"(p[0][3]), "r"(p[1][0]), "r"(p[1][1]),
        "r"(p[1][2]), "r"(p[1][3]), "r"(p[2][0]), "r"(p[2][1]), "r"(p[2][2]), "r"(p[2][3]),
        "r"(p[3][0]), "r"(p[3][1]), "r"(p[3][2]), "r"(p[3][3]), "l"(b)
      : "memory");
}

}  // namespace cpverify::kernels
