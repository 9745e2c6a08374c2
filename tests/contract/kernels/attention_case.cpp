#include "contract/kernels/attention_case.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "contract/kernels/kernel_bench.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "gpu/driver_api.hpp"
#include "judge/error_bound.hpp"
#include "numerics/convert.hpp"
#include "support/rng.hpp"

namespace cpverify::tests {
namespace {

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

std::int32_t ceil_div(std::int32_t value, std::int32_t divisor) {
  return (value + divisor - 1) / divisor;
}

double softmax_scale(const AttentionShape& shape) {
  return 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
}

float softmax_scale_log2(const AttentionShape& shape) {
  const double factor =
      shape.soft_cap > 0.0F ? static_cast<double>(shape.soft_cap) : softmax_scale(shape);
  return static_cast<float>(std::numbers::log2e * factor);
}

float soft_cap_scale(const AttentionShape& shape) {
  if (shape.soft_cap == 0.0F) return 0.0F;
  return static_cast<float>(softmax_scale(shape) / static_cast<double>(shape.soft_cap));
}

/// Multiples of 2^-9 in [-2, 2), rounded to the dtype.
std::vector<float> draw(Rng& rng, DType dtype, std::int64_t count) {
  std::vector<float> values(to_size(count));
  for (float& value : values) value = static_cast<float>(rng.below(2048)) * 0x1p-9F - 2.0F;
  return numerics::widen(dtype, numerics::narrow(dtype, values));
}

bool is_hopper(const std::string& module) {
  return module.find("_hopper") != std::string::npos;
}
bool is_mma(const std::string& module) {
  return module.find("_mma") != std::string::npos || is_hopper(module);
}

/// The name that the entries of a module begin with, also when it is a mutant.
std::string kernel_of(const std::string& module) {
  if (is_hopper(module)) return "attention_hopper";
  return is_mma(module) ? "attention_mma" : "attention_fma";
}

/// A batch in device memory.
struct DeviceBatch {
  gpu::CuDevicePtr q = 0;
  gpu::CuDevicePtr k_pool = 0;
  gpu::CuDevicePtr v_pool = 0;
  std::vector<std::int32_t> cu_seqlens_q{0};
  std::vector<std::int32_t> kv_lens;
  std::vector<std::int32_t> block_table;
  std::int32_t max_pages = 0;
  std::int32_t max_query_len = 0;
};

/// Writes the sequence's keys or values slot by slot, so that nothing else is written.
void write_pages(KernelBench& bench, const AttentionShape& shape, gpu::CuDevicePtr pool,
                 std::span<const std::int32_t> pages, const std::vector<float>& values) {
  const std::vector<std::byte> bytes = numerics::narrow(shape.dtype, values);
  const std::size_t row_bytes =
      to_size(shape.num_heads_kv) * to_size(shape.head_dim) * size_bytes(shape.dtype);
  const std::size_t block_size = to_size(shape.block_size);
  for (std::size_t key = 0; key * row_bytes < bytes.size(); ++key) {
    const std::size_t slot = to_size(pages[key / block_size]) * block_size + key % block_size;
    bench.write(pool + slot * row_bytes, std::span{bytes}.subspan(key * row_bytes, row_bytes));
  }
}

DeviceBatch lay_out(KernelBench& bench, const AttentionCase& data) {
  const AttentionShape& shape = data.shape;
  DeviceBatch batch;
  std::int32_t num_pages = 0;
  std::vector<float> q;
  for (const SequenceData& sequence : data.sequences) {
    const std::int32_t pages = ceil_div(sequence.lens.kv_len, shape.block_size);
    num_pages += pages;
    batch.max_pages = std::max(batch.max_pages, pages);
    batch.max_query_len = std::max(batch.max_query_len, sequence.lens.query_len);
    batch.cu_seqlens_q.push_back(batch.cu_seqlens_q.back() + sequence.lens.query_len);
    batch.kv_lens.push_back(sequence.lens.kv_len);
    q.insert(q.end(), sequence.q.begin(), sequence.q.end());
  }
  const std::size_t block_bytes = to_size(shape.block_size) * to_size(shape.num_heads_kv) *
                                  to_size(shape.head_dim) * size_bytes(shape.dtype);
  const std::size_t pool_bytes = to_size(num_pages + 1) * block_bytes;
  const std::size_t missing_bytes = to_size(shape.first_block) * block_bytes;
  batch.q = bench.upload(numerics::narrow(shape.dtype, q));
  batch.k_pool = bench.allocate(pool_bytes) - missing_bytes;
  batch.v_pool = bench.allocate(pool_bytes) - missing_bytes;
  std::int32_t next_block = shape.first_block + num_pages;
  for (const SequenceData& sequence : data.sequences) {
    std::vector<std::int32_t> pages(to_size(ceil_div(sequence.lens.kv_len, shape.block_size)));
    for (std::int32_t& page : pages) page = next_block--;
    write_pages(bench, shape, batch.k_pool, pages, sequence.k);
    write_pages(bench, shape, batch.v_pool, pages, sequence.v);
    pages.resize(to_size(batch.max_pages), -1);  // Following an unused entry leaves the pool.
    batch.block_table.insert(batch.block_table.end(), pages.begin(), pages.end());
  }
  return batch;
}

/// fp64 attention of one query and head, and what its error bound needs.
struct NaiveRow {
  std::vector<double> out;
  std::vector<double> abs_mass;
  judge::RowMagnitudes magnitudes;
  std::int64_t first_key = 0;
};

std::vector<double> naive_scores(const AttentionShape& shape, const SequenceData& sequence,
                                 std::int32_t query, std::int32_t head, NaiveRow& row) {
  const std::int32_t kv_head = head / (shape.num_heads_q / shape.num_heads_kv);
  const double scale = softmax_scale(shape);
  const auto cap = static_cast<double>(shape.soft_cap);
  std::vector<double> scores;
  for (std::int64_t key = row.first_key; key < row.first_key + row.magnitudes.num_keys; ++key) {
    double score = 0.0;
    double magnitude = 0.0;
    for (std::int32_t dim = 0; dim < shape.head_dim; ++dim) {
      const double a =
          sequence.q[to_size((query * shape.num_heads_q + head) * shape.head_dim + dim)];
      const double b =
          sequence.k[to_size((key * shape.num_heads_kv + kv_head) * shape.head_dim + dim)];
      score += a * b;
      magnitude += std::abs(a * b);
    }
    score *= scale;
    scores.push_back(cap > 0.0 ? cap * std::tanh(score / cap) : score);
    row.magnitudes.max_abs_score = std::max(row.magnitudes.max_abs_score, magnitude * scale);
  }
  return scores;
}

NaiveRow naive_row(const AttentionShape& shape, const SequenceData& sequence, std::int32_t query,
                   std::int32_t head) {
  NaiveRow row;
  row.out.resize(to_size(shape.head_dim));
  row.abs_mass.resize(to_size(shape.head_dim));
  const std::int32_t hidden = shape.is_causal ? sequence.lens.query_len - query - 1 : 0;
  const std::int32_t end = std::max(sequence.lens.kv_len - hidden, 0);
  if (shape.window > 0) row.first_key = std::max(end - shape.window, 0);
  row.magnitudes.num_keys = end - row.first_key;
  row.magnitudes.has_sink = shape.has_sinks;
  row.magnitudes.lse = -std::numeric_limits<double>::infinity();
  const std::vector<double> scores = naive_scores(shape, sequence, query, head, row);
  double maximum = row.magnitudes.lse;
  for (const double score : scores) maximum = std::max(maximum, score);
  const double sink = shape.has_sinks ? static_cast<double>(sink_of(head)) : maximum;
  if (shape.has_sinks) {
    maximum = std::max(maximum, sink);
    row.magnitudes.max_abs_score = std::max(row.magnitudes.max_abs_score, std::abs(sink));
  }
  if (std::isinf(maximum)) return row;
  double sum = shape.has_sinks ? std::exp(sink - maximum) : 0.0;
  for (const double score : scores) sum += std::exp(score - maximum);
  row.magnitudes.lse = maximum + std::log(sum);
  const std::int32_t kv_head = head / (shape.num_heads_q / shape.num_heads_kv);
  for (std::size_t key = 0; key < scores.size(); ++key) {
    const double weight = std::exp(scores[key] - row.magnitudes.lse);
    for (std::size_t dim = 0; dim < row.out.size(); ++dim) {
      const double value =
          sequence
              .v[((to_size(row.first_key) + key) * to_size(shape.num_heads_kv) + to_size(kv_head)) *
                     to_size(shape.head_dim) +
                 dim];
      row.out[dim] += weight * value;
      row.abs_mass[dim] += weight * std::abs(value);
      row.magnitudes.max_abs_value = std::max(row.magnitudes.max_abs_value, std::abs(value));
    }
  }
  return row;
}

/// Block and shared memory.
gpu::DriverApi::LaunchConfig config_of(const std::string& module, const AttentionShape& shape) {
  gpu::DriverApi::LaunchConfig config;
  const auto head_dim = static_cast<unsigned>(shape.head_dim);
  if (is_mma(module)) config.shared_bytes = (is_hopper(module) ? 768 : 384) * head_dim;
  if (is_hopper(module)) config.block_x = 384;
  return config;
}

judge::Arithmetic arithmetic_of(const std::string& module, const AttentionShape& shape) {
  judge::Arithmetic arithmetic;
  arithmetic.head_dim = static_cast<std::uint32_t>(shape.head_dim);
  arithmetic.out_dtype = shape.dtype;
  arithmetic.soft_cap = static_cast<double>(shape.soft_cap);
  arithmetic.has_window = shape.window > 0;
  arithmetic.numerics.p_dtype = is_mma(module) ? shape.dtype : DType::f32;
  arithmetic.numerics.is_tensor_core = is_mma(module);
  if (is_hopper(module)) arithmetic.numerics.kv_tile = 64;
  return arithmetic;
}

}  // namespace

float sink_of(std::int32_t head) {
  return static_cast<float>(head % 3) * 3.5F - 2.0F;
}

AttentionCase make_case(const AttentionShape& shape, const std::vector<SequenceLens>& sequences) {
  AttentionCase data{shape, {}};
  for (const SequenceLens& lens : sequences) {
    Rng rng{42};
    const std::int64_t kv_elems = std::int64_t{lens.kv_len} * shape.num_heads_kv * shape.head_dim;
    SequenceData sequence;
    sequence.lens = lens;
    sequence.k = draw(rng, shape.dtype, kv_elems);
    sequence.v = draw(rng, shape.dtype, kv_elems);
    sequence.q =
        draw(rng, shape.dtype, std::int64_t{lens.query_len} * shape.num_heads_q * shape.head_dim);
    for (float& value : sequence.q) value *= shape.query_factor;
    data.sequences.push_back(sequence);
  }
  return data;
}

AttentionCase only_queries(const AttentionCase& whole, std::int32_t first, std::int32_t count) {
  const AttentionShape& shape = whole.shape;
  const SequenceData& sequence = whole.sequences.at(0);
  const std::int32_t unseen = sequence.lens.query_len - (first + count);
  const std::ptrdiff_t query_elems = std::ptrdiff_t{shape.num_heads_q} * shape.head_dim;
  SequenceData part;
  part.lens = {count, sequence.lens.kv_len - unseen};
  const std::int64_t kv_elems =
      std::int64_t{part.lens.kv_len} * shape.num_heads_kv * shape.head_dim;
  part.k.assign(sequence.k.begin(), sequence.k.begin() + kv_elems);
  part.v.assign(sequence.v.begin(), sequence.v.begin() + kv_elems);
  part.q.assign(sequence.q.begin() + first * query_elems,
                sequence.q.begin() + (first + count) * query_elems);
  return {shape, {part}};
}

AttentionResult run_attention(const std::string& module, const AttentionCase& data,
                              bool is_race_checked) {
  const AttentionShape& shape = data.shape;
  KernelBench bench{module, is_race_checked};
  const DeviceBatch batch = lay_out(bench, data);
  const std::size_t rows = to_size(batch.cu_seqlens_q.back()) * to_size(shape.num_heads_q);
  const std::size_t out_bytes = rows * to_size(shape.head_dim) * size_bytes(shape.dtype);
  const gpu::CuDevicePtr out = bench.allocate(out_bytes);
  const gpu::CuDevicePtr lse = bench.allocate(rows * sizeof(float));

  gpu::DriverApi::LaunchConfig config = config_of(module, shape);
  config.grid_x = static_cast<unsigned>(
      ceil_div(batch.max_query_len, is_hopper(module) ? 128 : (is_mma(module) ? 64 : 4)));
  config.grid_y = static_cast<unsigned>(shape.num_heads_q);
  config.grid_z = static_cast<unsigned>(data.sequences.size());
  std::vector<float> sinks;
  for (std::int32_t head = 0; head < shape.num_heads_q; ++head) sinks.push_back(sink_of(head));
  const gpu::CuDevicePtr sinks_or_null = shape.has_sinks ? bench.upload(sinks) : 0;
  const std::string entry =
      fmt::format("{}_{}_d{}", kernel_of(module), name(shape.dtype), shape.head_dim);
  bench.launch(entry, config,
               {batch.q, batch.k_pool, batch.v_pool, bench.upload(batch.cu_seqlens_q),
                bench.upload(batch.kv_lens), bench.upload(batch.block_table), out, lse,
                static_cast<std::int32_t>(data.sequences.size()), batch.max_pages, shape.block_size,
                shape.num_heads_q, shape.num_heads_kv, softmax_scale_log2(shape),
                std::int32_t{shape.is_causal}, soft_cap_scale(shape), sinks_or_null, shape.window});
  AttentionResult result;
  result.faults = bench.take_faults();
  result.out = numerics::widen(shape.dtype, bench.read(out, out_bytes));
  result.lse = numerics::widen(DType::f32, bench.read(lse, rows * sizeof(float)));
  return result;
}

void expect_correct(const std::string& module, const AttentionCase& data,
                    const AttentionResult& result) {
  const AttentionShape& shape = data.shape;
  const judge::Arithmetic arithmetic = arithmetic_of(module, shape);
  std::size_t row_index = 0;
  for (const SequenceData& sequence : data.sequences) {
    for (std::int32_t query = 0; query < sequence.lens.query_len; ++query) {
      for (std::int32_t head = 0; head < shape.num_heads_q; ++head, ++row_index) {
        SCOPED_TRACE(fmt::format("query {} of {} over {} keys, head {}", query,
                                 sequence.lens.query_len, sequence.lens.kv_len, head));
        const NaiveRow row = naive_row(shape, sequence, query, head);
        const judge::RowBound bound{arithmetic, row.magnitudes};
        const double lse = result.lse.at(row_index);
        ASSERT_TRUE(judge::within(lse, row.magnitudes.lse, bound.lse()))
            << lse << " instead of " << row.magnitudes.lse;
        for (std::size_t dim = 0; dim < row.out.size(); ++dim) {
          const double out = result.out.at(row_index * row.out.size() + dim);
          ASSERT_TRUE(
              judge::within(out, row.out[dim], bound.output(row.abs_mass[dim], row.out[dim])))
              << "dimension " << dim << ": " << out << " instead of " << row.out[dim];
        }
      }
    }
  }
}

}  // namespace cpverify::tests
