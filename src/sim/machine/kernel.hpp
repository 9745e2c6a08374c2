#pragma once

#include <cstdint>

#include "sim/isa/code.hpp"
#include "sim/machine/dataflow.hpp"

namespace cpverify::sim {

/// An entry, ready to run on one device.
struct Kernel {
  Code code;
  KernelFlow flow;
  std::uint32_t device = 0;
};

}  // namespace cpverify::sim
