#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/sim/kernel_inputs.hpp"
#include "bench/sim/unchecked.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/kernel.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/machine_code.hpp"
#include "sim/machine/program.hpp"

/// Thread instructions per second of the simulated machine, with memcheck and initcheck (1),
/// without (0), and with racecheck too (2), with both widths of vectors. native_loops.cpp has the
/// same arithmetic as loops of the host, summary.cpp what is printed.
namespace cpverify::sim {
namespace {

class Bench {
 public:
  Bench(benchmark::State& state, const std::string& ptx)
      : program_{read_ptx(ptx), ptx, inputs_.memory(), 0, width(state)} {}

  static VectorWidth width(const benchmark::State& state) {
    return state.range(1) == 512 ? VectorWidth::bits_512 : VectorWidth::bits_256;
  }

  template <class T>
  std::uint64_t fill(std::size_t count, T value) {
    return inputs_.fill(count, value);
  }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    return inputs_.upload(values);
  }

  template <class... Values>
  void run(benchmark::State& state, const char* entry, LaunchRequest request, Values... values) {
    (inputs_.append(values), ...);
    if (width(state) > widest_vectors()) {
      state.SkipWithError("this host has no AVX-512");
      return;
    }
    request.parameters = inputs_.parameters();
    request.is_race_checked = state.range(0) == 2;
    const Kernel* const checked = program_.find(entry);
    std::optional<Kernel> unchecked;
    if (state.range(0) == 0) unchecked = without_checks(*checked);
    const Kernel* const kernel = unchecked ? &*unchecked : checked;
    std::uint64_t threads = 0;
    std::uint64_t warps = 0;
    for (auto _ : state) {
      const LaunchResult result = launch(inputs_.memory(), *kernel, request);
      if (result.status != LaunchStatus::completed || !result.faults.empty()) {
        state.SkipWithError("the kernel has faults");
        return;
      }
      threads += result.thread_instructions;
      warps += result.warp_instructions;
    }
    state.counters["thread_instructions"] =
        benchmark::Counter(static_cast<double>(threads), benchmark::Counter::kIsRate);
    state.counters["warp_instructions"] =
        benchmark::Counter(static_cast<double>(warps), benchmark::Counter::kIsRate);
  }

 private:
  KernelInputs inputs_;
  Program program_;
};

LaunchRequest shape(std::uint32_t x, std::uint32_t y, std::uint32_t threads,
                    std::uint32_t shared_bytes) {
  LaunchRequest request;
  request.grid = {x, y, 1};
  request.block = {threads, 1, 1};
  request.shared_bytes = shared_bytes;
  return request;
}

void configure(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"checks", "vector"})->Unit(benchmark::kMillisecond);
  bench->MinTime(0.05)->Repetitions(5);
  bench->Args({1, 512})->Args({2, 512})->Args({1, 256})->Args({2, 256})->Args({0, 256});
}

void saxpy(benchmark::State& state) {
  const std::int32_t count = 1 << 18;
  Bench bench{state, "saxpy.nvcc.ptx"};
  bench.run(state, "saxpy", shape(count / 256, 1, 256, 0), count, 2.0F, bench.fill(count, 1.0F),
            bench.fill(count, 3.0F));
}
BENCHMARK(saxpy)->Apply(configure);

/// One sequence with everything in pages in order; bf16 0x3f80 is 1.
struct Attention {
  std::int32_t q_len;
  std::int32_t k_len;
  std::int32_t heads;
  std::int32_t dim;

  [[nodiscard]] std::vector<std::int32_t> pages() const {
    std::vector<std::int32_t> table;
    table.reserve(static_cast<std::size_t>((k_len + 15) / 16));
    for (std::int32_t i = 0; i < (k_len + 15) / 16; ++i) table.push_back(i);
    return table;
  }
  [[nodiscard]] std::size_t q_elems() const {
    return static_cast<std::size_t>(q_len * heads) * static_cast<std::size_t>(dim);
  }
  [[nodiscard]] std::size_t pool_elems() const {
    return static_cast<std::size_t>((k_len + 15) / 16 * 16) * static_cast<std::size_t>(dim);
  }
};

constexpr std::uint16_t kOne = 0x3f80;

void paged_attn(benchmark::State& state) {
  const Attention a{64, 256, 2, 128};
  Bench bench{state, "paged_attn.nvcc.ptx"};
  bench.run(state, "paged_attn", shape(64, 2, 128, 0), bench.fill(a.q_elems(), kOne),
            bench.fill(a.pool_elems(), kOne), bench.fill(a.pool_elems(), kOne),
            bench.upload(std::vector<std::int32_t>{0, a.q_len}), bench.fill(1, a.k_len),
            bench.fill(64, std::int32_t{0}), bench.upload(a.pages()), (a.k_len + 15) / 16, a.heads,
            std::int32_t{1}, 0.125F, std::int32_t{1}, bench.fill(a.q_elems(), kOne),
            bench.fill(128, 0.0F));
}
BENCHMARK(paged_attn)->Apply(configure);

