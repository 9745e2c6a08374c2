#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify::tests {

/// The text of a PTX file without comments. Throws std::runtime_error when it cannot be read.
[[nodiscard]] std::string read_ptx(const std::filesystem::path& path);

/// Entry name -> parameter types in order, e.g. {".u64", ".u32"}.
[[nodiscard]] std::map<std::string, std::vector<std::string>> entries_of(std::string_view ptx);

/// The opcodes of all instructions, sorted, each once, e.g. "ld.global.u32".
[[nodiscard]] std::vector<std::string> opcodes_of(std::string_view ptx);

/// The file names of all .file directives, in order.
[[nodiscard]] std::vector<std::string> source_files_of(std::string_view ptx);

/// The text without .file and .loc, which differ for any two sources.
[[nodiscard]] std::string without_line_table(std::string_view ptx);

}  // namespace cpverify::tests
