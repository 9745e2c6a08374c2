#pragma once

#include <string>

namespace cpverify::tool {

/// Writes a file whole or not at all: to a neighbour first, then renamed over `path`. "-" is
/// stdout. Throws EnvironmentError when the path cannot be written or the disk is full.
void write_output(const std::string& path, const std::string& text);

/// The same check without the text, so that a run of minutes does not end in "cannot write".
void check_writable(const std::string& path);

/// Text to stdout; throws EnvironmentError when it cannot be written (closed pipe excepted, full
/// disk).
void write_stdout(const std::string& text);

}  // namespace cpverify::tool
