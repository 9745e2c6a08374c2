#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/scenario.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

// What is independent of the traffic: model, topology, attention kernel, cache, padding, data.
namespace cpverify::scenario {
namespace {

constexpr std::array<std::int64_t, 3> kHeadDims{32, 64, 128};
/// Far outside what models use (1/sqrt(head_dim) is 0.09 to 0.18), yet q stays finite in f16.
constexpr float kMinSoftmaxScale = 0.0009F;
constexpr float kMaxSoftmaxScale = 16.0F;

std::uint32_t count(const Value& value, const Range& range) {
  return static_cast<std::uint32_t>(value.whole_number(range));
}

void check_head_counts(const Value& num_heads_q, const ModelSpec& model) {
  if (model.num_heads_q % model.num_heads_kv == 0) return;
  num_heads_q.fail(
      fmt::format("'num_heads_q' is {}, which is not a multiple of num_heads_kv {}; every KV head "
                  "serves the same number of query heads",
                  model.num_heads_q, model.num_heads_kv));
}

/// One head of each kind is both mha and mqa.
bool is_kind(AttentionKind kind, const ModelSpec& model) noexcept {
  switch (kind) {
    case AttentionKind::mha:
      return model.num_heads_kv == model.num_heads_q;
    case AttentionKind::mqa:
      return model.num_heads_kv == 1;
    case AttentionKind::gqa:
      return model.num_heads_kv > 1 && model.num_heads_kv < model.num_heads_q;
  }
  return false;
}

AttentionKind kind_of(const ModelSpec& model) noexcept {
  const auto* const kind =
      std::find_if(kAttentionKinds.begin(), kAttentionKinds.end(),
                   [&model](AttentionKind candidate) { return is_kind(candidate, model); });
  return kind == kAttentionKinds.end() ? AttentionKind::gqa : *kind;
}

AttentionKind attention_kind(const Map& map, const ModelSpec& model) {
  const std::optional<Value> given = map.find("attention");
  if (!given) return kind_of(model);
  const AttentionKind kind = choice(*given, kAttentionKinds);
  if (!is_kind(kind, model)) {
    given->fail(fmt::format("'attention' is {}, but {} query heads on {} KV heads are {}",
                            cpverify::name(kind), model.num_heads_q, model.num_heads_kv,
                            cpverify::name(kind_of(model))));
  }
  return kind;
}

std::uint32_t head_dim(const Value& value) {
  const std::int64_t given = value.whole_number({1, 1 << 20});
  if (std::find(kHeadDims.begin(), kHeadDims.end(), given) == kHeadDims.end()) {
    value.fail(fmt::format("'head_dim' is {}; expected 32, 64 or 128", given));
  }
  return static_cast<std::uint32_t>(given);
}

void check_heads_per_rank(const Value& tp, const ModelSpec& model, std::uint32_t tp_size) {
  if (model.num_heads_q % tp_size != 0) {
    tp.fail(fmt::format("'tp' is {}, which does not divide num_heads_q {}", tp_size,
                        model.num_heads_q));
  }
  // Either a rank has whole KV heads of its own, or several ranks hold a copy of one.
  if (model.num_heads_kv % tp_size != 0 && tp_size % model.num_heads_kv != 0) {
    tp.fail(fmt::format("'tp' is {} with num_heads_kv {}; expected one to divide the other",
                        tp_size, model.num_heads_kv));
  }
}

/// true: drawn from the seed; false: none; or a logit for each query head.
void read_sinks(const Value& value, ModelSpec& model) {
  if (!value.node().IsSequence()) {
    const std::string word = value.text();
    if (word != "true" && word != "false") {
      value.fail(fmt::format("'sinks': expected true, false or a list of logits, found {}",
                             in_quotes(word)));
    }
    model.has_sinks = word == "true";
    return;
  }
  model.has_sinks = true;
  for (const Value& entry : value.list()) {
    model.sinks.push_back(entry.number(-kMaxSink, kMaxSink));
  }
  if (model.sinks.size() != model.num_heads_q) {
    value.fail(fmt::format("'sinks' has {} logits; expected one for each of {} query heads",
                           model.sinks.size(), model.num_heads_q));
  }
}

void read_features(const Map& map, ModelSpec& model) {
  const std::optional<Value> soft_cap = map.find("soft_cap");
  if (soft_cap) model.soft_cap = soft_cap->number(kMinSoftCap, kMaxSoftCap);
  const std::optional<Value> sinks = map.find("sinks");
  if (sinks) read_sinks(*sinks, model);
  const std::optional<Value> window = map.find("sliding_window");
  if (window) model.sliding_window = window->whole_number({1, kMaxTokens});
}

}  // namespace

void read_model(const Map& file, Scenario& scenario) {
  const Map map{file.require("model"), Section::model};
  ModelSpec& model = scenario.model;
  const Value num_heads_q = map.require("num_heads_q");
  model.num_heads_q = count(num_heads_q, {1, kMaxHeads});
  model.num_heads_kv = count(map.require("num_heads_kv"), {1, kMaxHeads});
  check_head_counts(num_heads_q, model);
  model.attention = attention_kind(map, model);
  model.head_dim = head_dim(map.require("head_dim"));
  model.dtype = choice(map.require("dtype"), kModelDTypes);
  model.softmax_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(model.head_dim)));
  const std::optional<Value> scale = map.find("softmax_scale");
  if (scale) model.softmax_scale = scale->number(kMinSoftmaxScale, kMaxSoftmaxScale);
  read_features(map, model);
}

