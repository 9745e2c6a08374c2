#include "tool/output_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

#include "cpverify/error.hpp"

namespace cpverify::tool {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

[[noreturn]] void refuse(const std::string& path, int error) {
  throw EnvironmentError{fmt::format("cannot write {}: {}", path, std::strerror(error))};
}

/// Two runs may write side by side, so the neighbour's name carries the process.
std::string neighbour(const std::string& path) {
  return fmt::format("{}.{}.part", path, static_cast<long>(::getpid()));
}

/// A device, a pipe or /dev/stdout is written in place: renaming over it would replace it.
bool is_written_in_place(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  return std::filesystem::exists(status) && !std::filesystem::is_regular_file(status);
}

/// False when a byte could not be written; errno says why.
bool write_all(std::FILE* file, const std::string& text) {
  return std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fflush(file) == 0;
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
}

}  // namespace

void check_writable(const std::string& path) {
  if (path == "-") return;
  if (std::filesystem::is_directory(path)) refuse(path, EISDIR);
  if (is_written_in_place(path)) return;
  const std::string probe = neighbour(path);
  const File file{std::fopen(probe.c_str(), "wb")};
  if (file == nullptr) refuse(path, errno);
  remove_quietly(probe);
}

void write_output(const std::string& path, const std::string& text) {
  if (path == "-") {
    write_stdout(text);
    return;
  }
  if (is_written_in_place(path)) {
    const File target{std::fopen(path.c_str(), "wb")};
    if (target == nullptr || !write_all(target.get(), text)) refuse(path, errno);
    return;
  }
  const std::string part = neighbour(path);
  File file{std::fopen(part.c_str(), "wb")};
  if (file == nullptr) refuse(path, errno);
  const bool is_written = write_all(file.get(), text) && ::fsync(::fileno(file.get())) == 0;
  const int error = errno;
  file.reset();
  if (!is_written) {
    remove_quietly(part);
    refuse(path, error);
  }
  std::error_code failed;
  std::filesystem::rename(part, path, failed);
  if (failed) {
    remove_quietly(part);
    refuse(path, failed.value());
  }
}

void write_stdout(const std::string& text) {
  if (!write_all(stdout, text)) refuse("standard output", errno);
}

}  // namespace cpverify::tool
