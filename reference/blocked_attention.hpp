#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/step.hpp"
#include "reference/attention.hpp"

namespace cpverify::reference {

struct BlockedOptions {
  unsigned threads = 0;  ///< 0: all cores.
  /// Without: out and lse only. abs_mass, max_abs_score and max_abs_value stay empty, and the
  /// products take half the work.
  bool with_bounds = true;
  std::vector<float> sinks = {};  ///< [Hq], or empty.
};

/// step_reference with a choice; the benchmark's door.
[[nodiscard]] StepReference blocked_attention(const Problem& problem, const Step& step,
                                              const std::vector<RequestData>& data,
                                              const BlockedOptions& options);

}  // namespace cpverify::reference
