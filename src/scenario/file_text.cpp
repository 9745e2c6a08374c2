#include "scenario/file_text.hpp"

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "support/nearest.hpp"

namespace cpverify::scenario {
namespace {

constexpr std::size_t kMaxListedFiles = 10'000;

/// "; did you mean 'x.yaml'?" from the names beside the missing file, or "".
std::string suggest_name(const std::filesystem::path& path) {
  const std::filesystem::path parent = path.parent_path();
  std::error_code error;
  std::filesystem::directory_iterator entry{parent.empty() ? "." : parent, error};
  std::vector<std::string> names;
  while (!error && entry != std::filesystem::directory_iterator{} &&
         names.size() < kMaxListedFiles) {
    names.push_back(entry->path().filename().string());
    entry.increment(error);
  }
  return did_you_mean(path.filename().string(), names);
}

/// Length of the UTF-8 sequence at the front of `text`, 0 when it is none.
/// Source: RFC 3629, section 4 (no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t sequence_bytes(std::string_view text) noexcept {
  const auto byte = [text](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const auto is_tail = [&byte](std::size_t i) { return (byte(i) & 0xc0U) == 0x80U; };
  const unsigned first = byte(0);
  const unsigned second = byte(1);
  if (first < 0x80) return 1;
  if (first < 0xc2 || first > 0xf4 || !is_tail(1)) return 0;
  if (first < 0xe0) return 2;
  if (!is_tail(2)) return 0;
  if (first < 0xf0) {
    const bool is_overlong = first == 0xe0 && second < 0xa0;
    const bool is_surrogate = first == 0xed && second >= 0xa0;
    return is_overlong || is_surrogate ? 0 : 3;
  }
  const bool is_overlong = first == 0xf0 && second < 0x90;
  const bool is_too_large = first == 0xf4 && second >= 0x90;
  return !is_tail(3) || is_overlong || is_too_large ? 0 : 4;
}

bool is_control(char c) noexcept {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

}  // namespace

std::string read_file(const std::filesystem::path& path, const SourceLocation& where,
                      std::size_t max_bytes) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw InputError{where, fmt::format("no such file: '{}'{}", path.string(), suggest_name(path))};
  }
  if (std::filesystem::is_directory(status)) {
    throw InputError{where, fmt::format("'{}' is a folder; expected a file", path.string())};
  }
  std::ifstream stream{path, std::ios::binary};
  if (!stream) throw InputError{where, fmt::format("cannot read '{}'", path.string())};
  // Piece by piece and not up to the size, which a device or a pipe does not have.
  std::string text;
  std::array<char, std::size_t{1} << 16> piece{};
  while (stream && text.size() <= max_bytes) {
    stream.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(stream.gcount()));
  }
  if (stream.bad()) throw InputError{where, fmt::format("cannot read '{}'", path.string())};
  if (text.size() > max_bytes) {
    throw InputError{where, fmt::format("'{}' is larger than {} bytes", path.string(), max_bytes)};
  }
  return text;
}

void check_is_text(const std::string& text, const std::string& file) {
  SourceLocation where{.file = file, .line = 1, .column = 1};
  const std::string_view rest{text};
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_bytes(rest.substr(i));
    if (length == 0 || is_control(text[i])) {
      throw InputError{where,
                       fmt::format("byte 0x{:02x} is not UTF-8 text; expected a YAML or JSON "
                                   "text file",
                                   static_cast<unsigned char>(text[i]))};
    }
    ++where.column;
    if (text[i] == '\n') where = {.file = file, .line = where.line + 1, .column = 1};
    i += length;
  }
}

}  // namespace cpverify::scenario
