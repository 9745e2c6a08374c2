#include "cpverify/coverage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "report/report.hpp"

namespace cpverify::report {
namespace {

/// Things of one kind, and those of them that were executed.
template <class Key>
struct Share {
  std::map<Key, bool> is_hit;

  void add(const Key& key, bool is_executed) {
    bool& known = is_hit[key];
    known = known || is_executed;
  }
  [[nodiscard]] std::string text() const {
    const auto hit =
        std::count_if(is_hit.begin(), is_hit.end(), [](const auto& entry) { return entry.second; });
    return fmt::format("{}/{}", hit, is_hit.size());
  }
};

/// The cells of one kernel: an instruction that was inlined or split is one.
std::vector<std::string> row(const Coverage::Kernel& kernel, const Coverage::Counts& counts) {
  Share<std::pair<std::uint32_t, std::uint32_t>> instructions;
  Share<std::pair<std::string, std::uint32_t>> lines;
  Share<std::size_t> branches;
  for (std::size_t i = 0; i < kernel.second.size(); ++i) {
    const InstructionPlace& place = kernel.second[i];
    const InstructionCount& count = counts.instructions[i];
    const bool is_executed = count.executed > 0 || (place.is_branch && count.skipped > 0);
    instructions.add({place.ptx_line, place.ptx_column}, is_executed);
    if (place.has_source()) lines.add({place.source_file, place.source_line}, is_executed);
    if (place.is_branch) branches.add(i, count.executed > 0 && count.skipped > 0);
  }
  return {kernel.first, fmt::format("{}", counts.launches), instructions.text(), lines.text(),
          branches.text()};
}

}  // namespace

std::string coverage_text(const Coverage& coverage) {
  std::vector<std::vector<std::string>> rows{
      {"kernel", "launches", "instructions", "lines", "branches both ways"}};
  for (const auto& [kernel, counts] : coverage.kernels) rows.push_back(row(kernel, counts));
  std::size_t width = 0;
  for (const auto& cells : rows) width = std::max(width, cells[0].size());
  std::string text = "\ncoverage\n";
  for (const auto& cells : rows) {
    text += fmt::format("  {:{}}  {:>8}  {:>12}  {:>9}  {:>18}\n", cells[0], width, cells[1],
                        cells[2], cells[3], cells[4]);
  }
  return text;
}

}  // namespace cpverify::report
