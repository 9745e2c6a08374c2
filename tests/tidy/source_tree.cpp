#include "tidy/source_tree.hpp"

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify::tidy {
namespace {

bool is_skipped_folder(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  // .ci is the one hidden folder with something of ours in it.
  return name.starts_with("build") || (name.starts_with(".") && name != ".ci");
}

bool is_text(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return has_extension(name, {".hpp", ".cpp", ".cu", ".cuh", ".inc", ".cmake", ".txt", ".md", ".sh",
                              ".yaml", ".json", ".jsonl", ".py"}) ||
         name == "cpverify" || name == "run-tests" || name == "run";
}

std::string read(const std::filesystem::path& file) {
  std::ifstream in{file, std::ios::binary};
  return {std::istreambuf_iterator<char>{in}, std::istreambuf_iterator<char>{}};
}

}  // namespace

std::vector<SourceFile> load_tree(const std::filesystem::path& root) {
  std::vector<SourceFile> files;
  std::filesystem::recursive_directory_iterator entry{root};
  for (; entry != std::filesystem::recursive_directory_iterator{}; ++entry) {
    if (entry->is_directory()) {
      if (is_skipped_folder(entry->path())) entry.disable_recursion_pending();
    } else if (entry->is_regular_file() && is_text(entry->path())) {
      files.push_back(
          {std::filesystem::relative(entry->path(), root).generic_string(), read(entry->path())});
    }
  }
  std::sort(files.begin(), files.end(),
            [](const SourceFile& a, const SourceFile& b) { return a.path < b.path; });
  return files;
}

bool has_extension(std::string_view path, std::initializer_list<std::string_view> of) {
  return std::any_of(of.begin(), of.end(),
                     [&](std::string_view extension) { return path.ends_with(extension); });
}

bool is_code(std::string_view path) {
  return has_extension(path, {".hpp", ".cpp", ".cu", ".cuh", ".inc"});
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace cpverify::tidy
