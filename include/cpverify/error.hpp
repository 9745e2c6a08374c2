#pragma once

#include <stdexcept>
#include <string>

namespace cpverify {

/// Where in a user's file something is wrong. Lines and columns count from 1; 0 means unknown.
struct SourceLocation {
  std::string file;
  int line = 0;
  int column = 0;
};

/// The user's file or flag is wrong: exit code 2. what() starts with `file:line:column: ` when the
/// location is known; lower case, no full stop, says what was found and what was expected.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& message) : std::runtime_error{message} {}
  InputError(const SourceLocation& where, const std::string& message);
};

/// The world lacks something (GPU, library, file system): exit code 3. Says what to install.
class EnvironmentError : public std::runtime_error {
 public:
  explicit EnvironmentError(const std::string& message) : std::runtime_error{message} {}
};

}  // namespace cpverify
