#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "gpu/driver_types.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"
#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {

using gpu::CuContext;
using gpu::CuDevicePtr;
using gpu::CuResult;
using gpu::CuStream;

CuResult SimulatedDriver::allocate(CuDevicePtr* pointer, std::size_t size_bytes) {
  if (pointer == nullptr || size_bytes == 0) return CuResult::invalid_value;
  const Context* context = live_context(current_);
  const auto device = static_cast<std::uint32_t>(context->device);
  const std::uint64_t used = memory_.live_bytes(device);
  if (used > options_.memory_bytes || size_bytes > options_.memory_bytes - used) {
    return CuResult::out_of_memory;
  }
  *pointer = memory_.allocate(device, size_bytes);
  allocations_.emplace(*pointer, context);
  return CuResult::success;
}

CuResult SimulatedDriver::cuMemAlloc(CuDevicePtr* pointer, std::size_t size_bytes) {
  CuResult status = current_status();
  if (status == CuResult::success) status = refuse_captures_of(*live_context(current_));
  return status == CuResult::success ? allocate(pointer, size_bytes) : status;
}

// Waits for all work first, as cuMemFree does, so that no queued work loses its memory. The host
// must not rely on that, and does not count as having waited.
CuResult SimulatedDriver::cuMemFree(CuDevicePtr pointer) {
  CuResult status = current_status();
  if (status == CuResult::success) status = refuse_captures_of(*live_context(current_));
  if (status != CuResult::success) return status;
  if (pointer == 0) return CuResult::success;
  if (allocations_.find(pointer) == allocations_.end()) return CuResult::invalid_value;
  streams_.drain_all();
  executor_.forget(pointer, memory_.find(pointer)->size_bytes);
  // A free in stream order may have been among the work.
  static_cast<void>(memory_.free(pointer));
  allocations_.erase(pointer);
  return CuResult::success;
}

CuResult SimulatedDriver::cuMemAllocAsync(CuDevicePtr* pointer, std::size_t size_bytes,
                                          CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (queue->capture != nullptr) return CuResult::not_supported;  // Memory nodes of graphs.
  status = refuse_implicit(*queue);
  if (status == CuResult::success) status = allocate(pointer, size_bytes);
  if (status != CuResult::success) return status;
  return submit(*queue,
                make_task("cuMemAllocAsync", *queue->context, AllocateWork{*pointer, size_bytes}));
}

CuResult SimulatedDriver::cuMemFreeAsync(CuDevicePtr pointer, CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (queue->capture != nullptr) return CuResult::not_supported;
  if (pointer == 0) return CuResult::success;
  status = refuse_implicit(*queue);
  if (status != CuResult::success) return status;
  if (allocations_.erase(pointer) == 0) return CuResult::invalid_value;
  return submit(*queue, make_task("cuMemFreeAsync", *queue->context,
                                  FreeWork{pointer, memory_.find(pointer)->size_bytes}));
}

CuResult SimulatedDriver::cuMemcpyHtoDAsync(CuDevicePtr target, const void* source,
                                            std::size_t size_bytes, CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (source == nullptr && size_bytes > 0) return CuResult::invalid_value;
  status =
      executor_.check({"cuMemcpyHtoDAsync", queue->context->device, FaultKind::out_of_bounds_write},
                      target, size_bytes);
  if (status != CuResult::success || size_bytes == 0) return status;
  const auto* bytes = static_cast<const std::byte*>(source);
  UploadWork work;
  work.target = target;
  work.size_bytes = size_bytes;
  // A graph reads its source when it runs, as the copy from pinned memory does.
  const bool is_staged = queue->capture == nullptr && host_.find(source, size_bytes) == nullptr;
  if (is_staged) {
    work.bytes.assign(bytes, bytes + size_bytes);
  } else {
    work.source = bytes;
  }
  return submit(*queue, make_task("cuMemcpyHtoDAsync", *queue->context, std::move(work)));
}

