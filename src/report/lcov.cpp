#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/coverage.hpp"
#include "report/report.hpp"

/// Tracefiles of lcov. Source: geninfo(1), "FILES".
namespace cpverify::report {
namespace {

struct Function {
  std::uint32_t line = 0;
  std::uint64_t launches = 0;
};

/// What a tracefile says about one source file.
struct SourceRecord {
  std::map<std::string, Function> functions;
  std::map<std::uint32_t, std::uint64_t> lines;
  std::map<std::uint32_t, std::vector<InstructionCount>> branches;
};
using Records = std::map<std::string, SourceRecord>;

/// A line was executed as often as the most frequent of its instructions.
void add_lines(const Coverage::Kernel& kernel, const Coverage::Counts& counts, Records& records) {
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> lines;
  for (std::size_t i = 0; i < kernel.second.size(); ++i) {
    const InstructionPlace& place = kernel.second[i];
    if (!place.has_source()) continue;
    const InstructionCount& count = counts.instructions[i];
    std::uint64_t& most = lines[{place.source_file, place.source_line}];
    most = std::max(most, count.executed + (place.is_branch ? count.skipped : 0));
  }
  for (const auto& [place, count] : lines) records[place.first].lines[place.second] += count;
}

void add_kernel(const Coverage::Kernel& kernel, const Coverage::Counts& counts, Records& records) {
  add_lines(kernel, counts, records);
  bool has_function = false;
  for (std::size_t i = 0; i < kernel.second.size(); ++i) {
    const InstructionPlace& place = kernel.second[i];
    if (!place.has_source()) continue;
    SourceRecord& record = records[place.source_file];
    if (!has_function) {
      has_function = true;
      Function& function = record.functions[kernel.first];
      function.line = place.source_line;
      function.launches += counts.launches;
    }
    if (place.is_branch) record.branches[place.source_line].push_back(counts.instructions[i]);
  }
}

std::string functions_text(const SourceRecord& record) {
  std::string text;
  std::size_t hit = 0;
  for (const auto& [name, function] : record.functions) {
    text += fmt::format("FN:{},{}\n", function.line, name);
  }
  for (const auto& [name, function] : record.functions) {
    text += fmt::format("FNDA:{},{}\n", function.launches, name);
    hit += function.launches > 0 ? 1 : 0;
  }
  return text + fmt::format("FNF:{}\nFNH:{}\n", record.functions.size(), hit);
}

/// A branch is a block of two ways: taken, not taken. "-" when nothing came to it.
std::string branches_text(const SourceRecord& record) {
  std::string text;
  std::size_t found = 0;
  std::size_t hit = 0;
  for (const auto& [line, branches] : record.branches) {
    for (std::size_t block = 0; block < branches.size(); ++block) {
      const InstructionCount& count = branches[block];
      const bool is_reached = count.executed + count.skipped > 0;
      const std::string taken = is_reached ? fmt::format("{}", count.executed) : "-";
      const std::string passed = is_reached ? fmt::format("{}", count.skipped) : "-";
      text += fmt::format("BRDA:{0},{1},0,{2}\nBRDA:{0},{1},1,{3}\n", line, block, taken, passed);
      found += 2;
      hit += (count.executed > 0 ? 1U : 0U) + (count.skipped > 0 ? 1U : 0U);
    }
  }
  return text + fmt::format("BRF:{}\nBRH:{}\n", found, hit);
}

std::string lines_text(const SourceRecord& record) {
  std::string text;
  std::size_t hit = 0;
  for (const auto& [line, count] : record.lines) {
    text += fmt::format("DA:{},{}\n", line, count);
    hit += count > 0 ? 1 : 0;
  }
  return text + fmt::format("LF:{}\nLH:{}\n", record.lines.size(), hit);
}

}  // namespace

std::string lcov_text(const Coverage& coverage) {
  Records records;
  for (const auto& [kernel, counts] : coverage.kernels) add_kernel(kernel, counts, records);
  std::string text;
  for (const auto& [file, record] : records) {
    text += fmt::format("TN:\nSF:{}\n", file);
    text += functions_text(record) + branches_text(record) + lines_text(record);
    text += "end_of_record\n";
  }
  return text;
}

}  // namespace cpverify::report
