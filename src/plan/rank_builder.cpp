#include "plan/rank_builder.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/topology.hpp"
#include "support/check.hpp"
#include "support/round_up.hpp"

namespace cpverify::plan {
namespace {

AttentionKernel kernel_of(const Scenario& scenario) {
  const bool is_16_bit = size_bytes(scenario.model.dtype) == 2;
  switch (scenario.attention_kernel) {
    case AttentionKernel::automatic:
      return is_16_bit ? AttentionKernel::mma : AttentionKernel::fma;
    case AttentionKernel::fma:
      break;
    case AttentionKernel::mma:
      CPVERIFY_CHECK(is_16_bit);
      break;
    case AttentionKernel::hopper:
      CPVERIFY_CHECK(scenario.model.dtype == DType::bf16);
      break;
  }
  return scenario.attention_kernel;
}

/// Slots in the rank's own pool; kPadRow for a token that another shard holds.
std::vector<std::int64_t> shard_slots(const Step& step, const KvShard& shard,
                                      std::int64_t block_tokens) {
  std::vector<std::int64_t> slots = step_slots(step);
  for (std::int64_t& slot : slots) {
    slot = layout::local_slot(shard, block_tokens, slot).value_or(kPadRow);
  }
  return slots;
}

/// A shard has a part of every block, or of the blocks when those are single slots.
void set_pool_shape(const Problem& problem, std::int64_t shards, RankShape& shape) {
  shape.block_size = problem.block_tokens();
  shape.num_blocks = problem.num_blocks;
  std::int64_t& divided =
      problem.scenario.cache.unit == CacheUnit::slot ? shape.num_blocks : shape.block_size;
  CPVERIFY_CHECK(divided % shards == 0);
  divided /= shards;
}

/// 0 .. count-1, then pad rows up to `size`.
std::vector<std::int64_t> identity_rows(std::int64_t count, std::int64_t size) {
  std::vector<std::int64_t> rows;
  rows.reserve(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < count; ++i) {
    rows.push_back(i);
  }
  return padded(std::move(rows), size, kPadRow);
}

}  // namespace

RankShape make_rank_shape(const Problem& problem, const Step& step, const RankPlan& rank) {
  const Scenario& scenario = problem.scenario;
  RankShape shape;
  shape.dtype = scenario.model.dtype;
  shape.num_tokens = step.num_tokens();
  shape.padded_rows = round_up(shape.num_tokens, scenario.padding.token_multiple);
  shape.num_seqs = static_cast<std::int64_t>(step.rows.size());
  for (const StepRow& row : step.rows) {
    shape.max_pages = std::max(shape.max_pages, static_cast<std::int64_t>(row.block_table.size()));
  }
  set_pool_shape(problem, rank.kv_shard.count, shape);
  shape.num_heads_q = rank.heads_q.count;
  shape.num_heads_kv = rank.heads_kv.count;
  shape.head_dim = scenario.model.head_dim;
  shape.kernel = kernel_of(scenario);
  const auto scale = static_cast<double>(scenario.model.softmax_scale);
  const auto soft_cap = static_cast<double>(scenario.model.soft_cap);
  const bool is_capped = scenario.model.soft_cap > 0.0F;
  shape.softmax_scale_log2 =
      static_cast<float>((is_capped ? soft_cap : scale) * std::numbers::log2e);
  shape.soft_cap_scale = is_capped ? static_cast<float>(scale / soft_cap) : 0.0F;
  shape.has_sinks = scenario.model.has_sinks;
  shape.window = scenario.model.sliding_window;
  return shape;
}

std::vector<Group> cp_groups(const TopologySpec& topology) {
  std::vector<Group> groups;
  groups.reserve(topology.tp);
  for (std::uint32_t tp_rank = 0; tp_rank < topology.tp; ++tp_rank) {
    groups.push_back(
        {fmt::format("cp[tp={}]", tp_rank), layout::cp_group(topology, layout::TpRank{tp_rank})});
  }
  return groups;
}

std::vector<std::int64_t> padded(std::vector<std::int64_t> values, std::int64_t size,
                                 std::int64_t fill) {
  CPVERIFY_CHECK(static_cast<std::int64_t>(values.size()) <= size);
  values.resize(static_cast<std::size_t>(size), fill);
  return values;
}

std::vector<std::int64_t> step_slots(const Step& step) {
  std::vector<std::int64_t> slots;
  for (const StepRow& row : step.rows) {
    CPVERIFY_CHECK(static_cast<std::int64_t>(row.slots.size()) == row.scheduled);
    slots.insert(slots.end(), row.slots.begin(), row.slots.end());
  }
  return slots;
}

std::vector<std::int64_t> step_positions(const Step& step) {
  std::vector<std::int64_t> positions;
  for (const StepRow& row : step.rows) {
    for (std::int64_t i = 0; i < row.scheduled; ++i) positions.push_back(row.computed + i);
  }
  return positions;
}

bool has_context(const Step& step) {
  return std::any_of(step.rows.begin(), step.rows.end(),
                     [](const StepRow& row) { return row.computed > 0; });
}

std::vector<std::int64_t> block_table_line(const StepRow& row, std::int64_t max_pages) {
  return padded({row.block_table.begin(), row.block_table.end()}, max_pages, 0);
}

std::vector<std::int64_t> block_table_lines(const Step& step, std::int64_t max_pages) {
  std::vector<std::int64_t> table;
  for (const StepRow& row : step.rows) {
    const std::vector<std::int64_t> line = block_table_line(row, max_pages);
    table.insert(table.end(), line.begin(), line.end());
  }
  return table;
}

std::vector<std::int64_t> prefix_sums(const std::vector<std::int64_t>& values) {
  std::vector<std::int64_t> sums{0};
  for (const std::int64_t value : values) {
    sums.push_back(sums.back() + value);
  }
  return sums;
}

BufferId RankBuilder::add(Buffer buffer) {
  rank_.buffers.push_back(std::move(buffer));
  return BufferId{static_cast<std::uint32_t>(rank_.buffers.size() - 1)};
}

BufferId RankBuilder::metadata(std::string name, DType dtype, std::vector<std::int64_t> shape,
                               std::vector<std::int64_t> values) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = BufferRole::metadata;
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  buffer.values = std::move(values);
  CPVERIFY_CHECK(static_cast<std::int64_t>(buffer.values.size()) == buffer.size_elems());
  CPVERIFY_CHECK(dtype == DType::i64 ||
                 std::all_of(buffer.values.begin(), buffer.values.end(), [](std::int64_t value) {
                   return std::in_range<std::int32_t>(value);
                 }));
  return add(std::move(buffer));
}

