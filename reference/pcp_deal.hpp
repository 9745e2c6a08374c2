#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

/// Whether prefill context parallelism has something to split: more ranks than one, and a prefill.
[[nodiscard]] bool is_pcp_on(const Problem& problem, const Step& step);

/// Tokens of each of the `chunks` equal chunks that hold `tokens`, the last ones perhaps in part.
[[nodiscard]] std::int64_t chunk_length(std::size_t tokens, std::size_t chunks);

/// Slot of every new token, in flattened order.
[[nodiscard]] std::vector<std::int64_t> new_slots(const Step& step);

/// The rows of a step that are decodes, or those that are not, in the step's order.
[[nodiscard]] std::vector<std::size_t> rows_in(const Step& step, RowState state);

}  // namespace cpverify::reference
