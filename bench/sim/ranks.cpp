#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "sim/machine/global_memory.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"

/// Eight ranks, each with memory of its own, that run the same kernel on other values: on one
/// thread of the host and on two, racecheck on. The bytes they leave must not depend on it.
namespace cpverify::sim {
namespace {

constexpr std::size_t kRanks = 8;
constexpr std::int32_t kRows = 512;
constexpr std::int32_t kParts = 4;
constexpr std::size_t kElements = std::size_t{kRows} * 128;

std::string read_ptx() {
  std::ifstream file{std::string{CPVERIFY_SOURCE_DIR} + "/tests/data/ptx/lse_merge.nvcc.ptx"};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class Rank {
 public:
  Rank(const std::string& ptx, std::uint32_t rank) : program_{ptx, "lse_merge.ptx", memory_, 0} {
    const auto value = static_cast<std::uint16_t>(0x3f80 + rank);
    const std::uint64_t parts = fill(kParts * kElements, value);
    const std::uint64_t lses = fill(std::size_t{kParts} * kRows, 1.0F + static_cast<float>(rank));
    result_ = fill(kElements, value);
    append(parts);
    append(lses);
    append(kParts);
    append(kRows);
    append(result_);
    append(fill(std::size_t{kRows}, 0.0F));
  }

  /// The result, or nothing when the launch has faults.
  std::vector<std::byte> run() {
    LaunchRequest request;
    request.grid = {kRows / 4, 1, 1};
    request.block = {128, 1, 1};
    request.parameters = parameters_;
    request.is_race_checked = true;
    const LaunchResult result = launch(memory_, *program_.find("lse_merge"), request);
    if (result.status != LaunchStatus::completed || !result.faults.empty()) return {};
    std::vector<std::byte> bytes(kElements * 2);
    (void)memory_.read(bytes, result_);
    return bytes;
  }

 private:
  template <class T>
  std::uint64_t fill(std::size_t count, T value) {
    const std::uint64_t address = memory_.allocate(0, count * sizeof(T));
    (void)memory_.fill(address, std::as_bytes(std::span{&value, 1}), count * sizeof(T));
    return address;
  }
  template <class T>
  void append(T value) {
    parameters_.resize((parameters_.size() + sizeof value - 1) / sizeof value * sizeof value);
    parameters_.resize(parameters_.size() + sizeof value);
    std::memcpy(parameters_.data() + parameters_.size() - sizeof value, &value, sizeof value);
  }

  GlobalMemory memory_;
  Program program_;
  std::vector<std::byte> parameters_;
  std::uint64_t result_ = 0;
};

using Results = std::array<std::vector<std::byte>, kRanks>;

Results run_all(const std::vector<std::unique_ptr<Rank>>& ranks, std::size_t thread_count) {
  Results results;
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < kRanks; i = next++) results[i] = ranks[i]->run();
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < thread_count; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  return results;
}

void eight_ranks(benchmark::State& state) {
  const std::string ptx = read_ptx();
  std::vector<std::unique_ptr<Rank>> ranks;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ranks.push_back(std::make_unique<Rank>(ptx, rank));
  }
  const Results expected = run_all(ranks, 1);
  for (auto _ : state) {
    const Results results = run_all(ranks, static_cast<std::size_t>(state.range(0)));
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
