#pragma once

#include <string_view>
#include <vector>

#include "tidy/source_tree.hpp"

namespace cpverify::tidy {

/// A rule over the whole repository: what breaks it, sorted as the files are.
struct Rule {
  std::string_view name;
  std::vector<Violation> (*check)(const std::vector<SourceFile>& tree);
};

/// Includes point down the layers, public headers include std and each other only, and reference/
/// includes nothing of src/.
[[nodiscard]] std::vector<Violation> check_includes(const std::vector<SourceFile>& tree);
/// No call whose result depends on the machine, and none that prints or swallows an error.
[[nodiscard]] std::vector<Violation> check_banned_calls(const std::vector<SourceFile>& tree);
/// Files of at most 500 lines (tables in .inc files apart).
[[nodiscard]] std::vector<Violation> check_file_length(const std::vector<SourceFile>& tree);
/// Functions of at most 70 lines.
[[nodiscard]] std::vector<Violation> check_function_length(const std::vector<SourceFile>& tree);
/// No reminders that nobody will read.
[[nodiscard]] std::vector<Violation> check_leftovers(const std::vector<SourceFile>& tree);
/// No path that exists on one machine only.
[[nodiscard]] std::vector<Violation> check_absolute_paths(const std::vector<SourceFile>& tree);
/// Every source file is named in the nearest CMakeLists.txt above it.
[[nodiscard]] std::vector<Violation> check_listed_sources(const std::vector<SourceFile>& tree);
/// Every public header is installed.
[[nodiscard]] std::vector<Violation> check_installed_headers(const std::vector<SourceFile>& tree);
/// Every folder of src/ is a layer that the table of layers knows.
[[nodiscard]] std::vector<Violation> check_layer_folders(const std::vector<SourceFile>& tree);
/// Headers begin with #pragma once.
[[nodiscard]] std::vector<Violation> check_pragma_once(const std::vector<SourceFile>& tree);
/// No macro is defined apart from INSN and CPVERIFY_CHECK.
[[nodiscard]] std::vector<Violation> check_macros(const std::vector<SourceFile>& tree);

/// Every header is included by some file.
[[nodiscard]] std::vector<Violation> check_unused_headers(const std::vector<SourceFile>& tree);
/// A path in backticks in a page is there.
[[nodiscard]] std::vector<Violation> check_documented_paths(const std::vector<SourceFile>& tree);

/// All of the above.
[[nodiscard]] const std::vector<Rule>& all_rules();

}  // namespace cpverify::tidy
