#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "gpu/driver_types.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/operation.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"

namespace cpverify::sim {
namespace {

/// Of cuCtxGetStreamPriorityRange: lower numbers are more urgent. The machine ignores them, as a
/// GPU that is idle does.
constexpr int kLeastPriority = 0;
constexpr int kGreatestPriority = -5;

}  // namespace

using gpu::CuContext;
using gpu::CuEvent;
using gpu::CuResult;
using gpu::CuStream;

CuResult SimulatedDriver::find_stream(CuStream handle, Stream*& target) const noexcept {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  target = streams_.find(handle, *live_context(current_));
  return target == nullptr ? CuResult::invalid_handle : target->context->sticky;
}

CuResult SimulatedDriver::find_event(CuEvent handle, DriverEvent*& target) const noexcept {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  target = events_.find(handle);
  return target == nullptr ? CuResult::invalid_handle : CuResult::success;
}

void SimulatedDriver::name_work(const char* call, std::uint32_t rank) {
  part_of_ = call == nullptr ? "" : call;
  part_of_rank_ = rank;
}

NodeTask SimulatedDriver::make_task(const char* call, Context& context, Work work) const {
  NodeTask task;
  task.body = std::move(work);
  task.context = &context;
  task.name.call = part_of_.empty() ? call : part_of_;
  task.name.description =
      part_of_.empty() ? call : fmt::format("{} of rank {}", part_of_, part_of_rank_);
  return task;
}

CuResult SimulatedDriver::submit(Stream& stream, NodeTask task) {
  if (stream.capture != nullptr) {
    if (stream.capture->is_invalid) return CuResult::stream_capture_invalidated;
    stream.frontier = {add_node(stream.capture->graph, std::move(task), stream.frontier)};
    return CuResult::success;
  }
  const CuResult status = refuse_implicit(stream);
  if (status != CuResult::success) return status;
  enqueue(stream, std::get<Work>(std::move(task.body)), task.name);
  return CuResult::success;
}

void SimulatedDriver::enqueue(Stream& stream, Work work, const WorkName& name) {
  std::shared_ptr<PendingCopy> pending;
  if (auto* upload = std::get_if<UploadWork>(&work)) {
    if (upload->source != nullptr && host_.find(upload->source, upload->size_bytes) != nullptr) {
      upload->pending = pending = host_.begin_upload(upload->source, upload->size_bytes);
    }
  } else if (auto* download = std::get_if<DownloadWork>(&work)) {
    if (host_.find(download->target, download->size_bytes) != nullptr) {
      download->pending = pending = host_.begin_download(download->target, download->size_bytes);
    }
  } else if (auto* host = std::get_if<HostWork>(&work)) {
    host->token = host_.begin_host_function();
  }
  OperationRef operation = streams_.push(stream, std::move(work), name);
  if (pending != nullptr) pending->operation = std::move(operation);
}

CuResult SimulatedDriver::cuStreamCreate(CuStream* stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, kLeastPriority);
}

CuResult SimulatedDriver::cuStreamCreateWithPriority(CuStream* stream, unsigned flags,
                                                     int priority) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (stream == nullptr || flags > gpu::kStreamNonBlocking) return CuResult::invalid_value;
  *stream = streams_.add(*live_context(current_), flags != gpu::kStreamNonBlocking,
                         std::clamp(priority, kGreatestPriority, kLeastPriority));
  return CuResult::success;
}

CuResult SimulatedDriver::cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (least != nullptr) *least = kLeastPriority;
  if (greatest != nullptr) *greatest = kGreatestPriority;
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamGetPriority(CuStream stream, int* priority) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (priority == nullptr) return CuResult::invalid_value;
  *priority = queue->priority;
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamGetFlags(CuStream stream, unsigned* flags) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (flags == nullptr) return CuResult::invalid_value;
  *flags = queue->is_blocking ? 0 : gpu::kStreamNonBlocking;
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamGetCtx(CuStream stream, CuContext* context) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (context == nullptr) return CuResult::invalid_value;
  *context = context_of_device_[static_cast<std::size_t>(queue->context->device)];
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamDestroy(CuStream stream) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  const auto number = reinterpret_cast<std::uintptr_t>(stream);
  if (number <= gpu::kStreamPerThread) return CuResult::invalid_handle;
  if (queue->capture != nullptr) queue->capture->is_invalid = true;
  streams_.remove(stream);
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamSynchronize(CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  status = refuse_capture(*queue);
  if (status == CuResult::success) status = refuse_implicit(*queue);
  if (status != CuResult::success) return status;
  streams_.synchronise(streams_.mark(*queue));
  return queue->context->sticky;
}

