#pragma once

#include <string>

namespace cpverify::sim {

/// docs/ptx.md, from the table of instructions: what is supported, and what of the manual is not.
[[nodiscard]] std::string instruction_page();

}  // namespace cpverify::sim
