#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "layout/zigzag.hpp"

namespace cpverify::layout {
namespace {

/// 1 to 6 requests of 1 to 60 new tokens with 0 to 40 cached ones, on 1 to 5 ranks. Requests that
/// are too short for CP are in: the formulas hold for them, empty blocks included.
ZigzagBatch any_batch() {
  ZigzagBatch batch;
  batch.cp_size = *rc::gen::inRange<std::uint32_t>(1, 6).as("cp_size");
  const auto num_rows = *rc::gen::inRange<std::size_t>(1, 7).as("requests");
  for (std::size_t row = 0; row < num_rows; ++row) {
    const auto prefix = *rc::gen::inRange<std::int64_t>(0, 41).as("prefix");
    const auto extend = *rc::gen::inRange<std::int64_t>(1, 61).as("extend");
    batch.rows.push_back({prefix, extend});
  }
  return batch;
}

std::vector<std::int64_t> all_tokens(const ZigzagBatch& batch) {
  std::vector<std::int64_t> tokens(static_cast<std::size_t>(batch.num_tokens()));
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// Every (request, query position, key position) that the attention calls of all ranks compute.
std::vector<std::vector<std::int64_t>> attended_pairs(const ZigzagBatch& batch) {
  std::vector<std::vector<std::int64_t>> pairs;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    const std::vector<std::int64_t> positions = shard_positions(batch, CpRank{rank});
    std::size_t local_row = 0;
    for (const Half half : {Half::prev, Half::next}) {
      const HalfLengths lengths = half_lengths(batch, CpRank{rank}, half);
      for (std::size_t row = 0; row < batch.rows.size(); ++row) {
        const std::int64_t diagonal = lengths.seqlens_k[row] - lengths.seqlens_q[row];
        for (std::int64_t i = 0; i < lengths.seqlens_q[row]; ++i) {
          for (std::int64_t key = 0; key <= diagonal + i; ++key) {
            pairs.push_back({static_cast<std::int64_t>(row), positions.at(local_row), key});
          }
          ++local_row;
        }
      }
    }
  }
  return pairs;
}

RC_GTEST_PROP(ZigzagProperty, DealsEveryTokenToOneRank, ()) {
  const ZigzagBatch batch = any_batch();
  std::vector<std::int64_t> dealt;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    const std::vector<std::int64_t> tokens = shard_tokens(batch, CpRank{rank});
    RC_ASSERT(static_cast<std::int64_t>(tokens.size()) == logical_rows(batch, CpRank{rank}));
    dealt.insert(dealt.end(), tokens.begin(), tokens.end());
  }
  std::sort(dealt.begin(), dealt.end());
  RC_ASSERT(dealt == all_tokens(batch));
}

RC_GTEST_PROP(ZigzagProperty, GatherUndoesShard, ()) {
  const ZigzagBatch batch = any_batch();
  const std::int64_t rows = max_rows(batch);
  std::vector<std::int64_t> gathered(static_cast<std::size_t>(batch.cp_size * rows), -1);
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    const std::vector<std::int64_t> tokens = shard_tokens(batch, CpRank{rank});
    std::copy(tokens.begin(), tokens.end(), gathered.begin() + rank * rows);
  }
  std::vector<std::int64_t> restored;
  for (const std::int64_t row : reorder_index(batch)) {
    restored.push_back(gathered.at(static_cast<std::size_t>(row)));
  }
  RC_ASSERT(restored == all_tokens(batch));
}

// The same permutation as pieces: cut the gathered rows by piece_lens, drop pads, put in order.
RC_GTEST_PROP(ZigzagProperty, MovesPiecesAsItMovesRows, ()) {
  const ZigzagBatch batch = any_batch();
  const std::vector<std::int64_t> lens = piece_lens(batch);
  std::vector<std::vector<std::int64_t>> pieces;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    const std::vector<std::int64_t> tokens = shard_tokens(batch, CpRank{rank});
    auto next = tokens.begin();
    for (std::size_t i = 0; i < 2 * batch.rows.size(); ++i) {
      const std::int64_t size = lens.at(pieces.size());
      pieces.emplace_back(next, next + size);
      next += size;
    }
    RC_ASSERT(next == tokens.end());
  }
  std::vector<std::int64_t> restored;
  for (const std::int64_t piece : piece_order(batch)) {
    const std::vector<std::int64_t>& tokens = pieces.at(static_cast<std::size_t>(piece));
    restored.insert(restored.end(), tokens.begin(), tokens.end());
  }
  RC_ASSERT(restored == all_tokens(batch));
}

RC_GTEST_PROP(ZigzagProperty, AttendsEveryVisiblePairOnce, ()) {
  const ZigzagBatch batch = any_batch();
  std::vector<std::vector<std::int64_t>> expected;
  for (std::size_t row = 0; row < batch.rows.size(); ++row) {
    const RowExtent& extent = batch.rows[row];
    for (std::int64_t query = extent.prefix; query < extent.prefix + extent.extend; ++query) {
      for (std::int64_t key = 0; key <= query; ++key) {
        expected.push_back({static_cast<std::int64_t>(row), query, key});
      }
    }
  }
  std::vector<std::vector<std::int64_t>> attended = attended_pairs(batch);
  std::sort(attended.begin(), attended.end());
  RC_ASSERT(attended == expected);
}

RC_GTEST_PROP(ZigzagProperty, CountsRowsConsistently, ()) {
  const ZigzagBatch batch = any_batch();
  std::int64_t total = 0;
  std::int64_t largest = 0;
  for (std::uint32_t rank = 0; rank < batch.cp_size; ++rank) {
    const std::int64_t rows = logical_rows(batch, CpRank{rank});
    RC_ASSERT(prev_rows(batch, CpRank{rank}) <= rows);
    total += rows;
    largest = std::max(largest, rows);
  }
  RC_ASSERT(total == batch.num_tokens());
  RC_ASSERT(max_rows(batch) == largest);
  const std::int64_t physical = physical_rows(batch);
  RC_ASSERT(physical >= largest);
  RC_ASSERT(physical < largest + 2 * static_cast<std::int64_t>(batch.cp_size));
  RC_ASSERT(physical % (2 * static_cast<std::int64_t>(batch.cp_size)) == 0);
}

// Blocks of one request differ by at most one token and never grow; they tile the request.
RC_GTEST_PROP(ZigzagProperty, TilesARequestWithShrinkingBlocks, ()) {
  const auto cp_size = *rc::gen::inRange<std::uint32_t>(1, 17);
  const auto extend = *rc::gen::inRange<std::int64_t>(0, 1000);
  std::int64_t start = 0;
  std::int64_t last = block_size(extend, cp_size, BlockIndex{0});
  const std::int64_t first = last;
  for (std::uint32_t j = 0; j < 2 * cp_size; ++j) {
    const std::int64_t size = block_size(extend, cp_size, BlockIndex{j});
    RC_ASSERT(block_start(extend, cp_size, BlockIndex{j}) == start);
    RC_ASSERT(size <= last);
    RC_ASSERT(first - size <= 1);
    start += size;
    last = size;
  }
  RC_ASSERT(start == extend);
}

}  // namespace
}  // namespace cpverify::layout
