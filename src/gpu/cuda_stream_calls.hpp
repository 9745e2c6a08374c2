#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/driver_api.hpp"
#include "gpu/shared_library.hpp"

namespace cpverify::gpu {

/// Streams, events, host memory, peers and captured graphs of a CUDA driver library. Graphs that
/// are made node by node are not forwarded.
class CudaStreamCalls : public DriverApi {
 public:
  CuResult cuDeviceCanAccessPeer(int* can_access, CuDevice device, CuDevice peer) override {
    return device_can_access_peer_(can_access, device, peer);
  }
  CuResult cuCtxEnablePeerAccess(CuContext peer, unsigned flags) override {
    return ctx_enable_peer_access_(peer, flags);
  }
  CuResult cuCtxDisablePeerAccess(CuContext peer) override {
    return ctx_disable_peer_access_(peer);
  }
  CuResult cuMemAllocAsync(CuDevicePtr* pointer, std::size_t size_bytes, CuStream stream) override {
    return mem_alloc_async_(pointer, size_bytes, stream);
  }
  CuResult cuMemFreeAsync(CuDevicePtr pointer, CuStream stream) override {
    return mem_free_async_(pointer, stream);
  }
  CuResult cuMemHostAlloc(void** pointer, std::size_t size_bytes, unsigned flags) override {
    return mem_host_alloc_(pointer, size_bytes, flags);
  }
  CuResult cuMemAllocHost(void** pointer, std::size_t size_bytes) override {
    return mem_alloc_host_(pointer, size_bytes);
  }
  CuResult cuMemFreeHost(void* pointer) override { return mem_free_host_(pointer); }
  CuResult cuMemHostRegister(void* pointer, std::size_t size_bytes, unsigned flags) override {
    return mem_host_register_(pointer, size_bytes, flags);
  }
  CuResult cuMemHostUnregister(void* pointer) override { return mem_host_unregister_(pointer); }
  CuResult cuMemHostGetDevicePointer(CuDevicePtr* device_pointer, void* pointer,
                                     unsigned flags) override {
    return mem_host_get_device_pointer_(device_pointer, pointer, flags);
  }
  CuResult cuPointerGetAttribute(void* value, int attribute, CuDevicePtr pointer) override {
    return pointer_get_attribute_(value, attribute, pointer);
  }
  CuResult cuMemsetD16Async(CuDevicePtr target, unsigned short value, std::size_t count,
                            CuStream stream) override {
    return memset_d16_async_(target, value, count, stream);
  }
  CuResult cuStreamCreateWithPriority(CuStream* stream, unsigned flags, int priority) override {
    return stream_create_with_priority_(stream, flags, priority);
  }
  CuResult cuCtxGetStreamPriorityRange(int* least, int* greatest) override {
    return ctx_get_stream_priority_range_(least, greatest);
  }
  CuResult cuStreamGetPriority(CuStream stream, int* priority) override {
    return stream_get_priority_(stream, priority);
  }
  CuResult cuStreamGetFlags(CuStream stream, unsigned* flags) override {
    return stream_get_flags_(stream, flags);
  }
  CuResult cuStreamGetCtx(CuStream stream, CuContext* context) override {
    return stream_get_ctx_(stream, context);
  }
  CuResult cuStreamQuery(CuStream stream) override { return stream_query_(stream); }
  CuResult cuLaunchHostFunc(CuStream stream, CuHostFunction function, void* data) override {
    return launch_host_func_(stream, function, data);
  }
  CuResult cuEventQuery(CuEvent event) override { return event_query_(event); }
  CuResult cuEventSynchronize(CuEvent event) override { return event_synchronize_(event); }
  CuResult cuEventElapsedTime(float* milliseconds, CuEvent start, CuEvent end) override {
    return event_elapsed_time_(milliseconds, start, end);
  }
  CuResult cuStreamBeginCapture(CuStream stream, CuCaptureMode mode) override {
    return stream_begin_capture_(stream, mode);
  }
  CuResult cuStreamEndCapture(CuStream stream, CuGraph* graph) override {
    return stream_end_capture_(stream, graph);
  }
  CuResult cuStreamIsCapturing(CuStream stream, CuCaptureStatus* status) override {
    return stream_is_capturing_(stream, status);
  }
  CuResult cuGraphDestroy(CuGraph graph) override { return graph_destroy_(graph); }
  CuResult cuGraphGetNodes(CuGraph graph, CuGraphNode* nodes, std::size_t* count) override {
    return graph_get_nodes_(graph, nodes, count);
  }
  CuResult cuGraphInstantiate(CuGraphExec* exec, CuGraph graph, std::uint64_t flags) override {
    return graph_instantiate_(exec, graph, flags);
  }
  CuResult cuGraphLaunch(CuGraphExec exec, CuStream stream) override {
    return graph_launch_(exec, stream);
  }
  CuResult cuGraphExecDestroy(CuGraphExec exec) override { return graph_exec_destroy_(exec); }

