// Graphs: made by capture or node by node, instantiated, launched as often as wanted.
// Source: CUDA Driver API manual, "Graph Management".

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "gpu/driver_types.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"

namespace cpverify::sim {

using gpu::CuEvent;
using gpu::CuGraph;
using gpu::CuGraphExec;
using gpu::CuGraphNode;
using gpu::CuResult;
using gpu::CuStream;

CuResult SimulatedDriver::cuGraphCreate(CuGraph* graph, unsigned flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (graph == nullptr || flags != 0) return CuResult::invalid_value;
  auto created = std::make_unique<Graph>();
  created->context = live_context(current_);
  *graph = graphs_.insert(std::move(created));
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphDestroy(CuGraph graph) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const Graph* found = graphs_.find(graph);
  if (found == nullptr) return CuResult::invalid_value;
  for (const CuGraphNode node : found->nodes) nodes_.erase(node);
  graphs_.erase(graph);
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphGetNodes(CuGraph graph, CuGraphNode* nodes, std::size_t* count) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const Graph* found = graphs_.find(graph);
  if (found == nullptr || count == nullptr) return CuResult::invalid_value;
  if (nodes != nullptr) {
    // Entries beyond the last node are null, as the manual says.
    for (std::size_t i = 0; i < *count; ++i) {
      nodes[i] = i < found->nodes.size() ? found->nodes[i] : nullptr;
    }
  }
  *count = nodes == nullptr ? found->nodes.size() : std::min(*count, found->nodes.size());
  return CuResult::success;
}

CuGraphNode SimulatedDriver::add_node(CuGraph graph, NodeTask task,
                                      std::vector<CuGraphNode> after) {
  auto node = std::make_unique<GraphNode>();
  node->graph = graph;
  node->task = std::move(task);
  node->after = std::move(after);
  const CuGraphNode handle = nodes_.insert(std::move(node));
  graphs_.find(graph)->nodes.push_back(handle);
  return handle;
}

CuResult SimulatedDriver::add_checked(CuGraphNode* node, CuGraph graph, Dependencies after,
                                      NodeTask task) {
  if (node == nullptr || graphs_.find(graph) == nullptr) return CuResult::invalid_value;
  if (after.nodes == nullptr && after.count != 0) return CuResult::invalid_value;
  std::vector<CuGraphNode> before;
  for (std::size_t i = 0; i < after.count; ++i) {
    const GraphNode* other = nodes_.find(after.nodes[i]);
    const bool is_known = other != nullptr && other->graph == graph;
    const bool is_twice = std::find(before.begin(), before.end(), after.nodes[i]) != before.end();
    if (!is_known || is_twice) return CuResult::invalid_value;
    before.push_back(after.nodes[i]);
  }
  *node = add_node(graph, std::move(task), std::move(before));
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphAddKernelNode(CuGraphNode* node, CuGraph graph, Dependencies after,
                                               const KernelNode* kernel) {
  CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (kernel == nullptr) return CuResult::invalid_value;
  NodeTask task;
  status = make_launch(*kernel, {}, task);
  return status == CuResult::success ? add_checked(node, graph, after, std::move(task)) : status;
}

CuResult SimulatedDriver::make_copy(const CopyNode& copy, Context& context, NodeTask& task) {
  const bool has_host_target = copy.host_target != nullptr;
  const bool has_host_source = copy.host_source != nullptr;
  // A copy within host memory is not a matter of the device.
  if ((has_host_target && has_host_source) || copy.size_bytes == 0) return CuResult::invalid_value;
  const char* const call = "cuGraphAddMemcpyNode";
  const auto check = [&](FaultKind outside, std::uint64_t address) {
    return executor_.check({call, context.device, outside}, address, copy.size_bytes);
  };
  if (!has_host_target && check(FaultKind::out_of_bounds_write, copy.target) != CuResult::success) {
    return CuResult::invalid_value;
  }
  if (!has_host_source && check(FaultKind::out_of_bounds_read, copy.source) != CuResult::success) {
    return CuResult::invalid_value;
  }
  Work work = CopyWork{copy.target, copy.source, copy.size_bytes};
  if (has_host_source) {
    work = UploadWork{
        copy.target, {}, static_cast<const std::byte*>(copy.host_source), copy.size_bytes, nullptr};
  } else if (has_host_target) {
    work = DownloadWork{static_cast<std::byte*>(copy.host_target), copy.source, copy.size_bytes,
                        nullptr};
  }
  task = make_task("memcpy node", context, std::move(work));
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphAddMemcpyNode(CuGraphNode* node, CuGraph graph, Dependencies after,
                                               const CopyNode* copy) {
  CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (copy == nullptr) return CuResult::invalid_value;
  NodeTask task;
  status = make_copy(*copy, *live_context(current_), task);
  return status == CuResult::success ? add_checked(node, graph, after, std::move(task)) : status;
}

CuResult SimulatedDriver::cuGraphAddMemsetNode(CuGraphNode* node, CuGraph graph, Dependencies after,
                                               const FillNode* fill) {
  CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (fill == nullptr || fill->count == 0) return CuResult::invalid_value;
  const unsigned width = fill->element_bytes;
  const bool is_width = width == 1 || width == 2 || width == 4;
  if (!is_width || fill->target % width != 0 ||
      fill->count > std::numeric_limits<std::size_t>::max() / width) {
    return CuResult::invalid_value;
  }
  Context& context = *live_context(current_);
  const std::size_t size_bytes = fill->count * width;
  status = executor_.check({"cuGraphAddMemsetNode", context.device, FaultKind::out_of_bounds_write},
                           fill->target, size_bytes);
  if (status != CuResult::success) return status;
  std::vector<std::byte> pattern(width);
  std::memcpy(pattern.data(), &fill->value, width);  // Little endian: the low bytes.
  return add_checked(
      node, graph, after,
      make_task("memset node", context, FillWork{fill->target, std::move(pattern), size_bytes}));
}

CuResult SimulatedDriver::cuGraphAddEmptyNode(CuGraphNode* node, CuGraph graph,
                                              Dependencies after) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  NodeTask task;
  task.context = live_context(current_);
  return add_checked(node, graph, after, std::move(task));
}

CuResult SimulatedDriver::cuGraphAddHostNode(CuGraphNode* node, CuGraph graph, Dependencies after,
                                             gpu::CuHostFunction function, void* data) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (function == nullptr) return CuResult::invalid_value;
  return add_checked(
      node, graph, after,
      make_task("host node", *live_context(current_), HostWork{function, data, nullptr}));
}

CuResult SimulatedDriver::add_event_node(CuGraphNode* node, CuGraph graph, Dependencies after,
                                         EventNode event) {
  DriverEvent* found = nullptr;
  const CuResult status = find_event(event.event, found);
  if (status != CuResult::success) return status;
  NodeTask task;
  task.body = event;
  task.context = live_context(current_);
  return add_checked(node, graph, after, std::move(task));
}

CuResult SimulatedDriver::cuGraphAddEventRecordNode(CuGraphNode* node, CuGraph graph,
                                                    Dependencies after, CuEvent event) {
  return add_event_node(node, graph, after, {event, false});
}

CuResult SimulatedDriver::cuGraphAddEventWaitNode(CuGraphNode* node, CuGraph graph,
                                                  Dependencies after, CuEvent event) {
  return add_event_node(node, graph, after, {event, true});
}

std::vector<GraphExec::Node> SimulatedDriver::instance_of(const Graph& graph) const {
  std::vector<GraphExec::Node> nodes;
  std::map<CuGraphNode, std::size_t> places;
  for (const CuGraphNode handle : graph.nodes) {
    const GraphNode& node = *nodes_.find(handle);
    GraphExec::Node copy{node.task, {}, handle};
    for (const CuGraphNode before : node.after) copy.after.push_back(places.at(before));
    places.emplace(handle, nodes.size());
    nodes.push_back(std::move(copy));
  }
  return nodes;
}

CuResult SimulatedDriver::cuGraphInstantiate(CuGraphExec* exec, CuGraph graph,
                                             std::uint64_t flags) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const Graph* found = graphs_.find(graph);
  // Flags ask for graphs that devices launch or that free memory: there are none here.
  if (exec == nullptr || found == nullptr || flags != 0) return CuResult::invalid_value;
  auto created = std::make_unique<GraphExec>();
  created->context = live_context(current_);
  created->nodes = instance_of(*found);
  *exec = execs_.insert(std::move(created));
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphExecDestroy(CuGraphExec exec) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const GraphExec* found = execs_.find(exec);
  if (found == nullptr) return CuResult::invalid_value;
  for (Stream* const branch : found->branches) streams_.remove(*branch);
  execs_.erase(exec);
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphExecUpdate(CuGraphExec exec, CuGraph graph) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  GraphExec* found = execs_.find(exec);
  const Graph* wanted = graphs_.find(graph);
  if (found == nullptr || wanted == nullptr) return CuResult::invalid_value;
  std::vector<GraphExec::Node> nodes = instance_of(*wanted);
  const auto is_alike = [](const GraphExec::Node& now, const GraphExec::Node& then) {
    const auto* work = std::get_if<Work>(&now.task.body);
    const auto* old_work = std::get_if<Work>(&then.task.body);
    const bool is_same_kind = now.task.body.index() == then.task.body.index() &&
                              (work == nullptr || work->index() == old_work->index());
    return is_same_kind && now.after == then.after && now.task.context == then.task.context;
  };
  if (!std::equal(nodes.begin(), nodes.end(), found->nodes.begin(), found->nodes.end(), is_alike)) {
    return CuResult::graph_exec_update_failure;
  }
  // Nodes keep the handles that they were instantiated from.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    found->nodes[i].task = std::move(nodes[i].task);
  }
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphExecKernelNodeSetParams(CuGraphExec exec, CuGraphNode node,
                                                         const KernelNode* kernel) {
  CuResult status = current_status();
  if (status != CuResult::success) return status;
  GraphExec* found = execs_.find(exec);
  if (found == nullptr || kernel == nullptr) return CuResult::invalid_value;
  const auto place =
      std::find_if(found->nodes.begin(), found->nodes.end(),
                   [node](const GraphExec::Node& other) { return other.origin == node; });
  if (place == found->nodes.end() || place->task.function == nullptr) {
    return CuResult::invalid_value;
  }
  NodeTask task;
  status = make_launch(*kernel, {}, task);
  if (status != CuResult::success) return status;
  // The context of a node cannot be changed.
  if (task.context != place->task.context) return CuResult::invalid_value;
  place->task = std::move(task);
  return CuResult::success;
}

