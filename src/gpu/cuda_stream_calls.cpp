#include "gpu/cuda_stream_calls.hpp"

#include "gpu/shared_library.hpp"

namespace cpverify::gpu {

void CudaStreamCalls::resolve_from(const SharedLibrary& library) {
  library.resolve(device_can_access_peer_, "cuDeviceCanAccessPeer");
  library.resolve(ctx_enable_peer_access_, "cuCtxEnablePeerAccess");
  library.resolve(ctx_disable_peer_access_, "cuCtxDisablePeerAccess");
  library.resolve(mem_alloc_async_, "cuMemAllocAsync");
  library.resolve(mem_free_async_, "cuMemFreeAsync");
  library.resolve(mem_host_alloc_, "cuMemHostAlloc");
  library.resolve(mem_alloc_host_, "cuMemAllocHost_v2");
  library.resolve(mem_free_host_, "cuMemFreeHost");
  library.resolve(mem_host_register_, "cuMemHostRegister_v2");
  library.resolve(mem_host_unregister_, "cuMemHostUnregister");
  library.resolve(mem_host_get_device_pointer_, "cuMemHostGetDevicePointer_v2");
  library.resolve(pointer_get_attribute_, "cuPointerGetAttribute");
  library.resolve(memset_d16_async_, "cuMemsetD16Async");
  library.resolve(stream_create_with_priority_, "cuStreamCreateWithPriority");
  library.resolve(ctx_get_stream_priority_range_, "cuCtxGetStreamPriorityRange");
  library.resolve(stream_get_priority_, "cuStreamGetPriority");
  library.resolve(stream_get_flags_, "cuStreamGetFlags");
  library.resolve(stream_get_ctx_, "cuStreamGetCtx");
  library.resolve(stream_query_, "cuStreamQuery");
  library.resolve(launch_host_func_, "cuLaunchHostFunc");
  library.resolve(event_query_, "cuEventQuery");
  library.resolve(event_synchronize_, "cuEventSynchronize");
  library.resolve(event_elapsed_time_, "cuEventElapsedTime");
  library.resolve(stream_begin_capture_, "cuStreamBeginCapture_v2");
  library.resolve(stream_end_capture_, "cuStreamEndCapture");
  library.resolve(stream_is_capturing_, "cuStreamIsCapturing");
  library.resolve(graph_destroy_, "cuGraphDestroy");
  library.resolve(graph_get_nodes_, "cuGraphGetNodes");
  library.resolve(graph_instantiate_, "cuGraphInstantiateWithFlags");
  library.resolve(graph_launch_, "cuGraphLaunch");
  library.resolve(graph_exec_destroy_, "cuGraphExecDestroy");
}

}  // namespace cpverify::gpu
