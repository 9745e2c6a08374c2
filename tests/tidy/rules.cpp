#include "tidy/rules.hpp"

#include <algorithm>
#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "tidy/bans.hpp"
#include "tidy/cpp_text.hpp"
#include "tidy/layers.hpp"
#include "tidy/source_tree.hpp"

namespace cpverify::tidy {
namespace {

constexpr std::size_t kFileLinesMax = 500;
constexpr std::size_t kFunctionLinesMax = 70;

/// The folder of src/ that a file lies in, empty outside src/ and for src/CMakeLists.txt.
std::string layer_of(std::string_view path) {
  if (!path.starts_with("src/")) return {};
  const std::size_t end = path.find('/', 4);
  return end == std::string_view::npos ? std::string{} : std::string{path.substr(4, end - 4)};
}

const Layer* find_layer(std::string_view folder) {
  const auto* const found = std::find_if(
      kLayers.begin(), kLayers.end(), [&](const Layer& layer) { return layer.folder == folder; });
  return found == kLayers.end() ? nullptr : found;
}

std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool lists_word(std::string_view words, std::string_view word) {
  const std::vector<std::string_view> all = split_words(words);
  return std::find(all.begin(), all.end(), word) != all.end();
}

struct Include {
  bool is_quoted = false;
  std::string file;
  std::string folder;  ///< First component, empty when there is none.
};

/// Why this include is wrong in this file, empty when it is not.
std::string include_complaint(std::string_view path, const Include& include) {
  const bool is_ours = include.folder == "cpverify" || include.folder == "reference" ||
                       find_layer(include.folder) != nullptr;
  if (!include.is_quoted) {
    if (is_ours) return "include <" + include.file + "> in quotes";
    // A standard header has neither folder nor extension.
    const bool is_std = include.file.find_first_of("./") == std::string::npos;
    if (path.starts_with("include/") && !is_std) return "a public header includes std only";
    const bool is_allowed = is_std || include.folder == "Eigen" || include.file == "immintrin.h";
    if (path.starts_with("reference/") && !is_allowed) {
      return "reference/ includes the public headers, std and Eigen only";
    }
    return {};
  }
  if (include.folder.empty()) return "include \"" + include.file + "\" with its folder";
  if (include.folder == "cpverify") return {};
  if (path.starts_with("include/")) return "a public header includes public headers only";
  if (path.starts_with("reference/")) {
    return include.folder == "reference" ? "" : "reference/ shares no code with src/";
  }
  const std::string layer = layer_of(path);
  if (layer == include.folder || find_layer(layer) == nullptr) return {};
  if (lists_word(find_layer(layer)->may_include, include.folder)) return {};
  return "layer " + layer + " may not include " + include.folder;
}

bool begins_with_any(std::string_view path, std::string_view beginnings) {
  const std::vector<std::string_view> words = split_words(beginnings);
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return path.starts_with(word); });
}

/// One violation for each line of the text that the pattern matches.
void match_lines(const std::string& path, std::string_view text, const std::regex& pattern,
                 std::string_view message, std::vector<Violation>& violations) {
  std::size_t number = 0;
  for (const std::string_view line : split_lines(text)) {
    ++number;
    if (std::regex_search(line.begin(), line.end(), pattern)) {
      violations.push_back({path, number, std::string{message}});
    }
  }
}

/// The text of the nearest CMakeLists.txt above a file, and the folder it lies in.
const SourceFile* nearest_list(const std::vector<SourceFile>& tree, std::string_view path) {
  std::string folder{path};
  while (!folder.empty()) {
    const std::size_t slash = folder.rfind('/');
    folder.resize(slash == std::string::npos ? 0 : slash);
    const std::string wanted = folder.empty() ? "CMakeLists.txt" : folder + "/CMakeLists.txt";
    const auto found = std::find_if(tree.begin(), tree.end(),
                                    [&](const SourceFile& file) { return file.path == wanted; });
    if (found != tree.end()) return &*found;
  }
  return nullptr;
}