CuResult SimulatedDriver::check_launchable(const GraphExec& exec) const {
  for (const GraphExec::Node& node : exec.nodes) {
    if (node.task.function != nullptr && functions_.find(node.task.function) == nullptr) {
      return CuResult::invalid_handle;
    }
    const auto* event = std::get_if<EventNode>(&node.task.body);
    if (event != nullptr && events_.find(event->event) == nullptr) return CuResult::invalid_handle;
  }
  return CuResult::success;
}

CuResult SimulatedDriver::cuGraphLaunch(CuGraphExec exec, CuStream stream) {
  Stream* queue = nullptr;
  CuResult status = find_stream(stream, queue);
  if (status != CuResult::success) return status;
  GraphExec* found = execs_.find(exec);
  if (found == nullptr) return CuResult::invalid_value;
  // A graph within a graph is not supported.
  if (queue->capture != nullptr) return CuResult::not_supported;
  status = refuse_implicit(*queue);
  if (status == CuResult::success) status = check_launchable(*found);
  if (status == CuResult::success) launch_nodes(*found, *queue);
  return status;
}

void SimulatedDriver::run_task(Stream& stream, const NodeTask& task) {
  if (const auto* work = std::get_if<Work>(&task.body)) {
    enqueue(stream, *work, task.name);
  } else if (const auto* node = std::get_if<EventNode>(&task.body)) {
    DriverEvent& event = *events_.find(node->event);
    if (node->is_wait) {
      streams_.wait(stream, event.marker);
    } else {
      event.capture.reset();
      event.time_ns = std::make_shared<std::uint64_t>(0);
      streams_.push(stream, RecordWork{event.time_ns}, {});
      event.marker = stream.marker();
    }
  }
}