BufferId RankBuilder::metadata_i32(std::string name, std::vector<std::int64_t> values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return metadata(std::move(name), DType::i32, {size}, std::move(values));
}

BufferId RankBuilder::workspace(std::string name, std::vector<std::int64_t> shape) {
  return workspace(std::move(name), shape_.dtype, std::move(shape));
}

BufferId RankBuilder::workspace(std::string name, DType dtype, std::vector<std::int64_t> shape) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = BufferRole::workspace;
  buffer.dtype = dtype;
  buffer.shape = std::move(shape);
  return add(std::move(buffer));
}

BufferId RankBuilder::attention_output(std::string name, std::vector<std::int64_t> row_tokens) {
  return attention_output(std::move(name), std::move(row_tokens), rank_.heads_q);
}

BufferId RankBuilder::attention_output(std::string name, std::vector<std::int64_t> row_tokens,
                                       HeadRange heads) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = BufferRole::output;
  buffer.dtype = shape_.dtype;
  buffer.shape = {static_cast<std::int64_t>(row_tokens.size()), heads.count, shape_.head_dim};
  buffer.output = OutputClaim{OutputKind::attention, heads, std::move(row_tokens)};
  return add(std::move(buffer));
}

BufferId RankBuilder::lse_output(std::string name, std::vector<std::int64_t> row_tokens) {
  return lse_output(std::move(name), std::move(row_tokens), rank_.heads_q);
}

