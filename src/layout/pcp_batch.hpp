#pragma once

#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

/// What both splits of a batch over the P ranks of a prefill context-parallel group share, as vLLM
/// and vllm-ascend define it: rows in decode state are computed by every rank, the new tokens of
/// each prefill row are cut into 2P chunks, of which rank p owns chunks p and 2P-1-p.
namespace cpverify::layout {

/// What the splits need to know of one row of a step.
struct PcpRequest {
  std::int64_t first_token = 0;  ///< Flattened step token of its first new token.
  std::int64_t computed = 0;     ///< Tokens already in the pool.
  std::int64_t scheduled = 0;    ///< New tokens.
  bool is_decode = false;        ///< By state, never by length.
};

/// The rows of a step in its order.
[[nodiscard]] std::vector<PcpRequest> pcp_requests(const Step& step);

/// True when there is something to split: more than one rank and a row in prefill state. Every rank
/// computes a step of decodes as a single device does.
[[nodiscard]] bool is_pcp_applicable(const Step& step, std::uint32_t pcp_size) noexcept;

/// c = ceil(scheduled / 2P): tokens of a chunk.
[[nodiscard]] std::int64_t pcp_chunk(std::int64_t scheduled, std::uint32_t pcp_size) noexcept;

}  // namespace cpverify::layout