namespace {

/// Such a group is the ranks of a prefill group, or all there are, and those share one KV head.
void check_group_over_prefill(const Value& dcp, const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.dcp != topology.cp && topology.dcp != topology.cp * topology.tp) {
    dcp.fail(
        fmt::format("'dcp' is {} with kv_sharding dcp_over_pcp; expected cp {}, or all {} ranks",
                    topology.dcp, topology.cp, topology.cp * topology.tp));
  }
  if (topology.dcp != topology.cp && scenario.model.num_heads_kv != 1) {
    dcp.fail(
        fmt::format("'dcp' is {}, all ranks, which must share one KV head; there are {}; expected "
                    "dcp {}",
                    topology.dcp, scenario.model.num_heads_kv, topology.cp));
  }
}

/// The ranks of a decode group share one KV head, or a shard would not hold what another reads.
void check_decode_group(const Value& dcp, const Scenario& scenario) {
  const TopologySpec& topology = scenario.topology;
  if (topology.tp % topology.dcp != 0) {
    dcp.fail(
        fmt::format("'dcp' is {}, which does not divide tp {}; a decode group is consecutive "
                    "ranks of a tensor-parallel one",
                    topology.dcp, topology.tp));
  }
  if (topology.dcp == 1) return;
  const std::uint32_t copies = std::max(1U, topology.tp / scenario.model.num_heads_kv);
  if (copies % topology.dcp != 0) {
    dcp.fail(
        fmt::format("'dcp' is {}, and {} of the {} tensor-parallel ranks hold a copy of a KV "
                    "head; expected a divisor, so that a decode group shares one KV head",
                    topology.dcp, copies, topology.tp));
  }
}

void read_sharding(const Map& map, Scenario& scenario) {
  TopologySpec& topology = scenario.topology;
  const std::optional<Value> sharding = map.find("kv_sharding");
  if (sharding) topology.kv_sharding = choice(*sharding, kKvShardings);
  const std::optional<Value> dcp = map.find("dcp");
  if (dcp) {
    topology.dcp = count(*dcp, {1, kMaxWorldSize, " ranks"});
    if (topology.kv_sharding != KvSharding::dcp_over_pcp) check_decode_group(*dcp, scenario);
  }
  if (topology.kv_sharding == KvSharding::dcp_over_pcp) {
    check_group_over_prefill(dcp ? *dcp : *sharding, scenario);
  }
  const std::optional<Value> interleave = map.find("kv_interleave");
  if (interleave) topology.kv_interleave = count(*interleave, {1, kMaxBlockSize, " tokens"});
}

}  // namespace

void read_topology(const Map& file, Scenario& scenario) {
  const Map map{file.require("topology"), Section::topology};
  constexpr Range kRanks{1, kMaxWorldSize, " ranks"};
  const Value cp = map.require("cp");
  scenario.topology.cp = count(cp, kRanks);
  const std::optional<Value> tp = map.find("tp");
  if (tp) {
    scenario.topology.tp = count(*tp, kRanks);
    check_heads_per_rank(*tp, scenario.model, scenario.topology.tp);
  }
  read_sharding(map, scenario);
  const std::uint32_t world = scenario.topology.cp * scenario.topology.tp;
  if (world > kMaxWorldSize) {
    cp.fail(
        fmt::format("cp {} times tp {} is {} ranks; expected at most {}, every one a simulated "
                    "GPU",
                    scenario.topology.cp, scenario.topology.tp, world, kMaxWorldSize));
  }
}

