#include "layout/pcp_batch.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

namespace cpverify::layout {

std::vector<PcpRequest> pcp_requests(const Step& step) {
  std::vector<PcpRequest> requests;
  requests.reserve(step.rows.size());
  std::int64_t first_token = 0;
  for (const StepRow& row : step.rows) {
    requests.push_back({first_token, row.computed, row.scheduled, row.state == RowState::decode});
    first_token += row.scheduled;
  }
  return requests;
}

bool is_pcp_applicable(const Step& step, std::uint32_t pcp_size) noexcept {
  return pcp_size > 1 && std::any_of(step.rows.begin(), step.rows.end(), [](const StepRow& row) {
           return row.state == RowState::prefill;
         });
}

std::int64_t pcp_chunk(std::int64_t scheduled, std::uint32_t pcp_size) noexcept {
  const std::int64_t num_chunks = 2 * static_cast<std::int64_t>(pcp_size);
  return (scheduled + num_chunks - 1) / num_chunks;
}

}  // namespace cpverify::layout
