#include "unit/kernels/ptx_text.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify::tests {
namespace {

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\r");
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin);
}

/// Up to the first blank, comma, semicolon or parenthesis.
std::string first_word(std::string_view text) {
  return std::string{text.substr(0, text.find_first_of(" \t,;(){"))};
}

/// What follows `prefix` in each line that begins with it.
std::vector<std::string> lines_after(std::string_view ptx, std::string_view prefix) {
  std::vector<std::string> rest;
  std::istringstream lines{std::string{ptx}};
  for (std::string line; std::getline(lines, line);) {
    const std::string_view text = trimmed(line);
    if (text.substr(0, prefix.size()) == prefix) rest.emplace_back(text.substr(prefix.size()));
  }
  return rest;
}

/// The instruction in a line of PTX; empty for labels, directives and braces.
std::string opcode_of(std::string_view line) {
  std::string_view text = trimmed(line);
  if (!text.empty() && text.front() == '@') text = trimmed(text.substr(text.find_first_of(" \t")));
  const std::string word = first_word(text);
  const bool is_opcode = !word.empty() && word.front() >= 'a' && word.front() <= 'z';
  return is_opcode && word.back() != ':' ? word : std::string{};
}

}  // namespace

std::string read_ptx(const std::filesystem::path& path) {
  std::ifstream file{path};
  if (!file) throw std::runtime_error{"cannot read " + path.string()};
  std::string text;
  for (std::string line; std::getline(file, line);) {
    text += line.substr(0, line.find("//"));
    text += '\n';
  }
  return text;
}

std::map<std::string, std::vector<std::string>> entries_of(std::string_view ptx) {
  constexpr std::string_view kEntry = ".visible .entry ";
  constexpr std::string_view kParameter = ".param ";
  std::map<std::string, std::vector<std::string>> entries;
  for (std::size_t at = ptx.find(kEntry); at != std::string_view::npos; at = ptx.find(kEntry, at)) {
    at += kEntry.size();
    const std::string_view head = ptx.substr(at, ptx.find(')', at) - at);
    std::vector<std::string>& types = entries[first_word(head)];
    for (const std::string& parameter : lines_after(head, kParameter)) {
      types.push_back(first_word(parameter));
    }
  }
  return entries;
}

std::vector<std::string> opcodes_of(std::string_view ptx) {
  std::set<std::string> opcodes;
  std::istringstream lines{std::string{ptx}};
  for (std::string line; std::getline(lines, line);) {
    const std::string opcode = opcode_of(line);
    if (!opcode.empty()) opcodes.insert(opcode);
  }
  return {opcodes.begin(), opcodes.end()};
}

std::vector<std::string> source_files_of(std::string_view ptx) {
  std::vector<std::string> files;
  for (const std::string& rest : lines_after(ptx, ".file")) {
    const std::size_t begin = rest.find('"') + 1;
    files.push_back(rest.substr(begin, rest.find('"', begin) - begin));
  }
  return files;
}

std::string without_line_table(std::string_view ptx) {
  std::string kept;
  std::istringstream lines{std::string{ptx}};
  for (std::string line; std::getline(lines, line);) {
    const std::string word = first_word(trimmed(line));
    if (word != ".loc" && word != ".file") kept += line + '\n';
  }
  return kept;
}

}  // namespace cpverify::tests
