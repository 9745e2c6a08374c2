#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "bench/sim/kernel_inputs.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"
#include "support/parallel.hpp"

/// Eight ranks, each with memory of its own, that run the same kernel on other values: on one
/// thread of the host and on two, racecheck on. The bytes they leave must not depend on it.
namespace cpverify::sim {
namespace {

constexpr std::size_t kRanks = 8;
constexpr std::int32_t kRows = 512;
constexpr std::int32_t kParts = 4;
constexpr std::size_t kElements = std::size_t{kRows} * 128;

class Rank {
 public:
  Rank(const std::string& ptx, std::uint32_t rank)
      : program_{ptx, "lse_merge.ptx", inputs_.memory(), 0} {
    const auto value = static_cast<std::uint16_t>(0x3f80 + rank);
    const std::uint64_t parts = inputs_.fill(kParts * kElements, value);
    const std::uint64_t lses =
        inputs_.fill(std::size_t{kParts} * kRows, 1.0F + static_cast<float>(rank));
    result_ = inputs_.fill(kElements, value);
    inputs_.append(parts);
    inputs_.append(lses);
    inputs_.append(kParts);
    inputs_.append(kRows);
    inputs_.append(result_);
    inputs_.append(inputs_.fill(std::size_t{kRows}, 0.0F));
  }

  /// The result, or nothing when the launch has faults.
  std::vector<std::byte> run() {
    LaunchRequest request;
    request.grid = {kRows / 4, 1, 1};
    request.block = {128, 1, 1};
    request.parameters = inputs_.parameters();
    request.is_race_checked = true;
    const LaunchResult result = launch(inputs_.memory(), *program_.find("lse_merge"), request);
    if (result.status != LaunchStatus::completed || !result.faults.empty()) return {};
    std::vector<std::byte> bytes(kElements * 2);
    (void)inputs_.memory().read(bytes, result_);
    return bytes;
  }

 private:
  KernelInputs inputs_;
  Program program_;
  std::uint64_t result_ = 0;
};

using Results = std::array<std::vector<std::byte>, kRanks>;

Results run_all(const std::vector<std::unique_ptr<Rank>>& ranks, unsigned threads) {
  Results results;
  for_each_index(kRanks, threads, [&](std::size_t i) { results[i] = ranks[i]->run(); });
  return results;
}

void eight_ranks(benchmark::State& state) {
  const std::string ptx = read_ptx("lse_merge.nvcc.ptx");
  std::vector<std::unique_ptr<Rank>> ranks;
  ranks.reserve(kRanks);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(ptx, rank));
  }
  const Results expected = run_all(ranks, 1);
  for (auto _ : state) {
    const Results results = run_all(ranks, static_cast<unsigned>(state.range(0)));
    if (results != expected || results[0].empty()) {
      state.SkipWithError("the bytes depend on the number of threads");
      return;
    }
  }
}
BENCHMARK(eight_ranks)
    ->ArgName("threads")
    ->Arg(1)
    ->Arg(2)
    ->Unit(benchmark::kMillisecond)
    ->MinTime(0.2)
    ->Repetitions(5)
    ->UseRealTime();

}  // namespace
}  // namespace cpverify::sim
