#include "scenario/schema.hpp"

#include <cstddef>
#include <vector>

#include "support/check.hpp"

namespace cpverify::scenario {

const std::vector<SectionKeys>& schema() {
  static const std::vector<SectionKeys> sections{
      {Section::scenario,
       "scenario",
       {"name",
        "description",
        "system",
        "model",
        "topology",
        "strategies",
        "attention_kernel",
        "dcp",
        "cache",
        "requests",
        "trace",
        "scheduler",
        "padding",
        "data",
        "schedule",
        "mma_accumulation",
        "reduction",
        "checks",
        "inject",
        "launch",
        "expect"}},
      {Section::system, "system", {"name", "backend", "features"}},
      {Section::model,
       "model",
       {"attention", "num_heads_q", "num_heads_kv", "head_dim", "dtype", "softmax_scale"}},
      {Section::topology, "topology", {"cp", "tp", "dcp", "kv_sharding", "kv_interleave"}},
      {Section::dcp, "dcp", {"visibility", "combine"}},
      {Section::cache, "cache", {"block_size", "num_blocks", "shuffle_seed"}},
      {Section::request,
       "requests",
       {"id", "cached_prefix", "shared_prefix", "prompt", "decode", "arrival_step"}},
      {Section::shared_prefix, "shared_prefix", {"request", "tokens"}},
      {Section::trace,
       "trace",
       {"file", "first", "requests", "scale", "milliseconds_per_step", "hash_block_tokens"}},
      {Section::scheduler, "scheduler", {"max_batched_tokens"}},
      {Section::padding, "padding", {"token_multiple"}},
      {Section::data, "data", {"modes", "seed"}},
      {Section::schedule, "schedule", {"policy", "seed", "depth", "threads"}},
      {Section::reduction, "reduction", {"order", "ring", "channels", "chunk", "seed"}},
      {Section::inject, "inject", {"defect"}},
      {Section::expect, "expect", {"findings", "values", "refused"}},
      {Section::finding,
       "findings",
       {"check", "kind", "strategy", "mode", "step", "rank", "request", "token", "key", "head",
        "page", "slot", "buffer", "element", "kernel", "source", "line", "detail"}},
      {Section::expected_values, "values", {"buffer", "first", "values"}},
      {Section::launch, "launch", {"module", "file", "instruction_budget", "buffers", "launches"}},
      {Section::buffer, "buffers", {"name", "dtype", "elements", "fill", "values"}},
      {Section::launch_step,
       "launches",
       {"entry", "grid", "block", "shared_bytes", "arguments", "free"}},
      {Section::argument,
       "arguments",
       {"buffer", "offset", "s32", "u32", "f32", "s64", "u64", "f64"}},
  };
  return sections;
}

const SectionKeys& keys_of(Section section) {
  const auto index = static_cast<std::size_t>(section);
  CPVERIFY_CHECK(index < schema().size());
  CPVERIFY_CHECK(schema()[index].section == section);
  return schema()[index];
}

}  // namespace cpverify::scenario