 protected:
  /// Throws EnvironmentError when the library lacks a function.
  void resolve_from(const SharedLibrary& library);

 private:
  // Signatures as in the CUDA Driver API manual, for the versions named in resolve_from().
  CuResult (*device_can_access_peer_)(int*, CuDevice, CuDevice) = nullptr;
  CuResult (*ctx_enable_peer_access_)(CuContext, unsigned) = nullptr;
  CuResult (*ctx_disable_peer_access_)(CuContext) = nullptr;
  CuResult (*mem_alloc_async_)(CuDevicePtr*, std::size_t, CuStream) = nullptr;
  CuResult (*mem_free_async_)(CuDevicePtr, CuStream) = nullptr;
  CuResult (*mem_host_alloc_)(void**, std::size_t, unsigned) = nullptr;
  CuResult (*mem_alloc_host_)(void**, std::size_t) = nullptr;
  CuResult (*mem_free_host_)(void*) = nullptr;
  CuResult (*mem_host_register_)(void*, std::size_t, unsigned) = nullptr;
  CuResult (*mem_host_unregister_)(void*) = nullptr;
  CuResult (*mem_host_get_device_pointer_)(CuDevicePtr*, void*, unsigned) = nullptr;
  CuResult (*pointer_get_attribute_)(void*, int, CuDevicePtr) = nullptr;
  CuResult (*memset_d16_async_)(CuDevicePtr, unsigned short, std::size_t, CuStream) = nullptr;
  CuResult (*stream_create_with_priority_)(CuStream*, unsigned, int) = nullptr;
  CuResult (*ctx_get_stream_priority_range_)(int*, int*) = nullptr;
  CuResult (*stream_get_priority_)(CuStream, int*) = nullptr;
  CuResult (*stream_get_flags_)(CuStream, unsigned*) = nullptr;
  CuResult (*stream_get_ctx_)(CuStream, CuContext*) = nullptr;
  CuResult (*stream_query_)(CuStream) = nullptr;
  CuResult (*launch_host_func_)(CuStream, CuHostFunction, void*) = nullptr;
  CuResult (*event_query_)(CuEvent) = nullptr;
  CuResult (*event_synchronize_)(CuEvent) = nullptr;
  CuResult (*event_elapsed_time_)(float*, CuEvent, CuEvent) = nullptr;
  CuResult (*stream_begin_capture_)(CuStream, CuCaptureMode) = nullptr;
  CuResult (*stream_end_capture_)(CuStream, CuGraph*) = nullptr;
  CuResult (*stream_is_capturing_)(CuStream, CuCaptureStatus*) = nullptr;
  CuResult (*graph_destroy_)(CuGraph) = nullptr;
  CuResult (*graph_get_nodes_)(CuGraph, CuGraphNode*, std::size_t*) = nullptr;
  CuResult (*graph_instantiate_)(CuGraphExec*, CuGraph, std::uint64_t) = nullptr;
  CuResult (*graph_launch_)(CuGraphExec, CuStream) = nullptr;
  CuResult (*graph_exec_destroy_)(CuGraphExec) = nullptr;
};

}  // namespace cpverify::gpu
