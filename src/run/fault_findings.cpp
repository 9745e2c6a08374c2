#include "run/fault_findings.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "run/rank_device.hpp"

namespace cpverify::run {
namespace {

std::string_view name(MemorySpace space) noexcept {
  switch (space) {
    case MemorySpace::global:
      return "global";
    case MemorySpace::shared:
      return "shared";
    case MemorySpace::local:
      return "local";
    case MemorySpace::param:
      return "param";
    case MemorySpace::host:
      return "host";
    case MemorySpace::registers:
      return "registers";
  }
  return "?";
}

struct FoundAllocation {
  const NamedAllocation* allocation = nullptr;
  std::uint32_t rank = 0;
};

/// Addresses are unique over all devices, so the first match is the only one.
FoundAllocation find_allocation(const Fault& fault,
                                const std::vector<std::unique_ptr<RankDevice>>& devices) {
  for (std::uint32_t rank = 0; rank < devices.size(); ++rank) {
    const NamedAllocation* found = devices[rank]->find_allocation(fault.allocation);
    if (found != nullptr) return {found, rank};
  }
  return {};
}

/// "; cta (0,0,0) thread (3,0,0), PTX line 92", or nothing for a copy that the host asked for.
std::string place_in_launch(const Fault& fault) {
  if (fault.ptx_line == 0) return {};
  return fmt::format("; cta ({},{},{}) thread ({},{},{}), PTX line {}", fault.cta[0], fault.cta[1],
                     fault.cta[2], fault.thread[0], fault.thread[1], fault.thread[2],
                     fault.ptx_line);
}

/// Sets buffer and element, and returns how to say them.
std::string describe_place(const Fault& fault, const FoundAllocation& found, Finding& finding) {
  if (fault.space == MemorySpace::registers) {
    finding.buffer = std::string{name(fault.space)};
    return "a register";
  }
  if (fault.space != MemorySpace::global) {
    finding.buffer = std::string{name(fault.space)};
    finding.element = static_cast<std::int64_t>(fault.address);
    if (fault.space == MemorySpace::registers) return "a register";
    return fmt::format("byte {} of {} memory", fault.address, name(fault.space));
  }
  if (found.allocation == nullptr) return fmt::format("address {:#x}", fault.address);
  const NamedAllocation& allocation = *found.allocation;
  const std::uint64_t element_bytes = size_bytes(allocation.dtype);
  const std::uint64_t element = (fault.address - allocation.address) / element_bytes;
  finding.buffer = allocation.name;
  finding.element = static_cast<std::int64_t>(element);
  return fmt::format("element {} of '{}' on rank {}, which has {}", element, allocation.name,
                     found.rank, allocation.size_bytes / element_bytes);
}

Check check_of(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::uninitialised_read:
      return Check::initcheck;
    case FaultKind::race:
      return Check::racecheck;
    case FaultKind::nan_produced:
    case FaultKind::infinity_produced:
    case FaultKind::nan_read:
      return Check::nancheck;
    default:
      return is_of_synchronisation(kind) ? Check::synccheck : Check::memcheck;
  }
}

}  // namespace

std::string_view name(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::out_of_bounds_read:
      return "out_of_bounds_read";
    case FaultKind::out_of_bounds_write:
      return "out_of_bounds_write";
    case FaultKind::use_after_free:
      return "use_after_free";
    case FaultKind::misaligned:
      return "misaligned";
    case FaultKind::uninitialised_read:
      return "uninitialised_read";
    case FaultKind::race:
      return "race";
    case FaultKind::nan_produced:
      return "nan_produced";
    case FaultKind::infinity_produced:
      return "infinity_produced";
    case FaultKind::nan_read:
      return "nan_read";
    case FaultKind::deadlock:
      return "deadlock";
    case FaultKind::barrier_divergence:
      return "barrier_divergence";
    case FaultKind::barrier_mismatch:
      return "barrier_mismatch";
    case FaultKind::invalid_barrier:
      return "invalid_barrier";
    case FaultKind::warp_divergence:
      return "warp_divergence";
    case FaultKind::invalid_membermask:
      return "invalid_membermask";
    case FaultKind::illegal_instruction:
      return "illegal_instruction";
    case FaultKind::mbarrier_misuse:
      return "mbarrier_misuse";
    case FaultKind::unfinished_copy:
      return "unfinished_copy";
  }
  return "?";
}

Finding fault_finding(const Fault& fault, const FaultContext& context,
                      const std::vector<std::unique_ptr<RankDevice>>& devices) {
  Finding finding;
  finding.check = check_of(fault.kind);
  finding.kind = std::string{name(fault.kind)};
  finding.strategy = context.strategy;
  finding.mode = context.mode;
  finding.step = context.step;
  finding.rank = RankId{fault.device};
  finding.kernel = fault.kernel;
  if (!fault.source_file.empty()) {
    finding.source = fmt::format("{}:{}", fault.source_file, fault.source_line);
  }
  finding.count = fault.count;
  const bool has_address =
      finding.check != Check::synccheck && fault.kind != FaultKind::illegal_instruction;
  finding.detail =
      has_address ? fmt::format("{} bytes at {}", fault.size_bytes,
                                describe_place(fault, find_allocation(fault, devices), finding))
                  : std::string{name(fault.kind)};
  finding.detail += place_in_launch(fault);
  if (!fault.detail.empty()) finding.detail += "; " + fault.detail;
  return finding;
}

}  // namespace cpverify::run
