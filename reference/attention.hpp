#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/step.hpp"

namespace cpverify::reference {

/// fp64 attention of every new token of one step, all heads, and the magnitudes that error bounds
/// need. Rows are flattened step tokens; row-major, fastest dimension last.
struct StepReference {
  std::int64_t num_tokens = 0;
  std::uint32_t num_heads_q = 0;
  std::uint32_t head_dim = 0;
  std::vector<double> out;             ///< [T, Hq, D]
  std::vector<double> lse;             ///< [T, Hq], natural log; -inf for a row without keys.
                                       ///< With sinks, the sink is one of the terms.
  std::vector<double> abs_mass;        ///< A_d = sum_j p_j |v_jd|. [T, Hq, D]
  std::vector<double> max_abs_score;   ///< G = max_j scale * sum_k |q_k||k_jk|, before the cap; or
                                       ///< |sink|, if larger. [T, Hq]
  std::vector<double> max_abs_value;   ///< max_j,d |v_jd| over visible keys. [T, Hq]
  std::vector<std::int64_t> num_keys;  ///< Visible keys, sinks not counted. [T]
  bool has_sinks = false;
};

/// Blocked, skips masked tiles, uses `threads` threads (0: all cores). The result does not depend
/// on the number of threads. Inputs are exact: the dtype's values as doubles. `sinks`: the logit of
/// each query head, or empty.
[[nodiscard]] StepReference step_reference(const Problem& problem, std::uint32_t step,
                                           const std::vector<RequestData>& data,
                                           unsigned threads = 0,
                                           const std::vector<float>& sinks = {});

}  // namespace cpverify::reference
