#include <memory>
#include <utility>

#include "gpu/driver_api.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"

namespace cpverify::sim {

using gpu::CuEvent;
using gpu::CuResult;
using gpu::CuStream;

CuResult SimulatedDriver::cuStreamCreate(CuStream* stream, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (stream == nullptr || flags > gpu::kStreamNonBlocking) return CuResult::invalid_value;
  *stream = streams_.add(*live_context(current_), flags != gpu::kStreamNonBlocking);
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamDestroy(CuStream stream) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (queue->is_default) return CuResult::invalid_handle;
  streams_.remove(stream);
  return CuResult::success;
}

CuResult SimulatedDriver::cuStreamSynchronize(CuStream stream) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  // The default stream waits for the blocking streams even when it has no work of its own.
  if (queue->is_default) streams_.push(*queue, WaitWork{});
  streams_.drain(*queue);
  return queue->context->sticky;
}

CuResult SimulatedDriver::cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  const DriverEvent* awaited = events_.find(event);
  if (awaited == nullptr) return CuResult::invalid_handle;
  if (flags != 0) return CuResult::invalid_value;
  streams_.push(*queue, WaitWork{awaited->marker});
  return CuResult::success;
}

CuResult SimulatedDriver::cuEventCreate(CuEvent* event, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (event == nullptr || (flags & ~gpu::kEventDisableTiming) != 0) return CuResult::invalid_value;
  auto created = std::make_unique<DriverEvent>();
  created->context = live_context(current_);
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
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  DriverEvent* recorded = events_.find(event);
  if (recorded == nullptr || recorded->context != queue->context) return CuResult::invalid_handle;
  if (queue->is_default) streams_.push(*queue, WaitWork{});  // As in cuStreamSynchronize.
  recorded->marker = queue->marker();
  return CuResult::success;
}

}  // namespace cpverify::sim
