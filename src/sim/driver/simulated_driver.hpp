#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/driver_types.hpp"
#include "gpu/handle_table.hpp"
#include "sim/check/coverage_observer.hpp"
#include "sim/driver/capture.hpp"
#include "sim/driver/executor.hpp"
#include "sim/driver/fault_log.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/host_memory.hpp"
#include "sim/driver/module_cache.hpp"
#include "sim/driver/sim_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {

struct DriverEvent {
  const Context* context = nullptr;
  bool has_timing = true;
  Marker marker;
  std::shared_ptr<std::uint64_t> time_ns;  ///< Null until recorded.
  /// Recorded in a stream that was being captured: the point in its graph.
  std::shared_ptr<Capture> capture;
  std::vector<gpu::CuGraphNode> frontier;
};

struct DriverModule {
  const Context* context = nullptr;
  std::unique_ptr<Program> program;
  std::map<std::string, gpu::CuFunction, std::less<>> functions;  ///< Those handed out.
};

struct DriverFunction {
  Context* context = nullptr;
  const DriverModule* module = nullptr;
  const Kernel* kernel = nullptr;
  std::uint32_t shared_bytes_optin = 0;
};

/// SimDriver in full. Its members are spread over files by what they act on.
class SimulatedDriver final : public SimDriver {
 public:
  explicit SimulatedDriver(const SimOptions& options);

  std::vector<Fault> take_faults() override { return faults_.take(); }
  Coverage take_coverage() override { return coverage_.take(); }

  gpu::CuResult cuInit(unsigned flags) override;
  gpu::CuResult cuDeviceGetCount(int* count) override;
  gpu::CuResult cuDeviceGet(gpu::CuDevice* device, int ordinal) override;
  gpu::CuResult cuDeviceGetAttribute(int* value, int attribute, gpu::CuDevice device) override;
  gpu::CuResult cuDevicePrimaryCtxRetain(gpu::CuContext* context, gpu::CuDevice device) override;
  gpu::CuResult cuDevicePrimaryCtxRelease(gpu::CuDevice device) override;
  gpu::CuResult cuCtxSetCurrent(gpu::CuContext context) override;
  gpu::CuResult cuCtxGetCurrent(gpu::CuContext* context) override;
  gpu::CuResult cuCtxSynchronize() override;

  gpu::CuResult cuDeviceCanAccessPeer(int* can_access, gpu::CuDevice device,
                                      gpu::CuDevice peer) override;
  gpu::CuResult cuCtxEnablePeerAccess(gpu::CuContext peer, unsigned flags) override;
  gpu::CuResult cuCtxDisablePeerAccess(gpu::CuContext peer) override;

  gpu::CuResult cuModuleLoadData(gpu::CuModule* module, const void* image) override;
  gpu::CuResult cuModuleUnload(gpu::CuModule module) override;
  gpu::CuResult cuModuleGetFunction(gpu::CuFunction* function, gpu::CuModule module,
                                    const char* name) override;
  gpu::CuResult cuFuncSetAttribute(gpu::CuFunction function, int attribute, int value) override;

  gpu::CuResult cuTensorMapEncodeTiled(gpu::CuTensorMap* map,
                                       const gpu::CuTiledTensor& tensor) override;