CuResult SimulatedDriver::cuMemcpyDtoHAsync(void* target, CuDevicePtr source,
                                            std::size_t size_bytes, CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (target == nullptr && size_bytes > 0) return CuResult::invalid_value;
  status =
      executor_.check({"cuMemcpyDtoHAsync", queue->context->device, FaultKind::out_of_bounds_read},
                      source, size_bytes);
  if (status != CuResult::success || size_bytes == 0) return status;
  DownloadWork work{static_cast<std::byte*>(target), source, size_bytes, nullptr};
  status = submit(*queue, make_task("cuMemcpyDtoHAsync", *queue->context, std::move(work)));
  const bool is_pageable = host_.find(target, size_bytes) == nullptr;
  if (status != CuResult::success || queue->capture != nullptr || !is_pageable) return status;
  // Pageable memory: the call returns when the bytes are there.
  streams_.synchronise(queue->marker());
  return queue->context->sticky;
}

CuResult SimulatedDriver::enqueue_copy(const char* call, const CopyWork& work,
                                       const Context& target, const Context& source,
                                       Stream& stream) {
  NodeTask task = make_task(call, *stream.context, work);
  const std::string who = part_of_.empty() ? "a host call" : task.name.description;
  // Both sides are checked before either is refused: each is a finding of its own.
  const CuResult write =
      executor_.check({task.name.call, target.device, FaultKind::out_of_bounds_write, who},
                      work.target, work.size_bytes);
  const CuResult read =
      executor_.check({task.name.call, source.device, FaultKind::out_of_bounds_read, who},
                      work.source, work.size_bytes);
  if (write != CuResult::success || read != CuResult::success) return CuResult::invalid_value;
  return work.size_bytes == 0 ? CuResult::success : submit(stream, std::move(task));
}

CuResult SimulatedDriver::cuMemcpyDtoDAsync(CuDevicePtr target, CuDevicePtr source,
                                            std::size_t size_bytes, CuStream stream) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  return enqueue_copy("cuMemcpyDtoDAsync", {target, source, size_bytes}, *queue->context,
                      *queue->context, *queue);
}

// NOLINTNEXTLINE(readability-function-size): the public signature.
CuResult SimulatedDriver::cuMemcpyPeerAsync(CuDevicePtr target, CuContext target_context,
                                            CuDevicePtr source, CuContext source_context,
                                            std::size_t size_bytes, CuStream stream) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  const Context* to = live_context(target_context);
  const Context* from = live_context(source_context);
  if (to == nullptr || from == nullptr) return CuResult::invalid_context;
  const auto is_elsewhere = [this](CuDevicePtr address, const Context& context) {
    const Allocation* holder = memory_.find(address);
    return holder != nullptr && holder->device != static_cast<std::uint32_t>(context.device);
  };
  if (size_bytes > 0 && (is_elsewhere(target, *to) || is_elsewhere(source, *from))) {
    return CuResult::invalid_value;
  }
  return enqueue_copy("cuMemcpyPeerAsync", {target, source, size_bytes}, *to, *from, *queue);
}

CuResult SimulatedDriver::enqueue_fill(const char* call, FillWork work, CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (work.target % work.pattern.size() != 0) return CuResult::invalid_value;
  status = executor_.check({call, queue->context->device, FaultKind::out_of_bounds_write},
                           work.target, work.size_bytes);
  if (status != CuResult::success || work.size_bytes == 0) return status;
  return submit(*queue, make_task(call, *queue->context, std::move(work)));
}

CuResult SimulatedDriver::cuMemsetD8Async(CuDevicePtr target, unsigned char value,
                                          std::size_t count, CuStream stream) {
  return enqueue_fill("cuMemsetD8Async", {target, {std::byte{value}}, count}, stream);
}

CuResult SimulatedDriver::cuMemsetD16Async(CuDevicePtr target, unsigned short value,
                                           std::size_t count, CuStream stream) {
  if (count > std::numeric_limits<std::size_t>::max() / sizeof value) {
    return CuResult::invalid_value;
  }
  std::vector<std::byte> pattern(sizeof value);
  std::memcpy(pattern.data(), &value, sizeof value);
  return enqueue_fill("cuMemsetD16Async", {target, std::move(pattern), count * sizeof value},
                      stream);
}

CuResult SimulatedDriver::cuMemsetD32Async(CuDevicePtr target, unsigned value, std::size_t count,
                                           CuStream stream) {
  if (count > std::numeric_limits<std::size_t>::max() / sizeof value) {
    return CuResult::invalid_value;
  }
  std::vector<std::byte> pattern(sizeof value);
  std::memcpy(pattern.data(), &value, sizeof value);
  return enqueue_fill("cuMemsetD32Async", {target, std::move(pattern), count * sizeof value},
                      stream);
}

}  // namespace cpverify::sim