CuResult SimulatedDriver::cuStreamQuery(CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  status = refuse_capture(*queue);
  if (status == CuResult::success) status = refuse_implicit(*queue);
  if (status != CuResult::success) return status;
  const Marker marker = streams_.mark(*queue);
  if (marker.is_reached()) {
    streams_.learn(marker);
    return CuResult::success;
  }
  streams_.step();
  return CuResult::not_ready;
}

CuResult SimulatedDriver::cuLaunchHostFunc(CuStream stream, gpu::CuHostFunction function,
                                           void* data) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (function == nullptr) return CuResult::invalid_value;
  return submit(*queue,
                make_task("cuLaunchHostFunc", *queue->context, HostWork{function, data, nullptr}));
}

CuResult SimulatedDriver::cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  const DriverEvent* awaited = events_.find(event);
  if (awaited == nullptr) return CuResult::invalid_handle;
  if (flags != 0) return CuResult::invalid_value;
  if (queue->capture != nullptr || awaited->capture != nullptr) {
    return wait_in_capture(*queue, *awaited);
  }
  status = refuse_implicit(*queue);
  if (status == CuResult::success) streams_.wait(*queue, awaited->marker);
  return status;
}

CuResult SimulatedDriver::cuEventCreate(CuEvent* event, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  constexpr unsigned kKnown = gpu::kEventDisableTiming | gpu::kEventBlockingSync;
  if (event == nullptr || (flags & ~kKnown) != 0) return CuResult::invalid_value;
  auto created = std::make_unique<DriverEvent>();
  created->context = live_context(current_);
  created->has_timing = (flags & gpu::kEventDisableTiming) == 0;
  *event = events_.insert(std::move(created));
  return CuResult::success;
}

CuResult SimulatedDriver::cuEventDestroy(CuEvent event) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  return events_.erase(event) ? CuResult::success : CuResult::invalid_handle;
}

CuResult SimulatedDriver::cuEventRecord(CuEvent event, CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  DriverEvent* recorded = events_.find(event);
  if (recorded == nullptr || recorded->context != queue->context) return CuResult::invalid_handle;
  if (queue->capture != nullptr) {
    if (queue->capture->is_invalid) return CuResult::stream_capture_invalidated;
    recorded->capture = queue->capture;
    recorded->frontier = queue->frontier;
    return CuResult::success;
  }
  status = refuse_implicit(*queue);
  if (status != CuResult::success) return status;
  recorded->capture.reset();
  recorded->time_ns = std::make_shared<std::uint64_t>(0);
  streams_.push(*queue, RecordWork{recorded->time_ns}, {});
  recorded->marker = queue->marker();
  return CuResult::success;
}

CuResult SimulatedDriver::cuEventQuery(CuEvent event) {
  DriverEvent* found = nullptr;
  const CuResult status = find_event(event, found);
  if (status != CuResult::success) return status;
  if (found->capture != nullptr) return CuResult::captured_event;
  if (found->marker.is_reached()) {
    streams_.learn(found->marker);
    return CuResult::success;
  }
  streams_.step();
  return CuResult::not_ready;
}

CuResult SimulatedDriver::cuEventSynchronize(CuEvent event) {
  DriverEvent* found = nullptr;
  const CuResult status = find_event(event, found);
  if (status != CuResult::success) return status;
  if (found->capture != nullptr) return CuResult::captured_event;
  streams_.synchronise(found->marker);
  return found->context->sticky;
}

CuResult SimulatedDriver::cuEventElapsedTime(float* milliseconds, CuEvent start, CuEvent end) {
  DriverEvent* first = nullptr;
  DriverEvent* last = nullptr;
  CuResult status = find_event(start, first);
  if (status == CuResult::success) status = find_event(end, last);
  if (status != CuResult::success) return status;
  if (milliseconds == nullptr) return CuResult::invalid_value;
  const auto is_timed = [](const DriverEvent& event) {
    return event.has_timing && event.time_ns != nullptr;
  };
  if (first->capture != nullptr || last->capture != nullptr) return CuResult::captured_event;
  if (!is_timed(*first) || !is_timed(*last) || first->context != last->context) {
    return CuResult::invalid_handle;
  }
  if (!first->marker.is_reached() || !last->marker.is_reached()) return CuResult::not_ready;
  constexpr double kNsPerMs = 1e6;
  const double elapsed = static_cast<double>(*last->time_ns) - static_cast<double>(*first->time_ns);
  *milliseconds = static_cast<float>(elapsed / kNsPerMs);
  return CuResult::success;
}

}  // namespace cpverify::sim
