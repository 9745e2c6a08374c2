#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify::tidy {

/// The text with comments, string and character literals blanked out; lines stay where they are.
/// Include lines keep their file names.
[[nodiscard]] std::string code_only(std::string_view text);

struct FunctionSpan {
  std::size_t first_line = 0;  ///< Of the opening brace, from 1.
  std::size_t lines = 0;       ///< Opening to closing brace, both included.
};

/// Function bodies at namespace or class scope, by matching braces: an approximation that knows
/// namespaces, classes, initialisers and constructors' member initialisers, and no more.
[[nodiscard]] std::vector<FunctionSpan> function_spans(std::string_view text);

}  // namespace cpverify::tidy
