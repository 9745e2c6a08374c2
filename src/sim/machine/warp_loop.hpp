#pragma once

#include <cstdint>

#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// The two of MachineCode: to be called through LaunchState::machine.
void run_warp(Warp& warp, std::uint64_t slice);
void run_warp_to_point(Warp& warp, std::uint64_t slice, std::uint32_t points);

}  // namespace cpverify::sim
