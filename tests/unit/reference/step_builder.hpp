#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::reference {

/// One row of a step built by hand.
struct RowSpec {
  std::int64_t scheduled = 0;
  std::int64_t computed = 0;
  RowState state = RowState::prefill;
};

/// A problem of one step: a request per row, blocks handed out from 1 upwards in row order.
inline Problem problem_of(std::initializer_list<RowSpec> rows, std::uint32_t cp,
                          std::uint32_t tp = 1) {
  Problem problem;
  problem.scenario.topology = {.cp = cp, .tp = tp};
  const std::int64_t block_size = problem.scenario.cache.block_size;
  Step step;
  std::int32_t next_block = 1;
  for (const RowSpec& spec : rows) {
    StepRow row;
    row.request = RequestId{static_cast<std::uint32_t>(step.rows.size())};
    row.computed = spec.computed;
    row.scheduled = spec.scheduled;
    row.state = spec.state;
    const std::int64_t total = spec.computed + spec.scheduled;
    for (std::int64_t first = 0; first < total; first += block_size) {
      row.block_table.push_back(next_block++);
    }
    for (std::int64_t position = spec.computed; position < total; ++position) {
      const auto page = static_cast<std::size_t>(position / block_size);
      row.slots.push_back(row.block_table[page] * block_size + position % block_size);
    }
    RequestSpec request;
    request.id = "r" + std::to_string(step.rows.size());
    request.cached_prefix = spec.computed;
    request.prompt = spec.scheduled;
    problem.scenario.requests.push_back(request);
    step.rows.push_back(row);
  }
  problem.steps.push_back(step);
  problem.num_blocks = static_cast<std::uint32_t>(next_block);
  return problem;
}

}  // namespace cpverify::reference
