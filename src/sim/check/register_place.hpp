#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/machine/flow.hpp"

namespace cpverify::sim {

/// Which byte of which register of a load or store is a byte of a lane's memory.
struct RegisterPlace {
  std::size_t operand = 0;  ///< Among the registers that are loaded or stored.
  std::uint32_t part = 0;
  std::size_t lane = 0;
};

/// `width` is that of the registers.
[[nodiscard]] RegisterPlace register_place(const FlowStep& step, std::size_t lane,
                                           std::uint32_t byte, std::uint32_t width);

/// The lane whose value a lane receives from shfl.sync, before it executes.
[[nodiscard]] std::size_t shuffle_source(const FlowStep& step, std::size_t lane);

}  // namespace cpverify::sim