/// attention_hopper has entries of bf16 with heads of 64 and 128 dimensions; see its contract.
static void check_hopper(const Value& value, const ModelSpec& model) {
  if (model.dtype != DType::bf16) {
    value.fail(fmt::format("'attention_kernel' is hopper, which has no {}; expected dtype bf16",
                           name(model.dtype)));
  }
  if (model.head_dim != 64 && model.head_dim != 128) {
    value.fail(
        fmt::format("'attention_kernel' is hopper, which has no head_dim {}; expected 64 or "
                    "128",
                    model.head_dim));
  }
}

void read_attention_kernel(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("attention_kernel");
  if (!value) return;
  scenario.attention_kernel = choice(*value, kAttentionKernels);
  if (scenario.attention_kernel == AttentionKernel::mma && scenario.model.dtype == DType::f32) {
    value->fail(
        "'attention_kernel' is mma, which has no f32; expected fma or auto, or dtype f16 or bf16");
  }
  if (scenario.attention_kernel == AttentionKernel::hopper) check_hopper(*value, scenario.model);
}

namespace {

/// Single slots are dealt out to the shards, whose pools are of one size.
void check_slot_count(const Value& num_blocks, const Scenario& scenario) {
  const std::uint32_t shards = scenario.topology.kv_shards();
  if (scenario.cache.unit == CacheUnit::block || scenario.cache.num_blocks % shards == 0) return;
  num_blocks.fail(
      fmt::format("'num_blocks' is {} slots for {} shards of the cache; expected a multiple of {}",
                  scenario.cache.num_blocks, shards, shards));
}

}  // namespace

void read_cache(const Map& file, Scenario& scenario) {
  const Map map{file.require("cache"), Section::cache};
  CacheSpec& cache = scenario.cache;
  cache.where = map.where();
  cache.block_size = count(map.require("block_size"), {1, kMaxBlockSize, " tokens"});
  const TopologySpec& topology = scenario.topology;
  if (cache.block_size % topology.kv_interleave != 0) {
    map.require("block_size")
        .fail(
            fmt::format("'block_size' is {}, which is no multiple of kv_interleave {}; the tokens "
                        "of a block are dealt to the shards in whole runs",
                        cache.block_size, topology.kv_interleave));
  }
  const std::optional<Value> unit = map.find("unit");
  if (unit) cache.unit = choice(*unit, kCacheUnits);
  const std::optional<Value> reuse = map.find("reuse");
  if (reuse) cache.reuse = choice(*reuse, kCacheReuses);
  const std::optional<Value> num_blocks = map.find("num_blocks");
  if (num_blocks) {
    const std::int64_t limit =
        std::max<std::int64_t>(kMaxPoolSlots / cache.block_size / topology.kv_shards(), 2);
    // Block 0 is the null block, so a pool of one block holds nothing.
    cache.num_blocks = count(*num_blocks, {2, limit, ", the null block included"});
    cache.where = num_blocks->where();
    check_slot_count(*num_blocks, scenario);
  }
  const std::optional<Value> shuffle_seed = map.find("shuffle_seed");
  if (shuffle_seed) cache.shuffle_seed = shuffle_seed->seed();
}

void read_padding(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("padding");
  if (!value) return;
  const Map map{*value, Section::padding};
  scenario.padding.token_multiple =
      map.require("token_multiple").whole_number({1, kMaxTokenMultiple, " rows"});
}

void read_data(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("data");
  if (!value) return;
  const Map map{*value, Section::data};
  const std::optional<Value> modes = map.find("modes");
  if (modes && scenario.launch) modes->fail("'modes' are for attention; 'launch' has one run");
  if (modes) scenario.data.modes = choices(*modes, kDataModes);
  const std::optional<Value> seed = map.find("seed");
  if (seed) scenario.data.seed = seed->seed();
}

}  // namespace cpverify::scenario
