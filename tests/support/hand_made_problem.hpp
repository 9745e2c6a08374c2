#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::test {

struct HandMadeRow {
  std::int64_t computed = 0;
  std::int64_t scheduled = 1;
  RowState state = RowState::prefill;
};

using HandMadeStep = std::vector<HandMadeRow>;

/// A problem written down row by row, without the scheduler. Row i of every step is request i; its
/// block table is a run of ids of its own, so slots are easy to work out: requests own
/// `pages` blocks each, request i those from 1 + i*pages.
inline Problem hand_made_problem(Scenario scenario, const std::vector<HandMadeStep>& steps) {
  const std::int64_t block_size =
      std::int64_t{scenario.cache.block_size} * scenario.topology.kv_shards();
  std::int64_t pages = 1;
  std::size_t requests = 0;
  for (const HandMadeStep& rows : steps) {
    requests = std::max(requests, rows.size());
    for (const HandMadeRow& row : rows) {
      pages = std::max(pages, (row.computed + row.scheduled + block_size - 1) / block_size);
    }
  }
  Problem problem;
  scenario.requests.resize(requests);
  problem.num_blocks = static_cast<std::uint32_t>(1 + static_cast<std::int64_t>(requests) * pages);
  for (const HandMadeStep& rows : steps) {
    Step step;
    step.index = static_cast<std::uint32_t>(problem.steps.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      StepRow row;
      row.request = RequestId{static_cast<std::uint32_t>(i)};
      row.computed = rows[i].computed;
      row.scheduled = rows[i].scheduled;
      row.state = rows[i].state;
      const std::int64_t first_block = 1 + static_cast<std::int64_t>(i) * pages;
      const std::int64_t end = row.computed + row.scheduled;
      for (std::int64_t page = 0; page * block_size < end; ++page) {
        row.block_table.push_back(static_cast<std::int32_t>(first_block + page));
      }
      for (std::int64_t token = row.computed; token < end; ++token) {
        row.slots.push_back(first_block * block_size + token);
      }
      step.rows.push_back(std::move(row));
    }
    problem.steps.push_back(std::move(step));
  }
  problem.scenario = std::move(scenario);
  return problem;
}

}  // namespace cpverify::test
