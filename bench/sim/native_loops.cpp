#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include <benchmark/benchmark.h>

/// What the kernels of sim_bench.cpp compute, with the same sizes, as loops that the compiler turns
/// into vectors: native_<kernel> for each. No checks, no pages, and softmax is left out.
namespace {

void configure(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMillisecond)->MinTime(0.05)->Repetitions(5);
}

float widen(std::uint16_t bf16) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bf16) << 16U);
}

std::uint16_t narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

float dot(const float* a, const float* b, std::size_t count) {
  float partial[16] = {};
  for (std::size_t i = 0; i < count; i += 16) {
    for (std::size_t j = 0; j < 16; ++j) {
      partial[j] = __builtin_fmaf(a[i + j], b[i + j], partial[j]);
    }
  }
  float sum = 0.0F;
  for (const float part : partial) sum += part;
  return sum;
}

void native_saxpy(benchmark::State& state) {
  constexpr std::size_t count = 1 << 18;
  const std::vector<float> x(count, 1.0F);
  std::vector<float> y(count, 3.0F);
  for (auto _ : state) {
    for (std::size_t i = 0; i < count; ++i) y[i] = __builtin_fmaf(2.0F, x[i], y[i]);
    benchmark::DoNotOptimize(y.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(native_saxpy)->Apply(configure);

/// The two products of attention: `rows` are queries times heads, `keys` what each sees on average.
void multiply(benchmark::State& state, std::size_t rows, std::size_t keys, std::size_t dim) {
  const std::vector<float> q(rows * dim, 1.0F);
  const std::vector<float> k(keys * dim, 1.0F);
  std::vector<float> out(rows * dim);
  for (auto _ : state) {
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t key = 0; key < keys; ++key) {
        const float score = dot(&q[row * dim], &k[key * dim], dim);
        for (std::size_t i = 0; i < dim; ++i) {
          out[row * dim + i] = __builtin_fmaf(score, k[key * dim + i], out[row * dim + i]);
        }
      }
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}

/// 64 queries at positions 192 to 255, two heads.
void native_paged_attn(benchmark::State& state) {
  multiply(state, 128, 224, 128);
}
BENCHMARK(native_paged_attn)->Apply(configure);

/// 256 queries at positions 256 to 511, two heads.
void native_mma_attn(benchmark::State& state) {
  multiply(state, 512, 384, 64);
}
BENCHMARK(native_mma_attn)->Apply(configure);

void native_lse_merge(benchmark::State& state) {
  constexpr std::size_t parts = 4;
  constexpr std::size_t rows = 1024;
  constexpr std::size_t dim = 128;
  const std::vector<std::uint16_t> values(parts * rows * dim, 0x3f80);
  const std::vector<float> lse(parts * rows, 1.0F);
  std::vector<std::uint16_t> out(rows * dim);
  std::vector<float> out_lse(rows);
  for (auto _ : state) {
    for (std::size_t row = 0; row < rows; ++row) {
      float greatest = lse[row];
      for (std::size_t p = 1; p < parts; ++p) greatest = std::max(greatest, lse[p * rows + row]);
      float sums[dim] = {};
      float weight_sum = 0.0F;
      for (std::size_t p = 0; p < parts; ++p) {
        const float weight = std::exp(lse[p * rows + row] - greatest);
        weight_sum += weight;
        const std::uint16_t* const source = &values[(p * rows + row) * dim];
        for (std::size_t i = 0; i < dim; ++i) {
          sums[i] = __builtin_fmaf(weight, widen(source[i]), sums[i]);
        }
      }
      for (std::size_t i = 0; i < dim; ++i) out[row * dim + i] = narrow(sums[i] / weight_sum);
      out_lse[row] = greatest + std::log(weight_sum);
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::DoNotOptimize(out_lse.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(native_lse_merge)->Apply(configure);

void native_kv_scatter(benchmark::State& state) {
  constexpr std::size_t tokens = 1024;
  constexpr std::size_t row_elems = 1024;
  const std::vector<std::uint16_t> k(tokens * row_elems, 1);
  const std::vector<std::uint16_t> v(tokens * row_elems, 1);
  std::vector<std::uint16_t> k_pool(tokens * row_elems);
  std::vector<std::uint16_t> v_pool(tokens * row_elems);
  constexpr std::size_t row_bytes = row_elems * sizeof(std::uint16_t);
  for (auto _ : state) {
    for (std::size_t i = 0; i < tokens; ++i) {
      const std::size_t slot = i * 7 % tokens;
      std::memcpy(&k_pool[slot * row_elems], &k[i * row_elems], row_bytes);
      std::memcpy(&v_pool[slot * row_elems], &v[i * row_elems], row_bytes);
    }
    benchmark::DoNotOptimize(k_pool.data());
    benchmark::DoNotOptimize(v_pool.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(native_kv_scatter)->Apply(configure);

/// No loop of arithmetic: the library's selection.
void native_topk_select(benchmark::State& state) {
  constexpr std::size_t rows = 8;
  constexpr std::size_t count = 8192;
  constexpr std::ptrdiff_t k = 512;
  std::vector<float> scores(count);
  std::uint32_t bits = 1;
  for (float& score : scores) {
    bits = bits * 1664525U + 1013904223U;
    score = static_cast<float>(bits >> 8U) / static_cast<float>(1U << 24U);
  }
  for (auto _ : state) {
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<float> copy = scores;
      std::nth_element(copy.begin(), copy.begin() + k, copy.end(), std::greater<>{});
      benchmark::DoNotOptimize(copy.data());
    }
  }
}
BENCHMARK(native_topk_select)->Apply(configure);

void native_index_score(benchmark::State& state) {
  constexpr std::size_t queries = 16;
  constexpr std::size_t keys = 4096;
  constexpr std::size_t heads = 4;
  constexpr std::size_t dim = 64;
  const std::vector<float> q(queries * heads * dim, 1.0F);
  const std::vector<float> k(keys * dim, 1.0F);
  const std::vector<float> weights(queries * heads, 1.0F);
  std::vector<float> out(queries * keys);
  for (auto _ : state) {
    for (std::size_t i = 0; i < queries * keys; ++i) {
      const std::size_t query = i / keys;
      float score = 0.0F;
      for (std::size_t h = 0; h < heads; ++h) {
        const float product = dot(&q[(query * heads + h) * dim], &k[i % keys * dim], dim);
        score = __builtin_fmaf(weights[query * heads + h], std::max(product, 0.0F), score);
      }
      out[i] = score;
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
}
BENCHMARK(native_index_score)->Apply(configure);

}  // namespace
