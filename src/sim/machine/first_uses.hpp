#pragma once

#include <vector>

#include "sim/isa/code.hpp"
#include "sim/machine/dataflow.hpp"

namespace cpverify::sim {

/// Registers that are live where the kernel starts: some path reads them before it writes them.
/// What is written under a guard counts as written for uses under the same guard that follow in
/// the same basic block. Rows that the machine fills (constants and so on) are not among them.
[[nodiscard]] std::vector<FlowOperand> find_first_uses(const Code& code,
                                                       const std::vector<Dataflow>& insns);

}  // namespace cpverify::sim