  gpu::CuResult cuMemAlloc(gpu::CuDevicePtr* pointer, std::size_t size_bytes) override;
  gpu::CuResult cuMemFree(gpu::CuDevicePtr pointer) override;
  gpu::CuResult cuMemAllocAsync(gpu::CuDevicePtr* pointer, std::size_t size_bytes,
                                gpu::CuStream stream) override;
  gpu::CuResult cuMemFreeAsync(gpu::CuDevicePtr pointer, gpu::CuStream stream) override;
  gpu::CuResult cuMemHostAlloc(void** pointer, std::size_t size_bytes, unsigned flags) override;
  gpu::CuResult cuMemAllocHost(void** pointer, std::size_t size_bytes) override;
  gpu::CuResult cuMemFreeHost(void* pointer) override;
  gpu::CuResult cuMemHostRegister(void* pointer, std::size_t size_bytes, unsigned flags) override;
  gpu::CuResult cuMemHostUnregister(void* pointer) override;
  gpu::CuResult cuMemHostGetDevicePointer(gpu::CuDevicePtr* device_pointer, void* pointer,
                                          unsigned flags) override;
  gpu::CuResult cuPointerGetAttribute(void* value, int attribute,
                                      gpu::CuDevicePtr pointer) override;
  gpu::CuResult cuMemcpyHtoDAsync(gpu::CuDevicePtr target, const void* source,
                                  std::size_t size_bytes, gpu::CuStream stream) override;
  gpu::CuResult cuMemcpyDtoHAsync(void* target, gpu::CuDevicePtr source, std::size_t size_bytes,
                                  gpu::CuStream stream) override;
  gpu::CuResult cuMemcpyDtoDAsync(gpu::CuDevicePtr target, gpu::CuDevicePtr source,
                                  std::size_t size_bytes, gpu::CuStream stream) override;
  gpu::CuResult cuMemcpyPeerAsync(gpu::CuDevicePtr target, gpu::CuContext target_context,
                                  gpu::CuDevicePtr source, gpu::CuContext source_context,
                                  std::size_t size_bytes, gpu::CuStream stream) override;
  gpu::CuResult cuMemsetD8Async(gpu::CuDevicePtr target, unsigned char value, std::size_t count,
                                gpu::CuStream stream) override;
  gpu::CuResult cuMemsetD16Async(gpu::CuDevicePtr target, unsigned short value, std::size_t count,
                                 gpu::CuStream stream) override;
  gpu::CuResult cuMemsetD32Async(gpu::CuDevicePtr target, unsigned value, std::size_t count,
                                 gpu::CuStream stream) override;

  gpu::CuResult cuStreamCreate(gpu::CuStream* stream, unsigned flags) override;
  gpu::CuResult cuStreamDestroy(gpu::CuStream stream) override;
  gpu::CuResult cuStreamSynchronize(gpu::CuStream stream) override;
  gpu::CuResult cuStreamWaitEvent(gpu::CuStream stream, gpu::CuEvent event,
                                  unsigned flags) override;
  gpu::CuResult cuStreamCreateWithPriority(gpu::CuStream* stream, unsigned flags,
                                           int priority) override;
  gpu::CuResult cuCtxGetStreamPriorityRange(int* least, int* greatest) override;
  gpu::CuResult cuStreamGetPriority(gpu::CuStream stream, int* priority) override;
  gpu::CuResult cuStreamGetFlags(gpu::CuStream stream, unsigned* flags) override;
  gpu::CuResult cuStreamGetCtx(gpu::CuStream stream, gpu::CuContext* context) override;
  gpu::CuResult cuStreamQuery(gpu::CuStream stream) override;
  gpu::CuResult cuLaunchHostFunc(gpu::CuStream stream, gpu::CuHostFunction function,
                                 void* data) override;
  gpu::CuResult cuEventCreate(gpu::CuEvent* event, unsigned flags) override;
  gpu::CuResult cuEventDestroy(gpu::CuEvent event) override;
  gpu::CuResult cuEventRecord(gpu::CuEvent event, gpu::CuStream stream) override;

  gpu::CuResult cuEventQuery(gpu::CuEvent event) override;
  gpu::CuResult cuEventSynchronize(gpu::CuEvent event) override;
  gpu::CuResult cuEventElapsedTime(float* milliseconds, gpu::CuEvent start,
                                   gpu::CuEvent end) override;

  gpu::CuResult cuStreamBeginCapture(gpu::CuStream stream, gpu::CuCaptureMode mode) override;
  gpu::CuResult cuStreamEndCapture(gpu::CuStream stream, gpu::CuGraph* graph) override;
  gpu::CuResult cuStreamIsCapturing(gpu::CuStream stream, gpu::CuCaptureStatus* status) override;
  gpu::CuResult cuStreamGetCaptureInfo(gpu::CuStream stream, gpu::CuCaptureStatus* status,
                                       std::uint64_t* id) override;

