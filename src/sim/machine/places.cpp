#include "sim/machine/places.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// Lanes that have arrived at the join of a branch wait there; those of the other side will run
/// from the entry's `resume`.
std::string where_stacked(const Warp& warp, std::uint32_t lane) {
  const Insn* join = nullptr;
  for (std::size_t i = warp.stack.size(); i-- > 0;) {
    const StackEntry& entry = warp.stack[i];
    if ((entry.lanes >> lane & 1U) == 0) continue;
    if (entry.resume != nullptr) return "at " + place(warp, entry.resume);
    if (join == nullptr) join = entry.join;
  }
  return join == nullptr ? "elsewhere" : "done and waiting at " + place(warp, join);
}

std::string where_in_fragment(const Warp& warp, std::uint32_t lane) {
  for (const Fragment& fragment : warp.fragments) {
    if ((fragment.lanes >> lane & 1U) != 0) return "at " + place(warp, fragment.next);
  }
  return "elsewhere";
}

}  // namespace

std::string place(const Warp& warp, const Insn* insn) {
  const ExecutionPoint point = execution_point(warp, insn);
  if (point.source_line == 0) return fmt::format("PTX line {}", point.ptx_line);
  return fmt::format("{}:{}", point.source_file, point.source_line);
}

std::string numbered(const std::string& noun, const std::vector<std::uint32_t>& numbers) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < numbers.size();) {
    std::size_t last = first;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    runs.push_back(first == last ? fmt::format("{}", numbers[first])
                                 : fmt::format("{}-{}", numbers[first], numbers[last]));
    first = last + 1;
  }
  return fmt::format("{}{} {}", noun, numbers.size() == 1 ? "" : "s", fmt::join(runs, ", "));
}

std::string lane_names(std::uint32_t lanes) {
  constexpr int kRunsShown = 8;
  if (std::popcount(lanes & ~(lanes << 1)) > kRunsShown)
    return fmt::format("lanes {:#010x}", lanes);
  std::vector<std::uint32_t> numbers;
  for (; lanes != 0; lanes &= lanes - 1) {
    numbers.push_back(static_cast<std::uint32_t>(std::countr_zero(lanes)));
  }
  return numbered("lane", numbers);
}

std::string whereabouts(const Warp& warp, std::uint32_t lanes) {
  std::vector<std::pair<std::string, std::uint32_t>> groups;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    std::string where =
        warp.fragments.empty() ? where_stacked(warp, lane) : where_in_fragment(warp, lane);
    std::size_t group = 0;
    while (group < groups.size() && groups[group].first != where) ++group;
    if (group == groups.size()) groups.emplace_back(std::move(where), 0U);
    groups[group].second |= 1U << lane;
  }
  std::vector<std::string> parts;
  parts.reserve(groups.size());
  for (const auto& [where, members] : groups) {
    parts.push_back(fmt::format("{} {} {}", lane_names(members),
                                std::has_single_bit(members) ? "is" : "are", where));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace cpverify::sim
