#pragma once

#include <cstddef>
#include <string_view>

#include "mutants/injection.hpp"

namespace cpverify::mutants {

/// Makes the selected launches of a module load its defective twin; the number of ranks and steps
/// that have one.
[[nodiscard]] std::size_t replace_modules(const Injection& injection, std::string_view module,
                                          std::string_view mutant);

}  // namespace cpverify::mutants
