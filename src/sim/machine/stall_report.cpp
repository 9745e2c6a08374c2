#include "sim/machine/stall_report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

namespace cpverify::sim {
namespace {

/// Places that one report names; the others are counted.
constexpr std::size_t kPlacesShown = 6;

std::string place(const Warp& warp, const Insn* insn) {
  const ExecutionPoint point = execution_point(warp, insn);
  if (point.source_line == 0) return fmt::format("PTX line {}", point.ptx_line);
  return fmt::format("{}:{}", point.source_file, point.source_line);
}

/// "warp 3", "warps 0-2, 5".
std::string warp_names(const std::vector<std::uint32_t>& warps) {
  std::vector<std::string> runs;
  for (std::size_t first = 0; first < warps.size();) {
    std::size_t last = first;
    while (last + 1 < warps.size() && warps[last + 1] == warps[last] + 1) ++last;
    runs.push_back(first == last ? fmt::format("{}", warps[first])
                                 : fmt::format("{}-{}", warps[first], warps[last]));
    first = last + 1;
  }
  return fmt::format("warp{} {}", warps.size() == 1 ? "" : "s", fmt::join(runs, ", "));
}

/// Warps that are at one place, in the order of their first.
struct Group {
  std::string where;
  std::vector<std::uint32_t> warps;
};

void add_to_group(std::vector<Group>& groups, const std::string& where, std::uint32_t warp) {
  for (Group& group : groups) {
    if (group.where != where) continue;
    group.warps.push_back(warp);
    return;
  }
  groups.push_back({where, {warp}});
}

/// "barrier 1 has 1 of 2 warps: warp 1 at kernels/a.cu:12".
void describe_barriers(const Cta& cta, const std::string& prefix, std::vector<std::string>& lines) {
  for (std::uint32_t barrier = 0; barrier < kBarrierCount; ++barrier) {
    const BarrierCount count = count_barrier(cta, barrier);
    if (count.arrived == 0) continue;
    std::vector<Group> groups;
    for (const Warp& warp : cta.warps) {
      if (warp.state != WarpState::at_barrier || warp.barrier != barrier) continue;
      add_to_group(groups, place(warp, warp.next - 1), warp.index);
    }
    std::vector<std::string> parts;
    parts.reserve(groups.size());
    for (const Group& group : groups) {
      parts.push_back(fmt::format("{} at {}", warp_names(group.warps), group.where));
    }
    if (count.arrived > count.waiting) {
      parts.push_back(fmt::format("{} by bar.arrive", (count.arrived - count.waiting) / kLanes));
    }
    lines.push_back(fmt::format("{}barrier {} has {} of {} warps: {}", prefix, barrier,
                                count.arrived / kLanes, count.expected / kLanes,
                                fmt::join(parts, ", ")));
  }
}

/// "the barrier of the cluster waits for others: warps 0-1 at kernels/a.cu:12".
void describe_cluster(const Cta& cta, const std::string& prefix, std::vector<std::string>& lines) {
  std::vector<Group> groups;
  for (const Warp& warp : cta.warps) {
    if (warp.state != WarpState::at_cluster_barrier) continue;
    add_to_group(groups, place(warp, warp.next - 1), warp.index);
  }
  for (const Group& group : groups) {
    lines.push_back(fmt::format("{}the barrier of the cluster waits for others: {} at {}", prefix,
                                warp_names(group.warps), group.where));
  }
}

/// "warpgroup 1 has 3 of 4 warps: warps 4-6 at kernels/a.cu:12".
void describe_warpgroups(const Cta& cta, const std::string& prefix,
                         std::vector<std::string>& lines) {
  for (std::size_t first = 0; first < cta.warps.size(); first += kGroupWarps) {
    std::vector<Group> groups;
    std::size_t count = 0;
    for (std::size_t i = first; i < std::min(first + kGroupWarps, cta.warps.size()); ++i) {
      const Warp& warp = cta.warps[i];
      if (warp.state != WarpState::at_warpgroup) continue;
      add_to_group(groups, place(warp, warp.next - 1), warp.index);
      ++count;
    }
    if (count == 0) continue;
    std::vector<std::string> parts;
    parts.reserve(groups.size());
    for (const Group& group : groups) {
      parts.push_back(fmt::format("{} at {}", warp_names(group.warps), group.where));
    }
    lines.push_back(fmt::format("{}warpgroup {} has {} of {} warps: {}", prefix,
                                first / kGroupWarps, count, kGroupWarps, fmt::join(parts, ", ")));
  }
}

void describe_loops(const Cta& cta, const std::string& prefix, std::vector<std::string>& lines) {
  std::vector<Group> groups;
  for (const Warp& warp : cta.warps) {
    if (warp.state != WarpState::ready || warp.awaited != kNoIndex) continue;
    add_to_group(groups, place(warp, warp.next), warp.index);
  }
  for (const Group& group : groups) {
    lines.push_back(fmt::format("{}{} {} for ever at {}", prefix, warp_names(group.warps),
                                group.warps.size() == 1 ? "loops" : "loop", group.where));
  }
}

/// "mbarrier at byte 64, phase 2: 1 of 3 arrivals and 512 bytes are missing: warp 1 waits at ...".
void describe_mbarriers(const Cta& cta, const std::string& prefix,
                        std::vector<std::string>& lines) {
  for (const auto& [offset, object] : cta.mbarriers) {
    std::vector<Group> groups;
    for (const Warp& warp : cta.warps) {
      if (warp.state != WarpState::ready || warp.awaited != offset) continue;
      add_to_group(groups, place(warp, warp.awaited_at), warp.index);
    }
    if (groups.empty()) continue;
    std::vector<std::string> parts;
    for (const Group& group : groups) {
      parts.push_back(fmt::format("{} {} at {}", warp_names(group.warps),
                                  group.warps.size() == 1 ? "waits" : "wait", group.where));
    }
    const std::string bytes =
        object.tx_count() < 0
            ? fmt::format("{} bytes more than expected have come", -object.tx_count())
            : fmt::format("{} bytes are missing", object.tx_count());
    lines.push_back(
        fmt::format("{}mbarrier at byte {}, phase {}: {} of {} arrivals are missing, "
                    "{}: {}",
                    prefix, offset, object.phase(), object.pending(), object.expected(), bytes,
                    fmt::join(parts, ", ")));
  }
}

std::string describe(const std::vector<Cta*>& ctas) {
  std::vector<std::string> lines;
  for (const Cta* const cta : ctas) {
    const std::string prefix =
        ctas.size() == 1 ? "" : fmt::format("cta ({},{},{}) ", cta->id[0], cta->id[1], cta->id[2]);
    describe_mbarriers(*cta, prefix, lines);
    describe_loops(*cta, prefix, lines);
    describe_barriers(*cta, prefix, lines);
    describe_cluster(*cta, prefix, lines);
    describe_warpgroups(*cta, prefix, lines);
  }
  if (lines.size() > kPlacesShown) {
    const std::size_t more = lines.size() - kPlacesShown;
    lines.resize(kPlacesShown);
    lines.push_back(fmt::format("and {} more", more));
  }
  return fmt::format("{}", fmt::join(lines, "; "));
}

/// Reported where the first warp stands that is ready, or that is not.
void report_stall(const std::vector<Cta*>& ctas, bool is_ready, const std::string& detail) {
  for (Cta* const cta : ctas) {
    for (Warp& warp : cta->warps) {
      if (warp.state == WarpState::done || (warp.state == WarpState::ready) != is_ready) continue;
      ViolationEvent event;
      event.kind = FaultKind::deadlock;
      event.space = MemorySpace::shared;
      event.lanes = warp.active;
      event.detail = detail;
      report(warp, is_ready ? warp.next : warp.next - 1, event);
      return;
    }
  }
}

}  // namespace

void report_barrier_deadlock(const std::vector<Cta*>& ctas) {
  report_stall(ctas, false, "warps wait for barriers that will not complete: " + describe(ctas));
}

void report_livelock(const std::vector<Cta*>& ctas, std::uint64_t unstarted) {
  std::string detail = "no warp can go on, nobody writes what they wait for: " + describe(ctas);
  if (unstarted > 0) {
    const bool is_race_checked = !ctas.front()->launch->access_observers.empty();
    detail += is_race_checked
                  ? fmt::format("; {} CTAs have not started: with racecheck one runs at a time",
                                unstarted)
                  : fmt::format("; {} CTAs have no room to start", unstarted);
  }
  report_stall(ctas, true, detail);
}

}  // namespace cpverify::sim