BufferId RankBuilder::lse_output(std::string name, std::vector<std::int64_t> row_tokens,
                                 HeadRange heads) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = BufferRole::output;
  buffer.dtype = DType::f32;
  buffer.shape = {static_cast<std::int64_t>(row_tokens.size()), heads.count};
  buffer.output = OutputClaim{OutputKind::lse, heads, std::move(row_tokens)};
  return add(std::move(buffer));
}

BufferId RankBuilder::input(std::string name, TensorKind tensor, HeadRange heads) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = BufferRole::input;
  buffer.dtype = shape_.dtype;
  buffer.shape = {shape_.padded_rows, heads.count, shape_.head_dim};
  buffer.input = InputSlice{tensor, heads};
  return add(std::move(buffer));
}

std::optional<BufferRef> RankBuilder::sinks(HeadRange heads) {
  if (!shape_.has_sinks) return std::nullopt;
  Buffer buffer;
  buffer.name = "sinks";
  buffer.role = BufferRole::input;
  buffer.dtype = DType::f32;
  buffer.shape = {heads.count};
  buffer.input = InputSlice{TensorKind::sinks, heads};
  return BufferRef{add(std::move(buffer)), 0};
}

BufferId RankBuilder::pool(std::string name) {
  Buffer buffer;
  buffer.name = std::move(name);
  buffer.role = BufferRole::kv_pool;
  buffer.dtype = shape_.dtype;
  const std::int64_t heads = rank_.pool_heads.value_or(rank_.heads_kv).count;
  buffer.shape = {shape_.num_blocks, shape_.block_size, heads, shape_.head_dim};
  return add(std::move(buffer));
}

CommonBuffers RankBuilder::common(const Step& step) {
  const std::int64_t block_tokens = shape_.block_size * rank_.kv_shard.count;
  return common(step, shard_slots(step, rank_.kv_shard, block_tokens));
}

CommonBuffers RankBuilder::common(const Step& step, std::vector<std::int64_t> slots) {
  const std::int64_t rows = shape_.padded_rows;
  CommonBuffers buffers;
  buffers.q = input("q", TensorKind::q, rank_.heads_q);
  buffers.k = input("k", TensorKind::k, rank_.heads_kv);
  buffers.v = input("v", TensorKind::v, rank_.heads_kv);
  buffers.slot_mapping =
      metadata("slot_mapping", DType::i64, {rows}, padded(std::move(slots), rows, kPadRow));
  buffers.block_table = metadata("block_table", DType::i32, {shape_.num_seqs, shape_.max_pages},
                                 block_table_lines(step, shape_.max_pages));
  buffers.k_pool = pool("k_pool");
  buffers.v_pool = pool("v_pool");
  buffers.out = attention_output("out", identity_rows(shape_.num_tokens, rows));
  return buffers;
}

void RankBuilder::launch(std::string label, Launch launch) {
  const bool is_empty = std::any_of(launch.grid.begin(), launch.grid.end(),
                                    [](std::uint32_t extent) { return extent == 0; });
  if (!is_empty) {
    rank_.operations.push_back({std::move(label), std::move(launch)});
  }
}

void RankBuilder::collective(std::string label, Collective collective) {
  rank_.operations.push_back({std::move(label), std::move(collective)});
}

void RankBuilder::copy(std::string label, Copy copy) {
  if (copy.bytes > 0) rank_.operations.push_back({std::move(label), copy});
}

void RankBuilder::fill(std::string label, BufferId target, std::uint32_t pattern) {
  const Buffer& buffer = rank_.buffers.at(target.value());
  const std::int64_t bytes =
      buffer.size_elems() * static_cast<std::int64_t>(size_bytes(buffer.dtype));
  CPVERIFY_CHECK(bytes % 4 == 0);
  if (bytes > 0) {
    rank_.operations.push_back({std::move(label), Fill{{target, 0}, bytes / 4, pattern}});
  }
}

}  // namespace cpverify::plan
