#include "contract/kernels/merge_case.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "contract/kernels/kernel_bench.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/driver_types.hpp"
#include "numerics/convert.hpp"
#include "plan/merge_launches.hpp"
#include "support/rng.hpp"

namespace cpverify::tests {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// Half an ulp of 1.
double unit_roundoff(DType dtype) {
  if (dtype == DType::f16) return 0x1p-11;
  return dtype == DType::bf16 ? 0x1p-8 : 0x1p-24;
}

/// The LSEs of a partial where the contract takes it for empty.
double clean(float lse) {
  return lse < kInfinity ? lse : -std::numeric_limits<double>::infinity();
}

}  // namespace

Partials draw_partials(const plan::MergeShape& shape, std::int64_t num_partials) {
  Partials partials{shape, num_partials, {}, {}};
  Rng rng{7};
  for (std::int64_t i = 0; i < num_partials * shape.num_lses(); ++i) {
    const std::int64_t row = i % shape.num_lses() / shape.num_heads;
    const bool is_empty = i % 3 == 1 || row % 5 == 4;
    const float lse = static_cast<float>(rng.below(4096)) * 0x1p-8F - 8.0F;
    partials.lse.push_back(is_empty ? -kInfinity : lse);
    for (std::int64_t dim = 0; dim < shape.head_dim; ++dim) {
      const float value = static_cast<float>(rng.below(2048)) * 0x1p-9F - 2.0F;
      partials.out.push_back(is_empty ? kNan : value);
    }
  }
  partials.out = numerics::widen(shape.dtype, numerics::narrow(shape.dtype, partials.out));
  return partials;
}

Partials one_row(DType dtype, const std::vector<float>& lses, const std::vector<float>& values) {
  Partials partials{{dtype, 1, 1, 8}, static_cast<std::int64_t>(lses.size()), {}, lses};
  for (const float value : values) partials.out.insert(partials.out.end(), 8, value);
  return partials;
}

BufferRef MergeBench::add(gpu::CuDevicePtr pointer) {
  pointers_.push_back(pointer);
  return {BufferId{static_cast<std::uint32_t>(pointers_.size() - 1)}, 0};
}

BufferRef MergeBench::upload(DType dtype, const std::vector<float>& values) {
  return upload_bytes(numerics::narrow(dtype, values));
}

BufferRef MergeBench::upload_bytes(std::span<const std::byte> bytes) {
  return add(bench_.upload(bytes));
}

BufferRef MergeBench::upload_index(const std::vector<std::int32_t>& values) {
  return upload_bytes(std::as_bytes(std::span{values}));
}

BufferRef MergeBench::allocate(DType dtype, std::int64_t elems) {
  return add(bench_.allocate(to_size(elems) * size_bytes(dtype)));
}

BufferRef MergeBench::moved_down(BufferRef buffer, std::uint64_t bytes) {
  return add(pointers_.at(buffer.buffer.value()) - bytes);
}

void MergeBench::run(const Launch& launch) {
  std::vector<Argument> arguments;
  for (const KernelArgument& argument : launch.arguments) {
    if (const auto* ref = std::get_if<BufferRef>(&argument)) {
      arguments.emplace_back(pointers_.at(ref->buffer.value()));
    } else if (const auto* wide = std::get_if<std::int64_t>(&argument)) {
      arguments.emplace_back(static_cast<std::uint64_t>(*wide));
    } else {
      arguments.emplace_back(std::get<std::int32_t>(argument));
    }
  }
  gpu::DriverApi::LaunchConfig config;
  config.grid_x = launch.grid[0];
  config.grid_y = launch.grid[1];
  config.block_x = launch.block[0];
  bench_.launch(launch.entry, config, arguments);
}

std::vector<float> MergeBench::read(BufferRef buffer, DType dtype, std::int64_t elems) {
  return numerics::widen(dtype, read_bytes(buffer, to_size(elems) * size_bytes(dtype)));
}

std::vector<std::byte> MergeBench::read_bytes(BufferRef buffer, std::size_t size_bytes) {
  return bench_.read(pointers_.at(buffer.buffer.value()), size_bytes);
}

MergeResult run_merge(const std::string& module, const Partials& partials, plan::LseBase base) {
  const plan::MergeShape& shape = partials.shape;
  MergeBench bench{module};
  plan::PartialMerge merge = plan::dense_merge(shape, partials.num_partials);
  merge.partials = bench.upload(shape.dtype, partials.out);
  merge.lses = bench.upload(DType::f32, partials.lse);
  merge.out = bench.allocate(shape.dtype, shape.out_elems());
  merge.lse = bench.allocate(DType::f32, shape.num_lses());
  merge.base = base;
  bench.run(plan::merge_partials_launch(shape, merge));
  return {bench.read(merge.out, shape.dtype, shape.out_elems()),
          bench.read(merge.lse, DType::f32, shape.num_lses()), bench.take_faults()};
}

MergeResult run_scale(const std::string& module, const Partials& partials, std::int64_t own,
                      DType scaled_dtype) {
  const plan::MergeShape& shape = partials.shape;
  MergeBench bench{module};
  const auto first = partials.out.begin() + own * shape.out_elems();
  plan::LseScale scale;
  scale.partial = bench.upload(shape.dtype, {first, first + shape.out_elems()});
  scale.lses = bench.upload(DType::f32, partials.lse);
  scale.scaled = bench.allocate(scaled_dtype, shape.out_elems());
  scale.lse = bench.allocate(DType::f32, shape.num_lses());
  scale.own = own;
  scale.num_partials = partials.num_partials;
  scale.scaled_dtype = scaled_dtype;
  bench.run(plan::scale_by_lse_launch(shape, scale));
  return {bench.read(scale.scaled, scaled_dtype, shape.out_elems()),
          bench.read(scale.lse, DType::f32, shape.num_lses()), bench.take_faults()};
}

