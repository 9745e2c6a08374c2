#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

namespace cpverify::reference {

/// One new token of a step.
struct NewToken {
  std::int64_t flat = 0;      ///< Number in the flattened step.
  std::int64_t index = 0;     ///< Number among the new tokens of its request.
  std::int64_t position = 0;  ///< Position in its request, computed tokens included.
};

/// The new tokens of each row of a step, in position order.
[[nodiscard]] std::vector<std::vector<NewToken>> new_tokens(const Step& step);

/// One block of one row: consecutive tokens that stay together.
struct Piece {
  std::size_t row = 0;
  std::size_t block = 0;
  std::vector<NewToken> tokens;
};

/// Zigzag by its definition: every row is cut into 2C consecutive blocks whose lengths differ by
/// one at most, longer ones first; rank r owns blocks r and 2C-1-r. Returns the pieces of each CP
/// rank in local row order: the early block of every row, then the late block of every row.
[[nodiscard]] std::vector<std::vector<Piece>> deal_zigzag(const Step& step, std::size_t cp);

}  // namespace cpverify::reference
