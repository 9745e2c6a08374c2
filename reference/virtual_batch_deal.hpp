#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "reference/zigzag_deal.hpp"

/// Who computes which new tokens when prefills are cut into chunks that are rows of their own.
namespace cpverify::reference {

/// Tokens of one request that a rank computes as one row.
using Segment = Piece;

/// Every rank's segments in local order.
struct Deal {
  std::vector<std::vector<Segment>> ranks;
  std::int64_t decode_tokens = 0;
  std::int64_t max_tokens = 0;  ///< Of any rank.
};

/// Decodes go to every rank; a prefill's chunks to the ranks counted up and then down again.
[[nodiscard]] Deal deal_virtual(const Step& step, std::size_t pcp);

}  // namespace cpverify::reference
