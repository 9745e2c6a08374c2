#pragma once

#include <cstdint>

#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// An entry, ready to run on one device.
struct Kernel {
  Code code;
  std::uint32_t device = 0;
};

}  // namespace cpverify::sim
