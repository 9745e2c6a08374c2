// What hardware and libraries leave open: how sums are taken.

#include <algorithm>
#include <cstdint>
#include <optional>

#include "cpverify/mma_accumulation.hpp"
#include "cpverify/reduction.hpp"
#include "cpverify/scenario.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

namespace cpverify::scenario {
namespace {

/// A ring is a permutation of the ranks; of how many, its length says.
void read_ring(const Value& value, ReductionSpec& reduction) {
  const auto ranks = value.list();
  for (const Value& entry : ranks) {
    const auto rank = static_cast<std::uint32_t>(
        entry.whole_number({0, static_cast<std::int64_t>(ranks.size()) - 1,
                            "a ring lists every rank from 0 on once"}));
    if (std::find(reduction.ring.begin(), reduction.ring.end(), rank) != reduction.ring.end()) {
      entry.fail("a ring lists every rank from 0 on once");
    }
    reduction.ring.push_back(rank);
  }
}

}  // namespace

void read_mma_accumulation(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("mma_accumulation");
  if (value) scenario.mma_accumulation = choice(*value, kMmaAccumulations);
}

void read_reduction(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("reduction");
  if (!value) return;
  const Map map{*value, Section::reduction};
  ReductionSpec& reduction = scenario.reduction;
  reduction.order = choice(map.require("order"), kReductionOrders);
  const bool is_ring = reduction.order == ReductionOrder::ring;
  for (const char* const key : {"ring", "channels", "chunk"}) {
    const std::optional<Value> found = map.find(key);
    if (found && !is_ring) found->fail("'ring', 'channels' and 'chunk' are for order ring");
  }
  const std::optional<Value> seed = map.find("seed");
  if (seed && reduction.order != ReductionOrder::adversarial) {
    seed->fail("'seed' is for order adversarial; the others have no choice to make");
  }
  if (seed) reduction.seed = seed->seed();
  if (const auto ring = map.find("ring")) read_ring(*ring, reduction);
  if (const auto channels = map.find("channels")) {
    reduction.channels =
        static_cast<std::uint32_t>(channels->whole_number({1, kMaxReductionChannels}));
  }
  if (const auto chunk = map.find("chunk")) {
    reduction.chunk_elems =
        static_cast<std::uint64_t>(chunk->whole_number({1, kMaxReductionChunk}));
  }
}

}  // namespace cpverify::scenario
