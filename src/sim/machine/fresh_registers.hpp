#pragma once

#include <cstdint>
#include <vector>

#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// Bytes of a warp's register file.
struct RegisterRange {
  std::uint32_t offset = 0;
  std::uint32_t size_bytes = 0;
};

/// What has to be made fresh before a warp of another CTA may use the registers that one has left:
/// rows that an instruction writes, but for those that every thread writes before it reads them.
/// Ascending, without overlap. Special registers are not among them.
[[nodiscard]] std::vector<RegisterRange> registers_to_refresh(const Code& code);

}  // namespace cpverify::sim
