#include "cpverify/error.hpp"

#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace cpverify {
namespace {

std::string located(const SourceLocation& where, const std::string& message) {
  if (where.file.empty()) return message;
  if (where.line <= 0) return fmt::format("{}: {}", where.file, message);
  if (where.column <= 0) return fmt::format("{}:{}: {}", where.file, where.line, message);
  return fmt::format("{}:{}:{}: {}", where.file, where.line, where.column, message);
}

}  // namespace

InputError::InputError(const SourceLocation& where, const std::string& message)
    : std::runtime_error{located(where, message)} {}

}  // namespace cpverify
