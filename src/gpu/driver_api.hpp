#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "gpu/driver_types.hpp"  // IWYU pragma: export
#include "gpu/graph_api.hpp"

namespace cpverify::gpu {

/// The CUDA driver API under its public names and semantics, for the calls that we make. One
/// implementation forwards to libcuda, one is the simulator; nothing above knows which.
///
/// Work on a stream is asynchronous: it may run at any time up to the next synchronisation, and its
/// errors are returned by one. Calls act on the current context (cuCtxSetCurrent). Functions that
/// are not pure answer not_supported where an implementation lacks them.
class DriverApi : public GraphApi {
 public:
  // The names of the public API.
  // NOLINTBEGIN(readability-identifier-naming)
  virtual CuResult cuInit(unsigned flags) = 0;
  virtual CuResult cuDeviceGetCount(int* count) = 0;
  virtual CuResult cuDeviceGet(CuDevice* device, int ordinal) = 0;
  virtual CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice device) = 0;
  virtual CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) = 0;
  virtual CuResult cuDevicePrimaryCtxRelease(CuDevice device) = 0;
  virtual CuResult cuCtxSetCurrent(CuContext context) = 0;
  virtual CuResult cuCtxGetCurrent(CuContext* context) = 0;
  virtual CuResult cuCtxSynchronize() = 0;

  virtual CuResult cuDeviceCanAccessPeer(int* /*can_access*/, CuDevice /*device*/,
                                         CuDevice /*peer*/) {
    return CuResult::not_supported;
  }
  /// Kernels of the current context may access memory of the peer's, not the other way round.
  virtual CuResult cuCtxEnablePeerAccess(CuContext /*peer*/, unsigned /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuCtxDisablePeerAccess(CuContext /*peer*/) { return CuResult::not_supported; }

  /// `image` is NUL-terminated PTX text (or a cubin where the implementation takes one).
  virtual CuResult cuModuleLoadData(CuModule* module, const void* image) = 0;
  virtual CuResult cuModuleUnload(CuModule module) = 0;
  virtual CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) = 0;
  virtual CuResult cuFuncSetAttribute(CuFunction function, int attribute, int value) = 0;

  /// not_supported where the driver is older than CUDA 12, or the simulator has no such tensors.
  virtual CuResult cuTensorMapEncodeTiled(CuTensorMap* map, const CuTiledTensor& tensor) = 0;

  virtual CuResult cuMemAlloc(CuDevicePtr* pointer, std::size_t size_bytes) = 0;
  virtual CuResult cuMemFree(CuDevicePtr pointer) = 0;
  /// In stream order: the memory is there for work that is ordered after the allocation and before
  /// the free.
  virtual CuResult cuMemAllocAsync(CuDevicePtr* /*pointer*/, std::size_t /*size_bytes*/,
                                   CuStream /*stream*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuMemFreeAsync(CuDevicePtr /*pointer*/, CuStream /*stream*/) {
    return CuResult::not_supported;
  }
  /// Pinned host memory: copies from and to it are truly asynchronous.
  virtual CuResult cuMemHostAlloc(void** /*pointer*/, std::size_t /*size_bytes*/,
                                  unsigned /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuMemAllocHost(void** /*pointer*/, std::size_t /*size_bytes*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuMemFreeHost(void* /*pointer*/) { return CuResult::not_supported; }
  virtual CuResult cuMemHostRegister(void* /*pointer*/, std::size_t /*size_bytes*/,
                                     unsigned /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuMemHostUnregister(void* /*pointer*/) { return CuResult::not_supported; }
  virtual CuResult cuMemHostGetDevicePointer(CuDevicePtr* /*device_pointer*/, void* /*pointer*/,
                                             unsigned /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuPointerGetAttribute(void* /*value*/, int /*attribute*/,
                                         CuDevicePtr /*pointer*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuMemcpyHtoDAsync(CuDevicePtr target, const void* source, std::size_t size_bytes,
                                     CuStream stream) = 0;
  virtual CuResult cuMemcpyDtoHAsync(void* target, CuDevicePtr source, std::size_t size_bytes,
                                     CuStream stream) = 0;
  virtual CuResult cuMemcpyDtoDAsync(CuDevicePtr target, CuDevicePtr source, std::size_t size_bytes,
                                     CuStream stream) = 0;
  virtual CuResult cuMemcpyPeerAsync(CuDevicePtr target, CuContext target_context,
                                     CuDevicePtr source, CuContext source_context,
                                     std::size_t size_bytes, CuStream stream) = 0;
  virtual CuResult cuMemsetD8Async(CuDevicePtr target, unsigned char value, std::size_t count,
                                   CuStream stream) = 0;
  virtual CuResult cuMemsetD16Async(CuDevicePtr /*target*/, unsigned short /*value*/,
                                    std::size_t /*count*/, CuStream /*stream*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuMemsetD32Async(CuDevicePtr target, unsigned value, std::size_t count,
                                    CuStream stream) = 0;

  virtual CuResult cuStreamCreate(CuStream* stream, unsigned flags) = 0;
  virtual CuResult cuStreamDestroy(CuStream stream) = 0;
  virtual CuResult cuStreamSynchronize(CuStream stream) = 0;
  virtual CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) = 0;
  virtual CuResult cuStreamCreateWithPriority(CuStream* /*stream*/, unsigned /*flags*/,
                                              int /*priority*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuCtxGetStreamPriorityRange(int* /*least*/, int* /*greatest*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuStreamGetPriority(CuStream /*stream*/, int* /*priority*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuStreamGetFlags(CuStream /*stream*/, unsigned* /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuStreamGetCtx(CuStream /*stream*/, CuContext* /*context*/) {
    return CuResult::not_supported;
  }
  /// success when nothing is left to run, not_ready otherwise.
  virtual CuResult cuStreamQuery(CuStream /*stream*/) { return CuResult::not_supported; }
  virtual CuResult cuLaunchHostFunc(CuStream /*stream*/, CuHostFunction /*function*/,
                                    void* /*data*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuEventCreate(CuEvent* event, unsigned flags) = 0;
  virtual CuResult cuEventDestroy(CuEvent event) = 0;
  virtual CuResult cuEventRecord(CuEvent event, CuStream stream) = 0;
  virtual CuResult cuEventQuery(CuEvent /*event*/) { return CuResult::not_supported; }
  virtual CuResult cuEventSynchronize(CuEvent /*event*/) { return CuResult::not_supported; }
  virtual CuResult cuEventElapsedTime(float* /*milliseconds*/, CuEvent /*start*/, CuEvent /*end*/) {
    return CuResult::not_supported;
  }

  /// `parameters` points to one pointer per kernel parameter, as in the public API.
  struct LaunchConfig {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1;
    unsigned block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    CuStream stream = nullptr;
  };
  virtual CuResult cuLaunchKernel(CuFunction function, const LaunchConfig& config,
                                  void** parameters) = 0;
  virtual CuResult cuLaunchKernelEx(const LaunchConfig& config, const LaunchAttribute* attributes,
                                    unsigned attribute_count, CuFunction function,
                                    void** parameters) = 0;
  // NOLINTEND(readability-identifier-naming)

  /// What cuModuleLoadData has to say of the last image it refused ("" when it accepted it): the
  /// JIT's error log.
  virtual const char* jit_error_log() = 0;

  /// Copies and fills from now on are part of `call` on `rank` and bear its name in faults; a null
  /// call ends that. For collectives, which are made of them; a real driver has no use for it.
  virtual void name_work(const char* /*call*/, std::uint32_t /*rank*/) {}
};

}  // namespace cpverify::gpu
