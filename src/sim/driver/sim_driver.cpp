#include "sim/driver/sim_driver.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "gpu/driver_api.hpp"
#include "sim/driver/executor.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/host_memory.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

/// Compute capability that the machine models.
constexpr int kComputeMajor = 9;
constexpr int kComputeMinor = 0;

}  // namespace

using gpu::CuContext;
using gpu::CuDevice;
using gpu::CuResult;

SimulatedDriver::SimulatedDriver(const SimOptions& options)
    : options_{options},
      executor_{
          Executor::Parts{memory_, host_, faults_},
          options.has_coverage ? std::vector<Observer*>{&coverage_} : std::vector<Observer*>{},
          options},
      streams_{[this](Context& context, WorkItem& item) { executor_.execute(context, item); },
               options.schedule} {
  CPVERIFY_CHECK(options.device_count >= 0);
  for (CuDevice device = 0; device < options.device_count; ++device) {
    auto context = std::make_unique<Context>();
    context->device = device;
    streams_.add_default(*context);
    context_of_device_.push_back(contexts_.insert(std::move(context)));
  }
}

Context* SimulatedDriver::live_context(CuContext handle) const noexcept {
  Context* context = contexts_.find(handle);
  return context != nullptr && context->references > 0 ? context : nullptr;
}

CuResult SimulatedDriver::current_status() const noexcept {
  if (!is_initialised_) return CuResult::not_initialized;
  if (executor_.is_in_host_function()) return CuResult::not_permitted;
  const Context* context = live_context(current_);
  return context == nullptr ? CuResult::invalid_context : context->sticky;
}

CuResult SimulatedDriver::cuInit(unsigned flags) {
  if (flags != 0) return CuResult::invalid_value;
  is_initialised_ = true;
  return CuResult::success;
}

CuResult SimulatedDriver::cuDeviceGetCount(int* count) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (count == nullptr) return CuResult::invalid_value;
  *count = options_.device_count;
  return CuResult::success;
}

CuResult SimulatedDriver::cuDeviceGet(CuDevice* device, int ordinal) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (device == nullptr) return CuResult::invalid_value;
  if (ordinal < 0 || ordinal >= options_.device_count) return CuResult::invalid_device;
  *device = ordinal;
  return CuResult::success;
}

CuResult SimulatedDriver::cuDeviceGetAttribute(int* value, int attribute, CuDevice device) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (device < 0 || device >= options_.device_count) return CuResult::invalid_device;
  const bool is_major = attribute == gpu::kDeviceAttributeComputeMajor;
  if (value == nullptr || (!is_major && attribute != gpu::kDeviceAttributeComputeMinor)) {
    return CuResult::invalid_value;
  }
  *value = is_major ? kComputeMajor : kComputeMinor;
  return CuResult::success;
}

CuResult SimulatedDriver::cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (context == nullptr) return CuResult::invalid_value;
  if (device < 0 || device >= options_.device_count) return CuResult::invalid_device;
  *context = context_of_device_[static_cast<std::size_t>(device)];
  ++contexts_.find(*context)->references;
  return CuResult::success;
}

CuResult SimulatedDriver::cuDevicePrimaryCtxRelease(CuDevice device) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (device < 0 || device >= options_.device_count) return CuResult::invalid_device;
  Context* context = contexts_.find(context_of_device_[static_cast<std::size_t>(device)]);
  if (context->references == 0) return CuResult::invalid_context;
  if (--context->references == 0) destroy(*context);
  return CuResult::success;
}

void SimulatedDriver::destroy(Context& context) {
  // Work of other devices may still use this one's memory.
  streams_.drain_all();
  streams_.remove_all(context);
  execs_.erase_if([&](const GraphExec& exec) { return exec.context == &context; });
  events_.erase_if([&](const DriverEvent& event) { return event.context == &context; });
  functions_.erase_if([&](const DriverFunction& function) { return function.context == &context; });
  modules_.erase_if([&](const DriverModule& module) { return module.context == &context; });
  std::erase_if(allocations_, [&](const auto& entry) {
    return entry.second == &context && memory_.free(entry.first);
  });
  host_.remove_if([&](const PinnedRange& range) {
    return range.context == &context && (range.address == 0 || memory_.free(range.address));
  });
  const auto device = static_cast<std::uint32_t>(context.device);
  for (CuDevice other = 0; other < options_.device_count; ++other) {
    const auto peer = static_cast<std::uint32_t>(other);
    static_cast<void>(memory_.set_reachable(device, peer, false));
    static_cast<void>(memory_.set_reachable(peer, device, false));
  }
  context.sticky = CuResult::success;
}

CuResult SimulatedDriver::cuCtxSetCurrent(CuContext context) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (context != nullptr && live_context(context) == nullptr) return CuResult::invalid_context;
  current_ = context;
  return CuResult::success;
}

CuResult SimulatedDriver::cuCtxGetCurrent(CuContext* context) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (context == nullptr) return CuResult::invalid_value;
  *context = live_context(current_) == nullptr ? nullptr : current_;
  return CuResult::success;
}

CuResult SimulatedDriver::cuCtxSynchronize() {
  CuResult status = current_status();
  if (status != CuResult::success) return status;
  const Context& context = *live_context(current_);
  status = refuse_captures_of(context);
  if (status != CuResult::success) return status;
  streams_.synchronise(context);
  return context.sticky;
}

CuResult SimulatedDriver::cuDeviceCanAccessPeer(int* can_access, CuDevice device, CuDevice peer) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (can_access == nullptr) return CuResult::invalid_value;
  const auto is_device = [this](CuDevice ordinal) {
    return ordinal >= 0 && ordinal < options_.device_count;
  };
  if (!is_device(device) || !is_device(peer)) return CuResult::invalid_device;
  *can_access = device != peer ? 1 : 0;
  return CuResult::success;
}

CuResult SimulatedDriver::cuCtxEnablePeerAccess(CuContext peer, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const Context* owner = live_context(peer);
  if (owner == nullptr) return CuResult::invalid_context;
  if (flags != 0) return CuResult::invalid_value;
  const Context* context = live_context(current_);
  if (owner == context) return CuResult::peer_access_unsupported;
  return memory_.set_reachable(static_cast<std::uint32_t>(context->device),
                               static_cast<std::uint32_t>(owner->device), true)
             ? CuResult::success
             : CuResult::peer_access_already_enabled;
}

CuResult SimulatedDriver::cuCtxDisablePeerAccess(CuContext peer) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const Context* owner = live_context(peer);
  if (owner == nullptr) return CuResult::invalid_context;
  const Context& context = *live_context(current_);
  streams_.synchronise(context);  // Queued kernels still have the access that they were promised.
  return memory_.set_reachable(static_cast<std::uint32_t>(context.device),
                               static_cast<std::uint32_t>(owner->device), false)
             ? CuResult::success
             : CuResult::peer_access_not_enabled;
}

std::unique_ptr<SimDriver> make_sim_driver(const SimOptions& options) {
  return std::make_unique<SimulatedDriver>(options);
}

}  // namespace cpverify::sim
