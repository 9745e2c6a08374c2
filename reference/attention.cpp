#include "reference/attention.hpp"

#include <cstdint>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/step.hpp"
#include "reference/blocked_attention.hpp"

namespace cpverify::reference {

StepReference step_reference(const Problem& problem, std::uint32_t step,
                             const std::vector<RequestData>& data, unsigned threads,
                             const std::vector<float>& sinks) {
  return blocked_attention(problem, problem.steps.at(step), data,
                           {.threads = threads, .with_bounds = true, .sinks = sinks});
}

}  // namespace cpverify::reference