Stream& SimulatedDriver::next_branch(GraphExec& exec, std::size_t used, Context& context) {
  const auto first = exec.branches.begin() + static_cast<std::ptrdiff_t>(used);
  auto place = std::find_if(first, exec.branches.end(), [&context](const Stream* branch) {
    return branch->context == &context;
  });
  if (place == exec.branches.end()) {
    const std::string name =
        fmt::format("branch {} of a graph on device {}", exec.branches.size() + 1, context.device);
    exec.branches.push_back(&streams_.add_internal(context, name));
    place = exec.branches.end() - 1;
  }
  std::iter_swap(exec.branches.begin() + static_cast<std::ptrdiff_t>(used), place);
  return *exec.branches[used];
}

// A node goes on where one of those before it was the last, else on a branch of its own: nodes that
// nothing orders are on different streams, and run in the order that the schedule picks.
void SimulatedDriver::launch_nodes(GraphExec& exec, Stream& stream) {
  streams_.wait(stream, exec.last);
  const Marker begin = streams_.mark(stream);
  std::vector<Stream*> tails;  // By node: its stream while it is the last there, else null.
  std::vector<Marker> ends;
  std::size_t branches = 0;
  bool is_stream_free = true;
  for (const GraphExec::Node& node : exec.nodes) {
    Stream* target = nullptr;
    for (const std::size_t before : node.after) {
      const bool is_fit = tails[before] != nullptr && tails[before]->context == node.task.context;
      if (is_fit && target == nullptr) target = std::exchange(tails[before], nullptr);
    }
    if (target == nullptr && is_stream_free && node.task.context == stream.context) {
      target = &stream;
      is_stream_free = false;
    } else if (target == nullptr) {
      target = &next_branch(exec, branches++, *node.task.context);
      streams_.wait(*target, begin);
    }
    for (const std::size_t before : node.after) streams_.wait(*target, ends[before]);
    run_task(*target, node.task);
    tails.push_back(target);
    ends.push_back(target->marker());
  }
  for (const Marker& end : ends) streams_.wait(stream, end);
  exec.last = streams_.mark(stream);
}

}  // namespace cpverify::sim
