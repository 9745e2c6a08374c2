#include "plan/shard_reads.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/virtual_slots.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::plan {
namespace {

using Lines = std::vector<std::vector<std::int64_t>>;

/// A table of pages, or of slots as pages of one token; its lines are padded with 0.
void set_table(RankBuilder& builder, std::string name, const Lines& lines, AttentionCall& call) {
  // A call reads no table without columns.
  std::size_t width = 1;
  for (const std::vector<std::int64_t>& line : lines) width = std::max(width, line.size());
  const auto columns = static_cast<std::int64_t>(width);
  std::vector<std::int64_t> table;
  for (const std::vector<std::int64_t>& line : lines) {
    const std::vector<std::int64_t> whole = padded(line, columns, 0);
    table.insert(table.end(), whole.begin(), whole.end());
  }
  const auto rows = static_cast<std::int64_t>(lines.size());
  call.block_table = BufferRef{
      builder.metadata(std::move(name), DType::i32, {rows, columns}, std::move(table)), 0};
  call.max_pages = columns;
}

std::vector<std::int64_t> lengths_by_position(const ShardScheme& scheme, const ShardReads& reads) {
  std::vector<std::int64_t> lengths;
  lengths.reserve(reads.sequences.size());
  for (const ShardSequence& sequence : reads.sequences) {
    lengths.push_back(layout::local_length(scheme.shard, sequence.length));
  }
  return lengths;
}

void set_pages(RankBuilder& builder, const ShardScheme& scheme, const ShardReads& reads,
               AttentionCall& call) {
  Lines lines;
  for (const ShardSequence& sequence : reads.sequences) {
    lines.push_back(layout::local_pages({sequence.row, scheme.block_tokens}, scheme.shard,
                                        builder.shape().block_size, sequence.length));
  }
  call.kv_lens = {
      builder.metadata_i32(std::string{reads.lengths_name}, lengths_by_position(scheme, reads)), 0};
  set_table(builder, "local_pages", lines, call);
}

void set_slots(RankBuilder& builder, const ShardScheme& scheme, const ShardReads& reads,
               AttentionCall& call) {
  Lines lines;
  std::vector<std::int64_t> lengths;
  for (const ShardSequence& sequence : reads.sequences) {
    lines.push_back(
        layout::local_slots({sequence.row, scheme.block_tokens}, scheme.shard, sequence.length));
    lengths.push_back(static_cast<std::int64_t>(lines.back().size()));
  }
  call.kv_lens = {builder.metadata_i32(std::string{reads.lengths_name}, std::move(lengths)), 0};
  set_table(builder, "local_slots", lines, call);
  call.block_size = 1;
}

/// The blocks of the tables have the same numbers on every rank.
void set_blocks(RankBuilder& builder, const ShardScheme& scheme, const ShardReads& reads,
                AttentionCall& call) {
  call.kv_lens = {
      builder.metadata_i32(std::string{reads.lengths_name}, lengths_by_position(scheme, reads)), 0};
  if (!reads.is_per_query) return;
  const std::int64_t columns = builder.shape().max_pages;
  std::vector<std::int64_t> table;
  for (const ShardSequence& sequence : reads.sequences) {
    const std::vector<std::int64_t> line = block_table_line(*sequence.row, columns);
    table.insert(table.end(), line.begin(), line.end());
  }
  const auto rows = static_cast<std::int64_t>(reads.sequences.size());
  call.block_table = BufferRef{
      builder.metadata("block_table_rows", DType::i32, {rows, columns}, std::move(table)), 0};
}

}  // namespace

std::vector<std::int64_t> stored_slots(const ShardScheme& scheme, const Step& step) {
  const std::vector<std::int64_t> slots = step_slots(step);
  const std::vector<std::int64_t> positions = step_positions(step);
  std::vector<std::int64_t> stored;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto slot = scheme.strategy == StrategyKind::dcp_virtual
                          ? layout::stored_slot(scheme.owner, scheme.shard, positions[i], slots[i])
                          : layout::local_slot(scheme.shard, scheme.block_tokens, slots[i]);
    stored.push_back(slot.value_or(kPadRow));
  }
  return stored;
}

void set_shard_reads(RankBuilder& builder, const ShardScheme& scheme, const ShardReads& reads,
                     AttentionCall& call) {
  if (scheme.strategy != StrategyKind::dcp_virtual) {
    set_blocks(builder, scheme, reads, call);
  } else if (scheme.owner == DcpOwner::position) {
    set_pages(builder, scheme, reads, call);
  } else {
    set_slots(builder, scheme, reads, call);
  }
}

}  // namespace cpverify::plan
