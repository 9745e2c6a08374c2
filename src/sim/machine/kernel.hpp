#pragma once

#include <cstdint>
#include <vector>

#include "sim/isa/code.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/fresh_registers.hpp"
#include "sim/machine/machine_code.hpp"

namespace cpverify::sim {

/// An entry, ready to run on one device.
struct Kernel {
  Code code;
  KernelFlow flow;
  std::vector<std::uint32_t> straight;   ///< straight_runs(code).
  std::vector<RegisterRange> refreshed;  ///< registers_to_refresh(code).
  const MachineCode* machine = nullptr;  ///< What the handlers of `code` belong to.
  std::uint32_t device = 0;
};

}  // namespace cpverify::sim