/// True when the list names the file by its path from the list's folder, with or without extension,
/// or, for a kernel, by its name alone: that is also the module's name.
bool is_listed(const SourceFile& list, std::string_view path) {
  const std::size_t folder = list.path.size() - std::string_view{"CMakeLists.txt"}.size();
  const std::string relative{path.substr(folder)};
  const std::string stem = relative.substr(0, relative.rfind('.'));
  const std::string module = path.ends_with(".cu") ? stem.substr(stem.rfind('/') + 1) : stem;
  for (const std::string& name : {relative, stem, module}) {
    for (std::size_t at = list.text.find(name); at != std::string::npos;
         at = list.text.find(name, at + 1)) {
      const char before = at == 0 ? ' ' : list.text[at - 1];
      const std::size_t end = at + name.size();
      const char after = end < list.text.size() ? list.text[end] : ' ';
      const std::string_view separators = " \n\t()\";/";
      if (separators.find(before) != std::string_view::npos &&
          separators.find(after) != std::string_view::npos) {
        return true;
      }
    }
  }
  return false;
}

std::vector<std::string> paths_in_backticks(std::string_view line) {
  static const std::regex path{
      "`((src|include|reference|kernels|tests|docs|cmake|scripts|scenarios|bench|reports)"
      "/[A-Za-z0-9_./-]*)`"};
  std::vector<std::string> paths;
  std::cregex_iterator match{line.data(), line.data() + line.size(), path};
  for (; match != std::cregex_iterator{}; ++match) paths.push_back((*match)[1]);
  return paths;
}

/// A file, or a folder with something in it.
bool is_in_tree(const std::vector<SourceFile>& tree, const std::string& path) {
  const std::string folder = path.ends_with('/') ? path : path + "/";
  return std::any_of(tree.begin(), tree.end(), [&](const SourceFile& file) {
    return file.path == path || file.path.starts_with(folder);
  });
}

}  // namespace

std::vector<Violation> check_includes(const std::vector<SourceFile>& tree) {
  static const std::regex include{R"(^\s*#\s*include\s*([<"])(([^/>"]*)/)?([^>"]+)[>"])"};
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!is_code(file.path) || !begins_with_any(file.path, kLibrary)) continue;
    const std::string code = code_only(file.text);
    std::size_t number = 0;
    for (const std::string_view line : split_lines(code)) {
      ++number;
      std::cmatch match;
      if (!std::regex_search(line.data(), line.data() + line.size(), match, include)) continue;
      const std::string complaint = include_complaint(
          file.path, {match[1] == "\"", match[2].str() + match[4].str(), match[3].str()});
      if (!complaint.empty()) violations.push_back({file.path, number, complaint});
    }
  }
  return violations;
}

std::vector<Violation> check_banned_calls(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!is_code(file.path)) continue;
    const std::string code = code_only(file.text);
    for (const Ban& ban : kBans) {
      if (!begins_with_any(file.path, ban.folders)) continue;
      if (begins_with_any(file.path, ban.except)) continue;
      match_lines(file.path, code, std::regex{std::string{ban.pattern}}, ban.reason, violations);
    }
  }
  return violations;
}

std::vector<Violation> check_file_length(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!has_extension(file.path, {".hpp", ".cpp", ".cu", ".cuh", ".cmake", ".txt", ".sh", ".py"}))
      continue;
    const std::size_t lines = split_lines(file.text).size();
    if (lines > kFileLinesMax) {
      violations.push_back({file.path, kFileLinesMax + 1, std::to_string(lines) + " lines"});
    }
  }
  return violations;
}

std::vector<Violation> check_function_length(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!is_code(file.path) || file.path.ends_with(".inc")) continue;
    for (const FunctionSpan& span : function_spans(file.text)) {
      if (span.lines <= kFunctionLinesMax) continue;
      violations.push_back(
          {file.path, span.first_line, "function of " + std::to_string(span.lines) + " lines"});
    }
  }
  return violations;
}

std::vector<Violation> check_leftovers(const std::vector<SourceFile>& tree) {
  // Written so that this file does not break its own rule.
  static const std::regex word{
      "\\b(TO"
      "DO|FIX"
      "ME|XX"
      "X|HA"
      "CK)\\b"};
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    match_lines(file.path, file.text, word, "finish it or write an issue", violations);
  }
  return violations;
}

