// Stream capture: calls on a captured stream become nodes of a graph.
// Source: CUDA Driver API manual, "Stream Management", and CUDA C++ Programming Guide, "Creating a
// Graph Using Stream Capture".

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "gpu/driver_types.hpp"
#include "sim/driver/capture.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"

namespace cpverify::sim {

using gpu::CuCaptureMode;
using gpu::CuCaptureStatus;
using gpu::CuGraph;
using gpu::CuGraphNode;
using gpu::CuResult;
using gpu::CuStream;

CuResult SimulatedDriver::refuse_capture(const Stream& stream) {
  if (stream.capture == nullptr) return CuResult::success;
  stream.capture->is_invalid = true;
  return CuResult::stream_capture_unsupported;
}

// Mode relaxed allows what waits for, or changes, more than the captured streams.
CuResult SimulatedDriver::refuse_captures_of(const Context& context) {
  CuResult result = CuResult::success;
  streams_.for_each([&](const Stream& stream) {
    const bool is_strict =
        stream.capture != nullptr && stream.capture->mode != CuCaptureMode::relaxed;
    if (!is_strict || stream.context != &context) return;
    stream.capture->is_invalid = true;
    result = CuResult::stream_capture_unsupported;
  });
  return result;
}

CuResult SimulatedDriver::refuse_implicit(const Stream& stream) {
  if (!stream.is_default) return CuResult::success;
  CuResult result = CuResult::success;
  streams_.for_each([&](const Stream& other) {
    if (other.capture == nullptr || !other.is_blocking || other.context != stream.context) return;
    other.capture->is_invalid = true;
    result = CuResult::stream_capture_implicit;
  });
  return result;
}

CuResult SimulatedDriver::cuStreamBeginCapture(CuStream stream, CuCaptureMode mode) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (mode < CuCaptureMode::global || mode > CuCaptureMode::relaxed) return CuResult::invalid_value;
  if (queue->is_default) return CuResult::stream_capture_unsupported;
  if (queue->capture != nullptr) return CuResult::illegal_state;
  auto graph = std::make_unique<Graph>();
  graph->context = queue->context;
  auto capture = std::make_shared<Capture>();
  capture->graph = graphs_.insert(std::move(graph));
  capture->origin = queue;
  capture->mode = mode;
  capture->id = ++captures_made_;
  queue->capture = std::move(capture);
  queue->frontier.clear();
  return CuResult::success;
}

// A stream joins a capture by waiting for one of its events. Its own work before does not count.
CuResult SimulatedDriver::wait_in_capture(Stream& stream, const DriverEvent& event) {
  if (stream.capture != nullptr && stream.capture->is_invalid) {
    return CuResult::stream_capture_invalidated;
  }
  if (event.capture == nullptr) {
    // Work that was enqueued outside would have to come before work in the graph.
    if (event.marker.executed == nullptr) return CuResult::success;
    stream.capture->is_invalid = true;
    return CuResult::stream_capture_isolation;
  }
  if (event.capture->has_ended) return CuResult::captured_event;
  if (event.capture->is_invalid) return CuResult::stream_capture_invalidated;
  if (stream.capture != nullptr && stream.capture != event.capture) {
    stream.capture->is_invalid = true;
    event.capture->is_invalid = true;
    return CuResult::stream_capture_merge;
  }
  if (stream.is_default) {
    event.capture->is_invalid = true;
    return CuResult::stream_capture_implicit;
  }
  stream.capture = event.capture;
  for (const CuGraphNode node : event.frontier) {
    if (std::find(stream.frontier.begin(), stream.frontier.end(), node) == stream.frontier.end()) {
      stream.frontier.push_back(node);
    }
  }
  return CuResult::success;
}

// Every last node must be among those that the origin's next node would come after.
bool SimulatedDriver::has_unjoined(const Capture& capture, const Stream& origin) const {
  const Graph& graph = *graphs_.find(capture.graph);
  std::set<CuGraphNode> last{graph.nodes.begin(), graph.nodes.end()};
  for (const CuGraphNode node : graph.nodes) {
    for (const CuGraphNode before : nodes_.find(node)->after) last.erase(before);
  }
  for (const CuGraphNode node : origin.frontier) last.erase(node);
  return !last.empty();
}

CuResult SimulatedDriver::cuStreamEndCapture(CuStream stream, CuGraph* graph) {
  Stream* queue = nullptr;
  const CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  if (graph == nullptr) return CuResult::invalid_value;
  *graph = nullptr;
  if (queue->capture == nullptr) return CuResult::illegal_state;
  const std::shared_ptr<Capture> capture = queue->capture;
  if (capture->origin != queue) {
    capture->is_invalid = true;
    return CuResult::stream_capture_unmatched;
  }
  CuResult result = CuResult::success;
  if (capture->is_invalid) {
    result = CuResult::stream_capture_invalidated;
  } else if (has_unjoined(*capture, *queue)) {
    result = CuResult::stream_capture_unjoined;
  }
  capture->has_ended = true;
  streams_.for_each([&capture](Stream& member) {
    if (member.capture != capture) return;
    member.capture.reset();
    member.frontier.clear();
  });
  if (result == CuResult::success) {
    *graph = capture->graph;
  } else {
    static_cast<void>(cuGraphDestroy(capture->graph));
  }
  return result;
}

CuResult SimulatedDriver::cuStreamIsCapturing(CuStream stream, CuCaptureStatus* status) {
  return cuStreamGetCaptureInfo(stream, status, nullptr);
}

CuResult SimulatedDriver::cuStreamGetCaptureInfo(CuStream stream, CuCaptureStatus* status,
                                                 std::uint64_t* id) {
  Stream* queue = nullptr;
  const CuResult found = find_stream(stream, queue);
  if (found != CuResult::success) return found;
  if (status == nullptr) return CuResult::invalid_value;
  const CuResult implicit = refuse_implicit(*queue);
  if (implicit != CuResult::success) return implicit;
  if (queue->capture == nullptr) {
    *status = CuCaptureStatus::none;
    return CuResult::success;
  }
  *status = queue->capture->is_invalid ? CuCaptureStatus::invalidated : CuCaptureStatus::active;
  if (id != nullptr) *id = queue->capture->id;
  return CuResult::success;
}

}  // namespace cpverify::sim
