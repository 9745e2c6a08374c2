#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify {

/// A dense tensor on the host as raw bytes, rows of `row_bytes` each. Little endian.
struct HostRows {
  std::size_t row_bytes = 0;
  std::vector<std::byte> bytes;

  [[nodiscard]] const std::byte* row(std::size_t index) const noexcept {
    return bytes.data() + index * row_bytes;
  }
};

/// The values of one request, all tokens, all heads, already rounded to the model's dtype.
/// q [total_tokens, num_heads_q, head_dim]; k, v [total_tokens, num_heads_kv, head_dim].
struct RequestData {
  HostRows q;
  HostRows k;
  HostRows v;
};

/// The values of a problem in one data mode, one entry per request. K/V of a shared prefix are the
/// bytes of the request it is shared with. In mode count q is zero. Mode poison has random's
/// values: poison lives in what is not data. Same (scenario, seed, mode): same bytes.
[[nodiscard]] std::vector<RequestData> make_data(const Problem& problem, DataMode mode);

/// The sink of every query head, a natural logit; empty for a model without sinks. In mode count
/// all are 0, so that each counts as one key.
[[nodiscard]] std::vector<float> sink_logits(const Scenario& scenario, DataMode mode);

}  // namespace cpverify
