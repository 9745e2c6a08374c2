#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/isa/insn.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// "kernels/a.cu:12", or "PTX line 12" without a line table.
[[nodiscard]] std::string place(const Warp& warp, const Insn* insn);

/// "warp 3", "lanes 0-2, 5": `noun` and the numbers, which ascend; at least one.
[[nodiscard]] std::string numbered(const std::string& noun,
                                   const std::vector<std::uint32_t>& numbers);

/// "lane 3", "lanes 0-2, 5", or as a mask when that is shorter: "lanes 0x55555555".
[[nodiscard]] std::string lane_names(std::uint32_t lanes);

/// Where lanes of a warp are that have not exited and do not run: "lanes 0-2 are at a.cu:12, lane 5
/// is done and waiting at a.cu:20".
[[nodiscard]] std::string whereabouts(const Warp& warp, std::uint32_t lanes);

}  // namespace cpverify::sim