  gpu::CuResult cuGraphCreate(gpu::CuGraph* graph, unsigned flags) override;
  gpu::CuResult cuGraphDestroy(gpu::CuGraph graph) override;
  gpu::CuResult cuGraphGetNodes(gpu::CuGraph graph, gpu::CuGraphNode* nodes,
                                std::size_t* count) override;
  gpu::CuResult cuGraphAddKernelNode(gpu::CuGraphNode* node, gpu::CuGraph graph, Dependencies after,
                                     const KernelNode* kernel) override;
  gpu::CuResult cuGraphAddMemcpyNode(gpu::CuGraphNode* node, gpu::CuGraph graph, Dependencies after,
                                     const CopyNode* copy) override;
  gpu::CuResult cuGraphAddMemsetNode(gpu::CuGraphNode* node, gpu::CuGraph graph, Dependencies after,
                                     const FillNode* fill) override;
  gpu::CuResult cuGraphAddEmptyNode(gpu::CuGraphNode* node, gpu::CuGraph graph,
                                    Dependencies after) override;
  gpu::CuResult cuGraphAddHostNode(gpu::CuGraphNode* node, gpu::CuGraph graph, Dependencies after,
                                   gpu::CuHostFunction function, void* data) override;
  gpu::CuResult cuGraphAddEventRecordNode(gpu::CuGraphNode* node, gpu::CuGraph graph,
                                          Dependencies after, gpu::CuEvent event) override;
  gpu::CuResult cuGraphAddEventWaitNode(gpu::CuGraphNode* node, gpu::CuGraph graph,
                                        Dependencies after, gpu::CuEvent event) override;
  gpu::CuResult cuGraphInstantiate(gpu::CuGraphExec* exec, gpu::CuGraph graph,
                                   std::uint64_t flags) override;
  gpu::CuResult cuGraphLaunch(gpu::CuGraphExec exec, gpu::CuStream stream) override;
  gpu::CuResult cuGraphExecDestroy(gpu::CuGraphExec exec) override;
  gpu::CuResult cuGraphExecUpdate(gpu::CuGraphExec exec, gpu::CuGraph graph) override;
  gpu::CuResult cuGraphExecKernelNodeSetParams(gpu::CuGraphExec exec, gpu::CuGraphNode node,
                                               const KernelNode* kernel) override;

  gpu::CuResult cuLaunchKernel(gpu::CuFunction function, const LaunchConfig& config,
                               void** parameters) override;
  gpu::CuResult cuLaunchKernelEx(const LaunchConfig& config, const gpu::LaunchAttribute* attributes,
                                 unsigned attribute_count, gpu::CuFunction function,
                                 void** parameters) override;
  const char* jit_error_log() override { return jit_error_log_.c_str(); }
  void name_work(const char* call, std::uint32_t rank) override;

 private:
  /// The context behind a handle while its device is retained, else null.
  [[nodiscard]] Context* live_context(gpu::CuContext handle) const noexcept;
  /// not_initialized, not_permitted (within a host function), invalid_context, the context's sticky
  /// error, or success.
  [[nodiscard]] gpu::CuResult current_status() const noexcept;
  /// As current_status(), then for the stream; sets `target` on success.
  [[nodiscard]] gpu::CuResult find_stream(gpu::CuStream handle, Stream*& target) const noexcept;
  /// As current_status(); sets `target` on success.
  [[nodiscard]] gpu::CuResult find_event(gpu::CuEvent handle, DriverEvent*& target) const noexcept;

