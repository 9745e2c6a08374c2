#pragma once

#include <cstdint>

#include "sim/isa/insn.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// Matrix instructions need all 32 lanes. False when `mask` lacks some, after reporting it.
[[nodiscard]] bool is_whole_warp(Warp& warp, const Insn* insn, std::uint32_t mask);

}  // namespace cpverify::sim
