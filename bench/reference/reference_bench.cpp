// Speed of the fp64 reference against Eigen's own fp64 products of the same shapes, both on one
// thread, both timed in turn in the same run, in processor time. Counters:
//   attention_gflops  useful work: 4 D flops per visible (query, key) pair and head for Q K^T and P
//   V;
//                     8 D with the bounds, which add |Q||K|^T and P|V|. exp and masked parts of
//                     tiles count as nothing.
//   gemm_gflops       Q K^T and P V as two plain products [rows, D] [D, keys] and [rows, keys]
//                     [keys, D], unmasked, blocked by Eigen for this machine.
//   ratio             attention_gflops / gemm_gflops.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <optional>
#include <vector>

#include <Eigen/Core>
#include <benchmark/benchmark.h>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/blocked_attention.hpp"

namespace {

using cpverify::Problem;
using cpverify::RequestData;
using Eigen::Index;
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// The sizes by which Eigen blocks its products, process-wide.
struct CacheSizes {
  std::ptrdiff_t l1 = 0;
  std::ptrdiff_t l2 = 0;
  std::ptrdiff_t l3 = 0;

  static CacheSizes current() {
    return {Eigen::l1CacheSize(), Eigen::l2CacheSize(), Eigen::l3CacheSize()};
  }
  void use() const { Eigen::setCpuCacheSizes(l1, l2, l3); }
};

/// What Eigen found on this machine, before the reference fixes its own blocking.
const CacheSizes kMachineCaches = CacheSizes::current();

struct Shape {
  std::int64_t computed = 0;
  std::int64_t scheduled = 0;
  std::uint32_t group = 1;  ///< Query heads on the one KV head.
  std::uint32_t head_dim = 64;
};

Problem problem_of(const Shape& shape) {
  Problem problem;
  problem.scenario.model = {.attention = cpverify::AttentionKind::gqa,
                            .num_heads_q = shape.group,
                            .num_heads_kv = 1,
                            .head_dim = shape.head_dim,
                            .dtype = cpverify::DType::bf16,
                            .softmax_scale = 0.125F};
  cpverify::StepRow row;
  row.computed = shape.computed;
  row.scheduled = shape.scheduled;
  problem.steps.push_back({.index = 0, .rows = {row}});
  return problem;
}

/// bf16 numbers between 0.5 and 2 of either sign.
cpverify::HostRows rows_of(std::size_t count, std::size_t elements) {
  cpverify::HostRows rows{.row_bytes = 2 * elements, .bytes = {}};
  rows.bytes.resize(count * rows.row_bytes);
  std::uint32_t state = 1;
  for (std::size_t i = 0; i < count * elements; ++i) {
    state = state * 1664525U + 1013904223U;
    const auto bits =
        static_cast<std::uint16_t>(0x3F00U + (state >> 24U) + ((state >> 16U & 1U) << 15U));
    std::memcpy(rows.bytes.data() + 2 * i, &bits, 2);
  }
  return rows;
}

double useful_flops(const Shape& shape, bool has_bounds) {
  double pairs = 0.0;
  for (std::int64_t token = 0; token < shape.scheduled; ++token) {
    pairs += static_cast<double>(shape.computed + token + 1);
  }
  return (has_bounds ? 8.0 : 4.0) * shape.head_dim * shape.group * pairs;
}

/// Processor time, not wall time: neighbours on a shared machine do not count.
double seconds_since(std::clock_t start) {
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Q K^T and P V of the whole request.
class PlainProducts {
 public:
  explicit PlainProducts(const Shape& shape) {
    const Index rows = shape.scheduled * shape.group;
    const Index keys = shape.computed + shape.scheduled;
    q_ = RowMatrix::Random(rows, shape.head_dim);
    k_ = RowMatrix::Random(keys, shape.head_dim);
    v_ = RowMatrix::Random(keys, shape.head_dim);
    s_.resize(rows, keys);
    o_.resize(rows, shape.head_dim);
    flops_ = 4.0 * static_cast<double>(rows * keys) * shape.head_dim;
  }
  double seconds() {
    kMachineCaches.use();
    const std::clock_t start = std::clock();
    s_.noalias() = q_ * k_.transpose();
    o_.noalias() = s_ * v_;
    const double seconds = seconds_since(start);
    benchmark::DoNotOptimize(o_.data());
    return seconds;
  }
  [[nodiscard]] double flops() const { return flops_; }

 private:
  RowMatrix q_, k_, v_, s_, o_;
  double flops_ = 0.0;
};

void reference_attention(benchmark::State& state) {
  static std::optional<CacheSizes> reference_caches;
  const Shape shape{.computed = state.range(0),
                    .scheduled = state.range(1),
                    .group = static_cast<std::uint32_t>(state.range(2)),
                    .head_dim = static_cast<std::uint32_t>(state.range(3))};
  const bool has_bounds = state.range(4) != 0;
  const Problem problem = problem_of(shape);
  const auto keys = static_cast<std::size_t>(shape.computed + shape.scheduled);
  const std::vector<RequestData> data{
      {.q = rows_of(keys, std::size_t{shape.group} * shape.head_dim),
       .k = rows_of(keys, shape.head_dim),
       .v = rows_of(keys, shape.head_dim)}};
  const auto attend = [&] {
    return cpverify::reference::blocked_attention(problem, problem.steps[0], data,
                                                  {.threads = 1, .with_bounds = has_bounds});
  };
  // Its first call sets the reference's blocking; the plain products change it back each time.
  if (!reference_caches) {
    benchmark::DoNotOptimize(attend().out.data());
    reference_caches = CacheSizes::current();
  }
  PlainProducts products{shape};
  double attention_seconds = 0.0;
  double gemm_seconds = 0.0;
  for (auto _ : state) {
    gemm_seconds += products.seconds();
    reference_caches->use();
    const std::clock_t start = std::clock();
    const auto result = attend();
    const double seconds = seconds_since(start);
    benchmark::DoNotOptimize(result.out.data());
    attention_seconds += seconds;
    state.SetIterationTime(seconds);
  }
  const auto iterations = static_cast<double>(state.iterations());
  const double gemm = products.flops() * iterations / gemm_seconds;
  const double attention = useful_flops(shape, has_bounds) * iterations / attention_seconds;
  state.counters["gemm_gflops"] = gemm / 1e9;
  state.counters["attention_gflops"] = attention / 1e9;
  state.counters["ratio"] = attention / gemm;
}

/// The best case for Eigen: a square product that fits into the second-level cache.
void eigen_product(benchmark::State& state) {
  const Index size = state.range(0);
  const RowMatrix a = RowMatrix::Random(size, size);
  const RowMatrix b = RowMatrix::Random(size, size);
  RowMatrix c{size, size};
  kMachineCaches.use();
  for (auto _ : state) {
    c.noalias() = a * b;
    benchmark::DoNotOptimize(c.data());
  }
  state.counters["gemm_gflops"] = benchmark::Counter(2e-9 * static_cast<double>(size * size * size),
                                                     benchmark::Counter::kIsIterationInvariantRate);
}

}  // namespace

BENCHMARK(eigen_product)->Arg(256)->Arg(512)->Unit(benchmark::kMillisecond);
BENCHMARK(reference_attention)
    ->ArgNames({"computed", "scheduled", "group", "head_dim", "bounds"})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    // Causal prompts, with and without bounds.
    ->ArgsProduct({{0}, {2048}, {4}, {64, 128}, {0, 1}})
    ->Args({0, 2048, 1, 64, 0})
    ->Args({0, 4096, 1, 128, 0})
    // Almost full: 128 new tokens behind a long prefix, so that hardly anything is masked.
    ->ArgsProduct({{8064}, {128}, {4}, {64, 128}, {0, 1}})
    // One decode row: 8 rows, too few to fill a product.
    ->Args({8191, 1, 8, 128, 0});
