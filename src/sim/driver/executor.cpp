#include "sim/driver/executor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "gpu/driver_types.hpp"
#include "sim/driver/footprint_observer.hpp"
#include "sim/driver/operation.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

using gpu::CuResult;

/// What a synchronisation returns after a kernel was stopped by a fault.
CuResult sticky_error(FaultKind kind) noexcept {
  switch (kind) {
    case FaultKind::out_of_bounds_read:
    case FaultKind::out_of_bounds_write:
    case FaultKind::use_after_free:
      return CuResult::illegal_address;
    case FaultKind::misaligned:
      return CuResult::misaligned_address;
    case FaultKind::deadlock:
    case FaultKind::barrier_divergence:
    case FaultKind::barrier_mismatch:
    case FaultKind::warp_divergence:
      return CuResult::launch_timeout;
    case FaultKind::uninitialised_read:
    case FaultKind::race:
    case FaultKind::nan_produced:
    case FaultKind::infinity_produced:
    case FaultKind::nan_read:
    case FaultKind::invalid_barrier:
    case FaultKind::invalid_membermask:
    case FaultKind::illegal_instruction:
    case FaultKind::mbarrier_misuse:
    case FaultKind::unfinished_copy:
      return CuResult::launch_failed;
  }
  return CuResult::launch_failed;
}

/// Simulated cost of a piece of work of any kind, and of so many bytes that are copied or filled.
constexpr std::uint64_t kPieceNs = 1000;
constexpr std::uint64_t kBytesPerNs = 1024;

bool is_harmless(const std::optional<MemoryProblem>& problem) noexcept {
  return !problem || problem->kind == FaultKind::uninitialised_read;
}

/// Both ranges of a copy, in ascending order and apart.
Footprint copy_footprint(const CopyWork& work) {
  const Span read{work.source, work.source + work.size_bytes, kReads};
  const Span written{work.target, work.target + work.size_bytes, kWrites};
  const Span& low = read.begin < written.begin ? read : written;
  const Span& high = read.begin < written.begin ? written : read;
  if (low.end <= high.begin) return {low, high};
  // Onto itself: what it writes covers what it reads for every race.
  return {{low.begin, high.end, kReads | kWrites}};
}

}  // namespace

void Executor::execute(Context& context, WorkItem& item) {
  if (context.sticky != CuResult::success) return;
  const Piece piece{context, item.operation};
  std::visit([this, &piece](auto& work) { run(piece, work); }, item.body);
}

void Executor::finish(const Piece& piece, const Problem& problem, const Footprint& footprint) {
  time_ns_ += kPieceNs;
  for (const Span& span : footprint) time_ns_ += (span.end - span.begin) / kBytesPerNs;
  if (!is_harmless(problem)) return fail(piece, *problem);
  if (is_race_checked_) races_.record(piece.operation, footprint);
}

// The call found nothing wrong, so the memory was freed since.
void Executor::fail(const Piece& piece, const MemoryProblem& problem) {
  Fault fault;
  fault.kind = problem.kind;
  fault.device = static_cast<std::uint32_t>(piece.context.device);
  fault.kernel = piece.operation->call;
  fault.address = problem.address;
  fault.allocation = problem.allocation;
  fault.allocation_bytes = problem.allocation_bytes;
  fault.detail = fmt::format("{} ran when the memory was gone", piece.operation->description);
  faults_.add(fault);
  piece.context.sticky = sticky_error(problem.kind);
}

void Executor::run(const Piece& piece, UploadWork& work) {
  if (work.pending != nullptr) host_.check(*work.pending);
  const std::span<const std::byte> bytes =
      work.source == nullptr ? std::span<const std::byte>{work.bytes}
                             : std::span<const std::byte>{work.source, work.size_bytes};
  finish(piece, memory_.write(work.target, bytes),
         {{work.target, work.target + bytes.size(), kWrites}});
  special_values_.forget(work.target, bytes.size());
}

// Unwritten bytes come down as they are: whoever compares them sees that they are wrong.
void Executor::run(const Piece& piece, DownloadWork& work) {
  if (work.pending != nullptr) host_.check(*work.pending);
  Problem problem;
  host_.write_as(*piece.operation,
                 [&] { problem = memory_.read({work.target, work.size_bytes}, work.source); });
  finish(piece, problem, {{work.source, work.source + work.size_bytes, kReads}});
}

