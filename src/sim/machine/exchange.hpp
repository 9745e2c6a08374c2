#pragma once

#include <cstddef>
#include <vector>

#include "sim/isa/opcode.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

inline constexpr std::size_t kNoOperand = ~std::size_t{0};

/// Which register of a `.sync` instruction holds its membermask.
[[nodiscard]] constexpr std::size_t membermask_operand(Op op) noexcept {
  switch (op) {
    case Op::bar_warp:
      return 0;
    case Op::vote_pred:
    case Op::vote_ballot:
    case Op::match_any:
    case Op::redux:
    case Op::elect:
      return 2;
    case Op::match_all:
      return 3;
    case Op::shfl:
      return 5;
    default:
      return kNoOperand;
  }
}

/// Executes a `.sync` instruction that lanes have met at in several places of the code: each
/// fragment's own, with the operands that the others give to theirs.
void exchange(Warp& warp, const std::vector<Fragment>& meeting);

}  // namespace cpverify::sim
