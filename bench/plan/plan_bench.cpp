// Time of the proofs of a split (src/layout/coverage.hpp): one request of a million tokens over
// more and more ranks, then more and more requests on 128 ranks. Counter `parts` is the number of
// attention parts looked at; time should grow with it, and not with the tokens.
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include <benchmark/benchmark.h>

#include "layout/coverage.hpp"
#include "layout/splits.hpp"

namespace {

using cpverify::layout::BatchSplit;
using cpverify::layout::SplitKind;
using cpverify::layout::SplitRow;
using cpverify::layout::SplitSpec;

/// `num_requests` requests that share a million new tokens, each behind 1000 cached ones.
BatchSplit batch_of(SplitKind kind, std::uint32_t num_ranks, std::int64_t num_requests) {
  SplitSpec spec;
  spec.kind = kind;
  spec.num_heads_q = num_ranks;
  const bool is_dcp = kind == SplitKind::dcp;
  (is_dcp ? spec.dcp : spec.cp) = num_ranks;
  spec.interleave_size = is_dcp ? 16 : 1;
  return {spec, std::vector<SplitRow>(static_cast<std::size_t>(num_requests),
                                      {1000, 1'000'000 / num_requests, false})};
}

void check(benchmark::State& state, SplitKind kind) {
  const BatchSplit batch =
      batch_of(kind, static_cast<std::uint32_t>(state.range(0)), state.range(1));
  for (auto _ : state) {
    const auto problems = cpverify::layout::check_batch(batch);
    if (!problems.empty()) throw std::logic_error{problems.kept.front().message};
  }
  std::size_t parts = 0;
  for (std::size_t i = 0; i < batch.rows().size(); ++i) parts += batch.request(i).parts.size();
  state.counters["parts"] = static_cast<double>(parts);
  state.SetComplexityN(static_cast<std::int64_t>(parts));
}

void ranks_and_requests(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"ranks", "requests"})->Unit(benchmark::kMillisecond);
  for (const int ranks : {8, 32, 128}) bench->Args({ranks, 1});
  for (const int requests : {10, 100, 1000}) bench->Args({128, requests});
}

}  // namespace

BENCHMARK_CAPTURE(check, zigzag, SplitKind::zigzag)->Apply(ranks_and_requests);
BENCHMARK_CAPTURE(check, interleave, SplitKind::interleave)->Apply(ranks_and_requests);
BENCHMARK_CAPTURE(check, dcp, SplitKind::dcp)->Apply(ranks_and_requests);
BENCHMARK_CAPTURE(check, pcp_head_tail, SplitKind::pcp_head_tail)->Apply(ranks_and_requests);
BENCHMARK_CAPTURE(check, ring, SplitKind::ring)
    ->ArgNames({"ranks", "requests"})
    ->Unit(benchmark::kMillisecond)
    ->Args({8, 1})
    ->Args({32, 1})
    ->Args({128, 1});
