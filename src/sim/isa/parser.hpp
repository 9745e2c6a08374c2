#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sim/isa/ast.hpp"

namespace cpverify::sim {

/// Parses PTX text; `file` is what errors call it. Throws InputError `file:line:column`.
[[nodiscard]] std::unique_ptr<const ModuleAst> parse_ptx(std::string_view text,
                                                         const std::string& file);

}  // namespace cpverify::sim
