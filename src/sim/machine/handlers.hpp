#pragma once

#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"

namespace cpverify::sim {

/// The handler of a form; null when its row exists but not this combination of suffixes.
[[nodiscard]] Handler find_handler(const Form& form);

}  // namespace cpverify::sim