void Executor::run(const Piece& piece, CopyWork& work) {
  finish(piece, memory_.copy(work.target, work.source, work.size_bytes), copy_footprint(work));
  special_values_.copy(work.target, work.source, work.size_bytes);
}

void Executor::run(const Piece& piece, FillWork& work) {
  finish(piece, memory_.fill(work.target, work.pattern, work.size_bytes),
         {{work.target, work.target + work.size_bytes, kWrites}});
  special_values_.forget(work.target, work.size_bytes);
}

void Executor::run(const Piece& piece, LaunchWork& work) {
  Context& context = piece.context;
  work.request.parameters = work.parameters;
  work.request.is_race_checked = is_race_checked_;
  FootprintObserver footprint;
  std::vector<Observer*> observers = observers_;
  if (is_race_checked_) observers.push_back(&footprint);
  if (is_nan_checked_) work.request.special_values = &special_values_;
  const LaunchResult result = launch(memory_, *work.kernel, work.request, observers);
  for (const Fault& fault : result.faults) faults_.add(fault);
  time_ns_ += result.warp_instructions;
  if (result.status == LaunchStatus::completed) {
    if (is_race_checked_) *piece.operation->sites = footprint.sites();
    return finish(piece, std::nullopt, is_race_checked_ ? footprint.footprint() : Footprint{});
  }
  if (result.status == LaunchStatus::aborted) {
    CPVERIFY_CHECK(!result.faults.empty());
    context.sticky = sticky_error(result.faults.back().kind);
    return;
  }
  // The call's own checks passed, but the machine cannot run it.
  Fault refused;
  refused.device = static_cast<std::uint32_t>(context.device);
  refused.kernel = kernel_info(*work.kernel).name;
  refused.detail = result.detail;
  faults_.add(refused);
  context.sticky = result.status == LaunchStatus::out_of_resources
                       ? CuResult::launch_out_of_resources
                       : CuResult::launch_failed;
}

void Executor::run(const Piece& /*piece*/, WaitWork& /*work*/) {}

void Executor::run(const Piece& /*piece*/, RecordWork& work) {
  *work.time_ns = time_ns_;
}

void Executor::run(const Piece& piece, HostWork& work) {
  host_.write_as(*piece.operation, [&] {
    is_in_host_function_ = true;
    work.function(work.data);
    is_in_host_function_ = false;
  });
  finish(piece, std::nullopt, {});
}

void Executor::run(const Piece& piece, AllocateWork& work) {
  finish(piece, std::nullopt, {{work.address, work.address + work.size_bytes, kWrites}});
}

void Executor::run(const Piece& piece, FreeWork& work) {
  finish(piece, std::nullopt, {{work.address, work.address + work.size_bytes, kWrites}});
  // Twice is refused by the call.
  CPVERIFY_CHECK(memory_.free(work.address));
}

CuResult Executor::check(const HostAccess& access, std::uint64_t address, std::size_t size_bytes) {
  if (size_bytes == 0) return CuResult::success;
  const Allocation* holder = memory_.find(address);
  const bool is_live = holder != nullptr && holder->is_live;
  if (is_live && size_bytes <= holder->base + holder->size_bytes - address) {
    return CuResult::success;
  }
  Fault fault;
  const bool is_freed = holder != nullptr && !holder->is_live;
  fault.kind = is_freed ? FaultKind::use_after_free : access.outside;
  fault.device = static_cast<std::uint32_t>(access.device);
  fault.kernel = access.call;
  fault.address = is_live ? holder->base + holder->size_bytes : address;
  fault.size_bytes = static_cast<std::uint32_t>(
      std::min<std::size_t>(size_bytes, std::numeric_limits<std::uint32_t>::max()));
  if (const Allocation* nearest = memory_.nearest(address)) {
    fault.allocation = nearest->base;
    fault.allocation_bytes = nearest->size_bytes;
    fault.detail =
        fmt::format("{} accesses {} bytes from byte {} of an allocation of {}", access.who,
                    size_bytes, address - nearest->base, nearest->size_bytes);
  }
  faults_.add(fault);
  return CuResult::invalid_value;
}

}  // namespace cpverify::sim
