#pragma once

#include <cstdint>
#include <string>

#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// " at kernels/a.cu:12, PTX line 93", or ", PTX line 93" without a line table; nothing for an
/// instruction that does not exist.
[[nodiscard]] std::string source_text(const Code& code, std::uint32_t instruction);

}  // namespace cpverify::sim
