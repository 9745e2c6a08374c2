// Pinned host memory, and what a pointer is.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/driver_types.hpp"
#include "sim/driver/host_memory.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/machine/global_memory.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

/// What cuPointerGetAttribute knows of an allocation.
struct PointerFacts {
  unsigned memory_type = gpu::kMemoryTypeDevice;
  int ordinal = 0;
  std::uint64_t device_pointer = 0;
  std::byte* host_pointer = nullptr;
  std::uint64_t range_start = 0;
  std::size_t range_bytes = 0;
};

template <class Value>
gpu::CuResult deliver(void* target, const Value& value) {
  std::memcpy(target, &value, sizeof value);
  return gpu::CuResult::success;
}

gpu::CuResult deliver_attribute(void* value, int attribute, const PointerFacts& facts) {
  switch (attribute) {
    case gpu::kPointerAttributeMemoryType:
      return deliver(value, facts.memory_type);
    case gpu::kPointerAttributeDevicePointer:
      return facts.device_pointer == 0 ? gpu::CuResult::invalid_value
                                       : deliver(value, facts.device_pointer);
    case gpu::kPointerAttributeHostPointer:
      return facts.host_pointer == nullptr ? gpu::CuResult::invalid_value
                                           : deliver(value, facts.host_pointer);
    case gpu::kPointerAttributeDeviceOrdinal:
      return deliver(value, facts.ordinal);
    case gpu::kPointerAttributeRangeStart:
      return deliver(value, facts.range_start);
    case gpu::kPointerAttributeRangeSize:
      return deliver(value, facts.range_bytes);
    default:
      return gpu::CuResult::invalid_value;
  }
}

}  // namespace

using gpu::CuDevicePtr;
using gpu::CuResult;

CuResult SimulatedDriver::cuMemAllocHost(void** pointer, std::size_t size_bytes) {
  return cuMemHostAlloc(pointer, size_bytes, 0);
}

// The bytes are those of an allocation that all devices reach. The host writes them unseen, so they
// count as written from the beginning.
CuResult SimulatedDriver::cuMemHostAlloc(void** pointer, std::size_t size_bytes, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  constexpr unsigned kKnown =
      gpu::kMemHostAllocPortable | gpu::kMemHostAllocDeviceMap | gpu::kMemHostAllocWriteCombined;
  if (pointer == nullptr || size_bytes == 0 || (flags & ~kKnown) != 0) {
    return CuResult::invalid_value;
  }
  const std::uint64_t used = memory_.live_bytes(kHostOwner);
  if (used > options_.memory_bytes || size_bytes > options_.memory_bytes - used) {
    return CuResult::out_of_memory;
  }
  PinnedRange range;
  range.address = memory_.allocate(kHostOwner, size_bytes);
  Allocation& allocation = *memory_.find(range.address);
  allocation.bytes.mark_written(0, size_bytes);
  range.begin = allocation.bytes.data();
  range.size_bytes = size_bytes;
  range.flags = flags;
  range.context = live_context(current_);
  CPVERIFY_CHECK(host_.add(range));
  *pointer = range.begin;
  return CuResult::success;
}

CuResult SimulatedDriver::cuMemFreeHost(void* pointer) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const PinnedRange* range = host_.find(pointer, 1);
  if (range == nullptr || range->begin != pointer || range->is_registered) {
    return CuResult::invalid_value;
  }
  streams_.drain_all();
  executor_.forget(range->address, range->size_bytes);
  CPVERIFY_CHECK(memory_.free(range->address));
  host_.remove(*range);
  return CuResult::success;
}

CuResult SimulatedDriver::cuMemHostRegister(void* pointer, std::size_t size_bytes, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  constexpr unsigned kKnown = gpu::kMemHostAllocPortable | gpu::kMemHostAllocDeviceMap;
  if (pointer == nullptr || size_bytes == 0 || (flags & ~kKnown) != 0) {
    return CuResult::invalid_value;
  }
  PinnedRange range;
  range.begin = static_cast<std::byte*>(pointer);
  range.size_bytes = size_bytes;
  range.is_registered = true;
  range.flags = flags;
  range.context = live_context(current_);
  return host_.add(range) ? CuResult::success : CuResult::host_memory_already_registered;
}

CuResult SimulatedDriver::cuMemHostUnregister(void* pointer) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (pointer == nullptr) return CuResult::invalid_value;
  const PinnedRange* range = host_.find(pointer, 1);
  if (range == nullptr || range->begin != pointer || !range->is_registered) {
    return CuResult::host_memory_not_registered;
  }
  streams_.drain_all();
  host_.remove(*range);
  return CuResult::success;
}

CuResult SimulatedDriver::cuMemHostGetDevicePointer(CuDevicePtr* device_pointer, void* pointer,
                                                    unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const PinnedRange* range = host_.find(pointer, 1);
  if (device_pointer == nullptr || range == nullptr || flags != 0) return CuResult::invalid_value;
  // Devices reach the machine's own memory only.
  if (range->is_registered) return CuResult::not_supported;
  const auto offset = static_cast<std::byte*>(pointer) - range->begin;
  *device_pointer = range->address + static_cast<std::uint64_t>(offset);
  return CuResult::success;
}

CuResult SimulatedDriver::cuPointerGetAttribute(void* value, int attribute, CuDevicePtr pointer) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (value == nullptr) return CuResult::invalid_value;
  PointerFacts facts;
  const PinnedRange* range = host_.find_address(pointer);
  if (range == nullptr) range = host_.find(reinterpret_cast<const void*>(pointer), 1);
  if (range != nullptr) {
    const bool is_device_address =
        range->address != 0 && pointer - range->address < range->size_bytes;
    const std::uint64_t offset = is_device_address
                                     ? pointer - range->address
                                     : pointer - reinterpret_cast<std::uintptr_t>(range->begin);
    facts.memory_type = gpu::kMemoryTypeHost;
    facts.ordinal = range->context->device;
    facts.device_pointer = range->address == 0 ? 0 : range->address + offset;
    facts.host_pointer = range->begin + offset;
    facts.range_start = reinterpret_cast<std::uintptr_t>(range->begin);
    facts.range_bytes = range->size_bytes;
    return deliver_attribute(value, attribute, facts);
  }
  const Allocation* allocation = memory_.find(pointer);
  if (allocation == nullptr || !allocation->is_live) return CuResult::invalid_value;
  facts.ordinal = static_cast<int>(allocation->device);
  facts.device_pointer = pointer;
  facts.range_start = allocation->base;
  facts.range_bytes = allocation->size_bytes;
  return deliver_attribute(value, attribute, facts);
}

}  // namespace cpverify::sim
