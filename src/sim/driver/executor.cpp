#include "sim/driver/executor.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <variant>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "sim/driver/streams.hpp"
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
      return CuResult::launch_timeout;
    case FaultKind::uninitialised_read:
    case FaultKind::race:
    case FaultKind::illegal_instruction:
    case FaultKind::mbarrier_misuse:
    case FaultKind::unfinished_copy:
      return CuResult::launch_failed;
  }
  return CuResult::launch_failed;
}

/// Ranges were checked by the call, and cuMemFree waits for the work before it.
bool is_harmless(const std::optional<MemoryProblem>& problem) noexcept {
  return !problem || problem->kind == FaultKind::uninitialised_read;
}

}  // namespace

void Executor::execute(Context& context, Work& work) {
  if (context.sticky != CuResult::success) return;
  std::visit([this, &context](auto& item) { run(context, item); }, work);
}

void Executor::run(Context& /*context*/, UploadWork& work) {
  CPVERIFY_CHECK(is_harmless(memory_.write(work.target, work.bytes)));
}

// Unwritten bytes come down as they are: whoever compares them sees that they are wrong.
void Executor::run(Context& /*context*/, DownloadWork& work) {
  const std::span<std::byte> target{static_cast<std::byte*>(work.target), work.size_bytes};
  CPVERIFY_CHECK(is_harmless(memory_.read(target, work.source)));
}

void Executor::run(Context& /*context*/, CopyWork& work) {
  CPVERIFY_CHECK(is_harmless(memory_.copy(work.target, work.source, work.size_bytes)));
}

void Executor::run(Context& /*context*/, FillWork& work) {
  CPVERIFY_CHECK(is_harmless(memory_.fill(work.target, work.pattern, work.size_bytes)));
}

void Executor::run(Context& context, LaunchWork& work) {
  work.request.parameters = work.parameters;
  work.request.is_race_checked = is_race_checked_;
  const LaunchResult result = launch(memory_, *work.kernel, work.request, observers_);
  for (const Fault& fault : result.faults) faults_.add(fault);
  if (result.status == LaunchStatus::completed) return;
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

void Executor::run(Context& /*context*/, WaitWork& /*work*/) {}

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
    fault.detail = fmt::format("a host call accesses {} bytes from byte {} of an allocation of {}",
                               size_bytes, address - nearest->base, nearest->size_bytes);
  }
  faults_.add(fault);
  return CuResult::invalid_value;
}

}  // namespace cpverify::sim
