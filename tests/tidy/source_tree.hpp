#pragma once

#include <cstddef>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify::tidy {

/// A text file of the repository; `path` is relative to its root, with slashes.
struct SourceFile {
  std::string path;
  std::string text;
};

/// A broken rule. Lines count from 1.
struct Violation {
  std::string path;
  std::size_t line = 0;
  std::string message;
};

/// Every text file of the repository, sorted by path; build folders, hidden folders and PTX that a
/// build wrote are left out.
[[nodiscard]] std::vector<SourceFile> load_tree(const std::filesystem::path& root);

[[nodiscard]] bool has_extension(std::string_view path, std::initializer_list<std::string_view> of);

/// .hpp, .cpp, .cu, .cuh and .inc.
[[nodiscard]] bool is_code(std::string_view path);

[[nodiscard]] std::vector<std::string_view> split_lines(std::string_view text);

}  // namespace cpverify::tidy
