#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/plan.hpp"
#include "plan/launches.hpp"
#include "plan/rank_builder.hpp"

/// What the strategies have in common that give every rank of a CP group some rows of the step and
/// a full replica of the KV pools: K and V rows are gathered, put into the step's order and
/// written, results are gathered for the layers behind.
namespace cpverify::plan {

/// The rows of one rank, and where those of all ranks lie once they are gathered.
struct SplitRows {
  std::vector<std::int64_t> tokens;         ///< Flattened token of each local row.
  std::vector<std::int64_t> positions;      ///< Of each local row in its request.
  std::vector<std::int64_t> reorder_index;  ///< Gathered row of each flattened token. [T]
  std::int64_t cp_size = 1;
  std::int64_t gather_rows = 0;    ///< That every rank gives, pads included.
  std::int64_t physical_rows = 0;  ///< That every rank computes, at least gather_rows.
  std::uint32_t group = 0;         ///< Index into Plan::groups.
  std::uint32_t step = 0;
};

struct SplitBuffers {
  CommonBuffers common;
  BufferId shard_index;
  BufferId reorder_index;
  BufferId q_local;
  BufferId kv_send;
  BufferId kv_gathered;
  BufferId kv_full;
  BufferId out_local;
  BufferId lse_local;
  BufferId out_gathered;
};

/// Adds shard_index, positions and reorder_index.
void add_split_metadata(RankBuilder& builder, const SplitRows& rows, SplitBuffers& buffers);
/// Adds the workspaces, out_local and lse_local.
void add_split_workspaces(RankBuilder& builder, const SplitRows& rows, SplitBuffers& buffers);

/// Takes the rank's rows, gathers K and V of all ranks, writes them to the pools, and makes the
/// outputs ready for attention calls.
void prepare_split(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers);
/// Gathers the rows of out_local into `out`.
void finish_split(RankBuilder& builder, const SplitRows& rows, const SplitBuffers& buffers);

}  // namespace cpverify::plan
