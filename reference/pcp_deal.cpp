#include "reference/pcp_deal.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

namespace cpverify::reference {

bool is_pcp_on(const Problem& problem, const Step& step) {
  return problem.scenario.topology.cp > 1 && !rows_in(step, RowState::prefill).empty();
}

std::int64_t chunk_length(std::size_t tokens, std::size_t chunks) {
  std::size_t length = 0;
  while (length * chunks < tokens) ++length;
  return static_cast<std::int64_t>(length);
}

std::vector<std::int64_t> new_slots(const Step& step) {
  std::vector<std::int64_t> slots;
  for (const StepRow& row : step.rows) {
    for (const std::int64_t slot : row.slots) slots.push_back(slot);
  }
  return slots;
}

std::vector<std::size_t> rows_in(const Step& step, RowState state) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    if (step.rows[row].state == state) rows.push_back(row);
  }
  return rows;
}

}  // namespace cpverify::reference
