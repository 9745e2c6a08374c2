#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "contract/kernels/kernel_bench.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/launch.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/driver_types.hpp"
#include "plan/merge_launches.hpp"

namespace cpverify::tests {

/// Attention over parts of the keys, values of the dtype as f32.
struct Partials {
  plan::MergeShape shape;
  std::int64_t num_partials = 0;
  std::vector<float> out;  ///< [num_partials][rows, heads, head_dim]
  std::vector<float> lse;  ///< [num_partials][rows, heads], natural.
};

/// Drawn from a fixed seed: outputs in [-2, 2), LSEs in [-8, 8). Each third LSE is -inf, of every
/// fifth row all are; outputs of empty partials are NaN.
[[nodiscard]] Partials draw_partials(const plan::MergeShape& shape, std::int64_t num_partials);

/// One row and head of 8 equal elements for each pair: 8 is the smallest head_dim.
[[nodiscard]] Partials one_row(DType dtype, const std::vector<float>& lses,
                               const std::vector<float>& values);

struct MergeResult {
  std::vector<float> out;
  std::vector<float> lse;
  std::vector<Fault> faults;
};

/// Launches of src/plan/merge_launches.hpp on one simulated GPU.
class MergeBench {
 public:
  /// `module` is a path in the build folder without extension, e.g. "kernels/merge".
  explicit MergeBench(const std::string& module) : bench_{module, true} {}

  [[nodiscard]] BufferRef upload(DType dtype, const std::vector<float>& values);
  [[nodiscard]] BufferRef upload_bytes(std::span<const std::byte> bytes);
  [[nodiscard]] BufferRef upload_index(const std::vector<std::int32_t>& values);
  /// Memory that nobody has written.
  [[nodiscard]] BufferRef allocate(DType dtype, std::int64_t elems);
  /// The same buffer as if it began `bytes` below where it does.
  [[nodiscard]] BufferRef moved_down(BufferRef buffer, std::uint64_t bytes);

  void run(const Launch& launch);
  [[nodiscard]] std::vector<float> read(BufferRef buffer, DType dtype, std::int64_t elems);
  [[nodiscard]] std::vector<std::byte> read_bytes(BufferRef buffer, std::size_t size_bytes);
  [[nodiscard]] std::vector<Fault> take_faults() { return bench_.take_faults(); }

 private:
  BufferRef add(gpu::CuDevicePtr pointer);

  KernelBench bench_;
  std::vector<gpu::CuDevicePtr> pointers_;  ///< By BufferId.
};

/// merge_partials of dense partials.
[[nodiscard]] MergeResult run_merge(const std::string& module, const Partials& partials,
                                    plan::LseBase base = plan::LseBase::natural);

/// scale_by_lse of partial `own`: out is `scaled`.
[[nodiscard]] MergeResult run_scale(const std::string& module, const Partials& partials,
                                    std::int64_t own, DType scaled_dtype);

/// pack_partial of every partial, an all-to-all, merge_packed on rank `rank`: its heads.
[[nodiscard]] MergeResult run_packed(const std::string& module, const Partials& partials,
                                     std::int64_t rank);

/// One output element in fp64, and how far a kernel may be from it.
struct ExpectedMerge {
  double out = 0.0;
  double out_bound = 0.0;
  double lse = 0.0;
  double lse_bound = 0.0;
};

/// Element `element` of [rows, heads, head_dim], from the definition.
[[nodiscard]] ExpectedMerge expected_merge(const Partials& partials, std::size_t element);

/// Expects every element of a dense result within its bound.
void expect_merged(const Partials& partials, const MergeResult& result);

/// Bits, so that NaN equals itself and -0 differs from +0.
[[nodiscard]] std::vector<std::uint32_t> bits_of(const std::vector<float>& values);

}  // namespace cpverify::tests