void mma_attn(benchmark::State& state) {
  const Attention a{256, 512, 2, 64};
  Bench bench{state, "mma_attn.nvcc.ptx"};
  bench.run(state, "mma_attn", shape(4, 2, 128, 5 * 64 * 64 * 2), bench.fill(a.q_elems(), kOne),
            bench.fill(a.pool_elems(), kOne), bench.fill(a.pool_elems(), kOne),
            bench.upload(std::vector<std::int32_t>{0, a.q_len}), bench.fill(1, a.k_len),
            bench.upload(a.pages()), (a.k_len + 15) / 16, a.heads, std::int32_t{1}, 0.125F,
            bench.fill(a.q_elems(), kOne), bench.fill(512, 0.0F));
}
BENCHMARK(mma_attn)->Apply(configure);

void lse_merge(benchmark::State& state) {
  const std::int32_t parts = 4;
  const std::int32_t rows = 1024;
  const std::size_t elems = std::size_t{rows} * 128;
  Bench bench{state, "lse_merge.nvcc.ptx"};
  bench.run(state, "lse_merge", shape(rows / 4, 1, 128, 0), bench.fill(parts * elems, kOne),
            bench.fill(std::size_t{parts} * rows, 1.0F), parts, rows, bench.fill(elems, kOne),
            bench.fill(rows, 0.0F));
}
BENCHMARK(lse_merge)->Apply(configure);

void kv_scatter(benchmark::State& state) {
  const std::int32_t tokens = 1024;
  const std::int32_t row_elems = 1024;
  const std::int32_t page = 16;
  std::vector<std::int64_t> slots;
  slots.reserve(static_cast<std::size_t>(tokens));
  for (std::int64_t i = 0; i < tokens; ++i) slots.push_back(i * 7 % tokens);
  const std::size_t elems = std::size_t{tokens} * row_elems;
  Bench bench{state, "kv_scatter.nvcc.ptx"};
  bench.run(state, "kv_scatter", shape(tokens, 1, 128, 0), bench.fill(elems, kOne),
            bench.fill(elems, kOne), bench.fill(elems, kOne), bench.fill(elems, kOne),
            bench.upload(slots), row_elems, page, std::uint64_t{page} * row_elems);
}
BENCHMARK(kv_scatter)->Apply(configure);

/// Numbers in [0, 1) in no order.
std::vector<float> scattered(std::size_t count) {
  std::vector<float> values(count);
  std::uint32_t bits = 1;
  for (float& value : values) {
    bits = bits * 1664525U + 1013904223U;
    value = static_cast<float>(bits >> 8U) / static_cast<float>(1U << 24U);
  }
  return values;
}

void topk_select(benchmark::State& state) {
  const std::int32_t count = 8192;
  const std::int32_t k = 512;
  const std::uint32_t rows = 8;
  Bench bench{state, "topk_indexer.nvcc.ptx"};
  bench.run(state, "topk_select", shape(rows, 1, 256, 0),
            bench.upload(scattered(std::size_t{rows} * count)), count, k,
            bench.fill(std::size_t{rows} * k, std::int32_t{0}), bench.fill(rows, std::int32_t{0}));
}
BENCHMARK(topk_select)->Apply(configure);

void index_score(benchmark::State& state) {
  const std::int32_t keys = 4096;
  const std::uint32_t queries = 16;
  Bench bench{state, "topk_indexer.nvcc.ptx"};
  bench.run(state, "index_score", shape(keys / 8, queries, 256, 0),
            bench.fill(std::size_t{queries} * 4 * 64, kOne),
            bench.fill(std::size_t{keys} * 64, kOne), bench.fill(std::size_t{queries} * 4, 1.0F),
            keys, bench.fill(std::size_t{queries} * keys, 0.0F));
}
BENCHMARK(index_score)->Apply(configure);

/// Parsing and decoding: a kernel of 1,000 additions.
void load_1000_instructions(benchmark::State& state) {
  std::string ptx =
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .f32 %f<9>;\n"
      "mov.f32 %f0, 0f3F800000;\n";
  for (int i = 0; i < 1000; ++i) ptx += "add.rn.f32 %f1, %f0, %f1;\n";
  ptx += "ret;\n}\n";
  for (auto _ : state) {
    GlobalMemory memory;
    const Program program{ptx, "k.ptx", memory, 0};
    benchmark::DoNotOptimize(program.find("k"));
  }
}
BENCHMARK(load_1000_instructions)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cpverify::sim
