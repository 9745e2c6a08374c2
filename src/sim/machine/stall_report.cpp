#include "sim/machine/stall_report.hpp"

#include <algorithm>
#include <bit>
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
#include "sim/machine/fragments.hpp"
#include "sim/machine/places.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

namespace cpverify::sim {
namespace {

/// Places that one report names; the others are counted.
constexpr std::size_t kPlacesShown = 6;

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
      parts.push_back(fmt::format("{} at {}", numbered("warp", group.warps), group.where));
    }
    std::vector<std::uint32_t> exited;
    for (const Warp& warp : cta.warps) {
      if (warp.state == WarpState::done) exited.push_back(warp.index);
    }
    if (!exited.empty() && !count.is_for_all) {
      parts.push_back(fmt::format("{} exited", numbered("warp", exited)));
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
                                numbered("warp", group.warps), group.where));
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
      parts.push_back(fmt::format("{} at {}", numbered("warp", group.warps), group.where));
    }
    lines.push_back(fmt::format("{}warpgroup {} has {} of {} warps: {}", prefix,
                                first / kGroupWarps, count, kGroupWarps, fmt::join(parts, ", ")));
  }
}

/// What the lanes of a warp do that loops; empty when all of them are in the loop. Lanes that wait
/// for others to leave it may be what those wait for: independent threads would go on.
std::string describe_parts(const Warp& warp) {
  if (!warp.fragments.empty()) return describe_fragments(warp, "loop for ever");
  const std::uint32_t rest = ~warp.exited & ~warp.active;
  if (rest == 0) return {};
  return fmt::format("{} loop for ever at {} and {} until they are through",
                     lane_names(warp.active), place(warp, warp.next), whereabouts(warp, rest));
}

void describe_loops(const Cta& cta, const std::string& prefix, std::vector<std::string>& lines) {
  std::vector<Group> groups;
  for (const Warp& warp : cta.warps) {
    if (warp.state != WarpState::ready || warp.awaited != kNoIndex) continue;
    const std::string parts = describe_parts(warp);
    if (parts.empty()) {
      add_to_group(groups, place(warp, warp.next), warp.index);
    } else {
      lines.push_back(fmt::format("{}warp {}: {}", prefix, warp.index, parts));
    }
  }
  for (const Group& group : groups) {
    lines.push_back(fmt::format("{}{} {} for ever at {}", prefix, numbered("warp", group.warps),
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
      parts.push_back(fmt::format("{} {} at {}", numbered("warp", group.warps),
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

/// Of independent threads, one that loops stands for its warp.
void load_ready_fragment(Warp& warp) {
  for (std::uint32_t place = 0; place < warp.fragments.size(); ++place) {
    if (!is_fragment_ready(warp, place)) continue;
    load_fragment(warp, place);
    return;
  }
}

/// Reported where the first warp stands that is ready, or that is not.
void report_stall(const std::vector<Cta*>& ctas, bool is_ready, const std::string& detail) {
  for (Cta* const cta : ctas) {
    for (Warp& warp : cta->warps) {
      if (warp.state == WarpState::done || (warp.state == WarpState::ready) != is_ready) continue;
      load_ready_fragment(warp);
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

void report_pending_barriers(Cta& cta) {
  for (std::uint32_t barrier = 0; barrier < kBarrierCount; ++barrier) {
    const BarrierArrivals& arrivals = cta.arrivals[barrier];
    if (arrivals.threads == 0 || count_barrier(cta, barrier).is_complete()) continue;
    const std::string detail = fmt::format(
        "the CTA ends and barrier {} has {} of {} threads, by bar.arrive: a bar.sync is "
        "missing",
        barrier, arrivals.threads, arrivals.expected);
    ViolationEvent event;
    event.kind = FaultKind::barrier_mismatch;
    event.lanes = 1;
    event.detail = detail;
    report(cta.warps[static_cast<std::size_t>(std::countr_zero(arrivals.warps))], arrivals.last,
           event);
    return;
  }
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
