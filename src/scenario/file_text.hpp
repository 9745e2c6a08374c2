#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "cpverify/error.hpp"

namespace cpverify::scenario {

/// The bytes of a file. Throws InputError at `where` when it is missing (naming the file of the
/// folder that is spelled most like it), a folder, unreadable or larger than `max_bytes`.
[[nodiscard]] std::string read_file(const std::filesystem::path& path, const SourceLocation& where,
                                    std::size_t max_bytes);

/// Throws InputError at the first byte that is not UTF-8 text: a bad sequence, or a control
/// character other than tab and line end.
void check_is_text(const std::string& text, const std::string& file);

}  // namespace cpverify::scenario
