// The laws of the padded split on random batches.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/pcp_head_tail.hpp"
#include "layout/splits.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

using Values = std::vector<std::int64_t>;

HeadTailBatch any_batch() {
  Step step;
  const auto requests = *rc::gen::inRange<std::size_t>(1, 6);
  for (std::size_t i = 0; i < requests; ++i) {
    StepRow row;
    row.computed = *rc::gen::inRange<std::int64_t>(0, 30);
    row.scheduled = *rc::gen::inRange<std::int64_t>(1, 50);
    if (*rc::gen::inRange(0, 3) == 0) {
      row.state = RowState::decode;
      row.scheduled = *rc::gen::inRange<std::int64_t>(1, 4);
    }
    step.rows.push_back(row);
  }
  return make_head_tail_batch(step, *rc::gen::inRange(1U, 9U));
}

/// The tokens of all ranks one after the other, as a gather leaves them.
Values gathered_tokens(const HeadTailBatch& batch) {
  Values tokens;
  for (std::uint32_t rank = 0; rank < batch.pcp_size; ++rank) {
    const Values own = padded_local_tokens(batch, CpRank{rank});
    RC_ASSERT(static_cast<std::int64_t>(own.size()) == batch.local_rows());
    tokens.insert(tokens.end(), own.begin(), own.end());
  }
  return tokens;
}

Values taken(const Values& from, const Values& index) {
  Values result;
  for (const std::int64_t place : index) result.push_back(from.at(static_cast<std::size_t>(place)));
  return result;
}

RC_GTEST_PROP(PcpHeadTail, ComputesPrefillTokensOnceAndDecodesEverywhere, ()) {
  const HeadTailBatch batch = any_batch();
  std::map<std::int64_t, std::uint32_t> times;
  for (const std::int64_t token : gathered_tokens(batch)) ++times[token];
  for (const PcpRequest& request : batch.requests) {
    for (std::int64_t i = 0; i < request.scheduled; ++i) {
      RC_ASSERT(times[request.first_token + i] == (request.is_decode ? batch.pcp_size : 1));
    }
  }
}

// Gathered, restored and unpadded, tokens are 0, 1, 2, ..; and so are they of prefills alone.
RC_GTEST_PROP(PcpHeadTail, RestoresTheOrderOfTheStep, ()) {
  const HeadTailBatch batch = any_batch();
  const Values gathered = gathered_tokens(batch);
  const Values index = restore_index(batch);
  Values sorted = index;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    RC_ASSERT(sorted[i] == static_cast<std::int64_t>(i));
  }
  RC_ASSERT(sorted.size() == gathered.size());
  const Values restored = taken(gathered, index);
  const Values tokens = taken(restored, unpad_index(batch));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    RC_ASSERT(tokens[i] == static_cast<std::int64_t>(i));
  }
  Values prefills;
  for (std::uint32_t rank = 0; rank < batch.pcp_size; ++rank) {
    const Values own = padded_local_tokens(batch, CpRank{rank});
    prefills.insert(prefills.end(), own.begin() + batch.decode_rows(), own.end());
  }
  const Values wanted(restored.begin() + batch.padded_decode_rows(), restored.end());
  RC_ASSERT(taken(prefills, prefill_restore_index(batch)) == wanted);
}

RC_GTEST_PROP(PcpHeadTail, OrdersHalvesAndBack, ()) {
  const HeadTailBatch batch = any_batch();
  const Values there = head_tail_index(batch);
  const Values back = taken(there, full_index(batch));
  for (std::size_t i = 0; i < back.size(); ++i) RC_ASSERT(back[i] == static_cast<std::int64_t>(i));
  RC_ASSERT(static_cast<std::int64_t>(back.size()) == batch.local_rows());
}

// The geometry that `cpverify plan` proves and costs is the one that is run.
RC_GTEST_PROP(PcpHeadTail, IsTheSplitThatIsProved, ()) {
  const HeadTailBatch batch = any_batch();
  SplitSpec spec;
  spec.kind = SplitKind::pcp_head_tail;
  spec.cp = batch.pcp_size;
  std::vector<SplitRow> rows;
  rows.reserve(batch.requests.size());
  for (const PcpRequest& request : batch.requests) {
    rows.push_back({request.computed, request.scheduled, request.is_decode});
  }
  const BatchSplit split{spec, rows};
  std::vector<std::int64_t> real(batch.pcp_size, 0);
  for (std::uint32_t rank = 0; rank < batch.pcp_size; ++rank) {
    for (const std::int64_t token : padded_local_tokens(batch, CpRank{rank})) {
      real[rank] += token >= 0 ? 1 : 0;
    }
  }
  RC_ASSERT(split.rows_per_rank() == real);
  RC_ASSERT(split.workspaces().front().capacity_rows == batch.local_rows());
}

}  // namespace
}  // namespace cpverify::layout
