#include "sim/check/source_text.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "sim/isa/code.hpp"

namespace cpverify::sim {

std::string source_text(const Code& code, std::uint32_t instruction) {
  if (instruction >= code.lines.size()) return {};
  const SourceLine& line = code.lines[instruction];
  const std::string& file = code.files[line.file];
  return file.empty() ? fmt::format(", PTX line {}", line.ptx_line)
                      : fmt::format(" at {}:{}, PTX line {}", file, line.line, line.ptx_line);
}

}  // namespace cpverify::sim