  /// Enqueues work, or adds it to the graph of a stream that is being captured.
  [[nodiscard]] gpu::CuResult submit(Stream& stream, NodeTask task);
  /// Enqueues work, and begins to watch its host memory.
  void enqueue(Stream& stream, Work work, const WorkName& name);
  /// A task of this context under the name of the call, or of the collective that it is part of.
  [[nodiscard]] NodeTask make_task(const char* call, Context& context, Work work) const;
  [[nodiscard]] gpu::CuResult make_launch(const KernelNode& kernel,
                                          const std::array<std::uint32_t, 3>& cluster,
                                          NodeTask& task);
  [[nodiscard]] gpu::CuResult make_copy(const CopyNode& copy, Context& context, NodeTask& task);
  [[nodiscard]] gpu::CuResult enqueue_copy(const char* call, const CopyWork& work,
                                           const Context& target, const Context& source,
                                           Stream& stream);
  [[nodiscard]] gpu::CuResult enqueue_fill(const char* call, FillWork work, gpu::CuStream stream);
  [[nodiscard]] gpu::CuResult allocate(gpu::CuDevicePtr* pointer, std::size_t size_bytes);

  /// Calls that a capture does not allow end it: stream_capture_unsupported, else success.
  [[nodiscard]] gpu::CuResult refuse_capture(const Stream& stream);
  [[nodiscard]] gpu::CuResult refuse_captures_of(const Context& context);
  /// Work of the legacy default stream would wait for a stream that is being captured.
  [[nodiscard]] gpu::CuResult refuse_implicit(const Stream& stream);
  [[nodiscard]] gpu::CuResult wait_in_capture(Stream& stream, const DriverEvent& event);
  [[nodiscard]] bool has_unjoined(const Capture& capture, const Stream& origin) const;
  gpu::CuGraphNode add_node(gpu::CuGraph graph, NodeTask task, std::vector<gpu::CuGraphNode> after);
  /// The checks that all cuGraphAdd*Node share, then add_node().
  [[nodiscard]] gpu::CuResult add_checked(gpu::CuGraphNode* node, gpu::CuGraph graph,
                                          Dependencies after, NodeTask task);
  [[nodiscard]] gpu::CuResult add_event_node(gpu::CuGraphNode* node, gpu::CuGraph graph,
                                             Dependencies after, EventNode event);
  [[nodiscard]] std::vector<GraphExec::Node> instance_of(const Graph& graph) const;
  [[nodiscard]] gpu::CuResult check_launchable(const GraphExec& exec) const;
  void run_task(Stream& stream, const NodeTask& task);
  /// The stream of a graph's branch in a context, other than the `used` first ones.
  Stream& next_branch(GraphExec& exec, std::size_t used, Context& context);
  void launch_nodes(GraphExec& exec, Stream& stream);
  void destroy(Context& context);

  SimOptions options_;
  GlobalMemory memory_;  ///< Before what holds memory: modules.
  FaultLog faults_;
  HostMemory host_{faults_};
  CoverageObserver coverage_;
  Executor executor_;
  gpu::HandleTable<gpu::CuContext, Context> contexts_;
  std::vector<gpu::CuContext> context_of_device_;
  Streams streams_;
  gpu::HandleTable<gpu::CuEvent, DriverEvent> events_;
  ModuleCache parsed_modules_;
  gpu::HandleTable<gpu::CuModule, DriverModule> modules_;
  gpu::HandleTable<gpu::CuFunction, DriverFunction> functions_;
  gpu::HandleTable<gpu::CuGraph, Graph> graphs_;
  gpu::HandleTable<gpu::CuGraphNode, GraphNode> nodes_;
  gpu::HandleTable<gpu::CuGraphExec, GraphExec> execs_;
  std::uint64_t captures_made_ = 0;
  std::map<gpu::CuDevicePtr, const Context*> allocations_;  ///< Of cuMemAlloc, not of modules.
  gpu::CuContext current_ = nullptr;
  bool is_initialised_ = false;
  std::string jit_error_log_;
  std::string part_of_;  ///< The collective that copies and fills are part of; "" for none.
  std::uint32_t part_of_rank_ = 0;
};

}  // namespace cpverify::sim
