#pragma once

#include <vector>

#include "sim/isa/insn.hpp"
#include "sim/machine/async_copy.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// Tells the observers that asynchronous copies of `warp` have ended: what is in `copies`.
void notify_completed(const Warp& warp, const Insn* insn,
                      const std::vector<AsyncCopies::Copy>& copies);

}  // namespace cpverify::sim
