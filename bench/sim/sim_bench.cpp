#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/machine/global_memory.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"

/// Thread instructions per second of the simulated machine, memcheck and initcheck on, without and
/// with racecheck.
namespace cpverify::sim {
namespace {

std::string read_ptx(const std::string& name) {
  std::ifstream file{std::string{CPVERIFY_SOURCE_DIR} + "/tests/data/ptx/" + name};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Bench {
 public:
  explicit Bench(const std::string& ptx) : program_{read_ptx(ptx), ptx, memory_, 0} {}

  template <class T>
  std::uint64_t fill(std::size_t count, T value) {
    const std::uint64_t address = memory_.allocate(0, count * sizeof(T));
    (void)memory_.fill(address, std::as_bytes(std::span{&value, 1}), count * sizeof(T));
    return address;
  }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = memory_.allocate(0, values.size() * sizeof(T));
    (void)memory_.write(address, std::as_bytes(std::span{values}));
    return address;
  }

  template <class... Values>
  void run(benchmark::State& state, const char* entry, LaunchRequest request, Values... values) {
    (append(values), ...);
    request.parameters = parameters_;
    request.is_race_checked = state.range(0) != 0;
    const Kernel* const kernel = program_.find(entry);
    std::uint64_t threads = 0;
    std::uint64_t warps = 0;
    for (auto _ : state) {
      const LaunchResult result = launch(memory_, *kernel, request);
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
  template <class T>
  void append(T value) {
    parameters_.resize((parameters_.size() + sizeof value - 1) / sizeof value * sizeof value);
    parameters_.resize(parameters_.size() + sizeof value);
    std::memcpy(parameters_.data() + parameters_.size() - sizeof value, &value, sizeof value);
  }

  GlobalMemory memory_;
  Program program_;
  std::vector<std::byte> parameters_;
};

LaunchRequest shape(std::uint32_t x, std::uint32_t y, std::uint32_t threads,
                    std::uint32_t shared_bytes) {
  LaunchRequest request;
  request.grid = {x, y, 1};
  request.block = {threads, 1, 1};
  request.shared_bytes = shared_bytes;
  return request;
}

void saxpy(benchmark::State& state) {
  constexpr std::int32_t count = 1 << 18;
  Bench bench{"saxpy.nvcc.ptx"};
  bench.run(state, "saxpy", shape(count / 256, 1, 256, 0), count, 2.0F, bench.fill(count, 1.0F),
            bench.fill(count, 3.0F));
}
BENCHMARK(saxpy)->ArgName("racecheck")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

/// One sequence with everything in pages in order; bf16 0x3f80 is 1.
struct Attention {
  std::int32_t q_len;
  std::int32_t k_len;
  std::int32_t heads;
  std::int32_t dim;

  [[nodiscard]] std::vector<std::int32_t> pages() const {
    std::vector<std::int32_t> table;
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
  Bench bench{"paged_attn.nvcc.ptx"};
  bench.run(state, "paged_attn", shape(64, 2, 128, 0), bench.fill(a.q_elems(), kOne),
            bench.fill(a.pool_elems(), kOne), bench.fill(a.pool_elems(), kOne),
            bench.upload(std::vector<std::int32_t>{0, a.q_len}), bench.fill(1, a.k_len),
            bench.fill(64, std::int32_t{0}), bench.upload(a.pages()), (a.k_len + 15) / 16, a.heads,
            std::int32_t{1}, 0.125F, std::int32_t{1}, bench.fill(a.q_elems(), kOne),
            bench.fill(128, 0.0F));
}
BENCHMARK(paged_attn)->ArgName("racecheck")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

void mma_attn(benchmark::State& state) {
  const Attention a{256, 512, 2, 64};
  Bench bench{"mma_attn.nvcc.ptx"};
  bench.run(state, "mma_attn", shape(4, 2, 128, 5 * 64 * 64 * 2), bench.fill(a.q_elems(), kOne),
            bench.fill(a.pool_elems(), kOne), bench.fill(a.pool_elems(), kOne),
            bench.upload(std::vector<std::int32_t>{0, a.q_len}), bench.fill(1, a.k_len),
            bench.upload(a.pages()), (a.k_len + 15) / 16, a.heads, std::int32_t{1}, 0.125F,
            bench.fill(a.q_elems(), kOne), bench.fill(512, 0.0F));
}
BENCHMARK(mma_attn)->ArgName("racecheck")->Arg(0)->Arg(1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace cpverify::sim
