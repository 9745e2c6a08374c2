#pragma once

#include <cstddef>
#include <vector>

#include "cpverify/step.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

/// A new token and the row of the step that it is of.
struct DealtToken {
  std::size_t row = 0;
  NewToken token;
};

/// Interleave by its definition: the tokens of the whole batch are dealt to the ranks like cards,
/// one to each in turn. [cp]
[[nodiscard]] std::vector<std::vector<DealtToken>> deal_interleaved(const Step& step,
                                                                    std::size_t cp);

/// Contiguous by its definition: every row is cut into `cp` consecutive pieces whose lengths differ
/// by one at most, longer ones first, one for each rank. [cp]
[[nodiscard]] std::vector<std::vector<DealtToken>> deal_contiguously(const Step& step,
                                                                     std::size_t cp);

}  // namespace cpverify::reference