MergeResult run_packed(const std::string& module, const Partials& partials, std::int64_t rank) {
  const plan::MergeShape& shape = partials.shape;
  const std::int64_t num_ranks = partials.num_partials;
  MergeBench bench{module};
  const std::int64_t packed_elems = shape.num_lses() * plan::packed_row_elems(shape);
  const std::size_t block_bytes = to_size(packed_elems / num_ranks) * size_bytes(shape.dtype);
  std::vector<std::byte> received;
  for (std::int64_t source = 0; source < num_ranks; ++source) {
    const auto out = partials.out.begin() + source * shape.out_elems();
    const auto lse = partials.lse.begin() + source * shape.num_lses();
    plan::PartialPack pack;
    pack.partial = bench.upload(shape.dtype, {out, out + shape.out_elems()});
    pack.lse = bench.upload(DType::f32, {lse, lse + shape.num_lses()});
    pack.packed = bench.allocate(shape.dtype, packed_elems);
    pack.num_ranks = num_ranks;
    bench.run(plan::pack_partial_launch(shape, pack));
    const std::vector<std::byte> sent =
        bench.read_bytes(pack.packed, block_bytes * to_size(num_ranks));
    const auto block = sent.begin() + static_cast<std::ptrdiff_t>(block_bytes * to_size(rank));
    received.insert(received.end(), block, block + static_cast<std::ptrdiff_t>(block_bytes));
  }
  plan::MergeShape own = shape;
  own.num_heads /= num_ranks;
  plan::PackedMerge merge;
  merge.packed = bench.upload_bytes(received);
  merge.out = bench.allocate(own.dtype, own.out_elems());
  merge.lse = bench.allocate(DType::f32, own.num_lses());
  merge.num_partials = num_ranks;
  bench.run(plan::merge_packed_launch(own, merge));
  return {bench.read(merge.out, own.dtype, own.out_elems()),
          bench.read(merge.lse, DType::f32, own.num_lses()), bench.take_faults()};
}

ExpectedMerge expected_merge(const Partials& partials, std::size_t element) {
  const std::size_t row_head = element / to_size(partials.shape.head_dim);
  const std::size_t num_lses = to_size(partials.shape.num_lses());
  double maximum = -std::numeric_limits<double>::infinity();
  for (std::size_t n = 0; n < to_size(partials.num_partials); ++n) {
    maximum = std::max(maximum, clean(partials.lse[n * num_lses + row_head]));
  }
  if (std::isinf(maximum)) return {0.0, 0.0, maximum, 0.0};
  double sum = 0.0;
  double weighted = 0.0;
  double magnitude = 0.0;
  double spread = 0.0;
  for (std::size_t n = 0; n < to_size(partials.num_partials); ++n) {
    const double exponent = clean(partials.lse[n * num_lses + row_head]) - maximum;
    if (exponent < -87.0) continue;  // e^-87 is about 2^-125.5; below it nothing counts.
    const double value = partials.out[n * to_size(partials.shape.out_elems()) + element];
    sum += std::exp(exponent);
    weighted += std::exp(exponent) * value;
    magnitude += std::exp(exponent) * std::abs(value);
    spread = std::max(spread, -exponent);
  }
  // Per weight: three roundings of the exponent, 2 ulp of the approximate power; per sum N
  // roundings.
  const double relative =
      (3.0 * spread + 2.0 * static_cast<double>(partials.num_partials) + 8.0) * 0x1p-23;
  ExpectedMerge expected;
  expected.out = weighted / sum;
  expected.out_bound = magnitude / sum * relative +
                       std::abs(expected.out) * unit_roundoff(partials.shape.dtype) * 1.01;
  expected.lse = maximum + std::log(sum);
  expected.lse_bound = relative + (std::abs(expected.lse) + std::log(sum)) * 0x1p-22;
  return expected;
}

void expect_merged(const Partials& partials, const MergeResult& result) {
  const std::size_t head_dim = to_size(partials.shape.head_dim);
  ASSERT_EQ(result.out.size(), to_size(partials.shape.out_elems()));
  for (std::size_t element = 0; element < result.out.size(); ++element) {
    const ExpectedMerge expected = expected_merge(partials, element);
    ASSERT_LE(std::abs(result.out[element] - expected.out), expected.out_bound)
        << "element " << element << ": " << result.out[element] << " instead of " << expected.out;
    const float lse = result.lse[element / head_dim];
    if (std::isinf(expected.lse)) {
      ASSERT_EQ(lse, expected.lse) << element;
    } else {
      ASSERT_LE(std::abs(lse - expected.lse), expected.lse_bound)
          << "LSE of element " << element << ": " << lse << " instead of " << expected.lse;
    }
  }
}

std::vector<std::uint32_t> bits_of(const std::vector<float>& values) {
  std::vector<std::uint32_t> words;
  words.reserve(values.size());
  for (const float value : values) words.push_back(std::bit_cast<std::uint32_t>(value));
  return words;
}

}  // namespace cpverify::tests