std::vector<Violation> check_absolute_paths(const std::vector<SourceFile>& tree) {
  static const std::regex path{
      "(^|[^\\w.$}/])/(home|work|root|Users|mnt|tmp)"
      "/\\w"};
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    match_lines(file.path, file.text, path, "a path of one machine", violations);
  }
  return violations;
}

std::vector<Violation> check_listed_sources(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    const bool is_source = has_extension(file.path, {".cpp", ".cu"});
    if (!is_source || begins_with_any(file.path, "tests/install/ docs/")) continue;
    const SourceFile* const list = nearest_list(tree, file.path);
    if (list != nullptr && is_listed(*list, file.path)) continue;
    violations.push_back({file.path, 1, "no CMakeLists.txt lists it"});
  }
  return violations;
}

std::vector<Violation> check_installed_headers(const std::vector<SourceFile>& tree) {
  const auto list = std::find_if(tree.begin(), tree.end(), [](const SourceFile& file) {
    return file.path == "cmake/cpverify_install.cmake";
  });
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!file.path.starts_with("include/")) continue;
    const bool is_installed = list != tree.end() && list->text.find(file.path) != std::string::npos;
    if (!is_installed) {
      violations.push_back({file.path, 1, "cmake/cpverify_install.cmake does not install it"});
    }
  }
  return violations;
}

std::vector<Violation> check_layer_folders(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    const std::string layer = layer_of(file.path);
    if (is_code(file.path) && file.path.starts_with("src/") && find_layer(layer) == nullptr) {
      violations.push_back({file.path, 1, "folder '" + layer + "' is not in tidy/layers.hpp"});
    }
  }
  return violations;
}

std::vector<Violation> check_pragma_once(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!has_extension(file.path, {".hpp", ".cuh"})) continue;
    const std::string code = code_only(file.text);
    const std::size_t first = code.find_first_not_of(" \n");
    if (first != std::string::npos && code.compare(first, 12, "#pragma once") == 0) continue;
    violations.push_back({file.path, 1, "a header begins with #pragma once"});
  }
  return violations;
}

std::vector<Violation> check_macros(const std::vector<SourceFile>& tree) {
  static const std::regex define{R"(^\s*#\s*define\s+(?!INSN\b|CPVERIFY_CHECK\b))"};
  std::vector<Violation> violations;
  for (const SourceFile& file : tree) {
    if (!is_code(file.path) || file.path.starts_with("kernels/")) continue;
    match_lines(file.path, code_only(file.text), define, "write a function or a constant",
                violations);
  }
  return violations;
}

std::vector<Violation> check_unused_headers(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& header : tree) {
    if (!has_extension(header.path, {".hpp", ".cuh", ".inc"})) continue;
    const std::string name = header.path.substr(header.path.rfind('/') + 1);
    const bool is_used = std::any_of(tree.begin(), tree.end(), [&](const SourceFile& file) {
      return is_code(file.path) && (file.text.find("/" + name + "\"") != std::string::npos ||
                                    file.text.find("\"" + name + "\"") != std::string::npos);
    });
    if (!is_used) violations.push_back({header.path, 1, "nobody includes it"});
  }
  return violations;
}

std::vector<Violation> check_documented_paths(const std::vector<SourceFile>& tree) {
  std::vector<Violation> violations;
  for (const SourceFile& page : tree) {
    if (!page.path.ends_with(".md")) continue;
    std::size_t number = 0;
    for (const std::string_view line : split_lines(page.text)) {
      ++number;
      for (const std::string& path : paths_in_backticks(line)) {
        if (!is_in_tree(tree, path)) {
          violations.push_back({page.path, number, path + " is not there"});
        }
      }
    }
  }
  return violations;
}

const std::vector<Rule>& all_rules() {
  static const std::vector<Rule> rules{
      {"includes", check_includes},
      {"banned_calls", check_banned_calls},
      {"file_length", check_file_length},
      {"function_length", check_function_length},
      {"leftovers", check_leftovers},
      {"absolute_paths", check_absolute_paths},
      {"listed_sources", check_listed_sources},
      {"installed_headers", check_installed_headers},
      {"layer_folders", check_layer_folders},
      {"pragma_once", check_pragma_once},
      {"macros", check_macros},
      {"unused_headers", check_unused_headers},
      {"documented_paths", check_documented_paths},
  };
  return rules;
}

}  // namespace cpverify::tidy
