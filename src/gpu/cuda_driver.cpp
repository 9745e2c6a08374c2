#include "gpu/cuda_driver.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "gpu/driver_api.hpp"
#include "gpu/shared_library.hpp"

namespace cpverify::gpu {
namespace {

/// CU_JIT_ERROR_LOG_BUFFER and CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES.
constexpr int kJitErrorLogBuffer = 5;
constexpr int kJitErrorLogBufferSize = 6;
constexpr std::size_t kJitLogBytes = std::size_t{16} * 1024;

/// CUlaunchConfig.
struct PublicLaunchConfig {
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
  unsigned shared_bytes;
  CuStream stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(PublicLaunchConfig) == 56, "the layout of the public API");

class CudaDriver final : public DriverApi {
 public:
  explicit CudaDriver(const std::string& library);

  CuResult cuInit(unsigned flags) override { return init_(flags); }
  CuResult cuDeviceGetCount(int* count) override { return device_get_count_(count); }
  CuResult cuDeviceGet(CuDevice* device, int ordinal) override {
    return device_get_(device, ordinal);
  }
  CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice device) override {
    return device_get_attribute_(value, attribute, device);
  }
  CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) override {
    return device_primary_ctx_retain_(context, device);
  }
  CuResult cuDevicePrimaryCtxRelease(CuDevice device) override {
    return device_primary_ctx_release_(device);
  }
  CuResult cuCtxSetCurrent(CuContext context) override { return ctx_set_current_(context); }
  CuResult cuCtxGetCurrent(CuContext* context) override { return ctx_get_current_(context); }
  CuResult cuCtxSynchronize() override { return ctx_synchronize_(); }
  CuResult cuModuleLoadData(CuModule* module, const void* image) override;
  CuResult cuModuleUnload(CuModule module) override { return module_unload_(module); }
  CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) override {
    return module_get_function_(function, module, name);
  }
  CuResult cuFuncSetAttribute(CuFunction function, int attribute, int value) override {
    return func_set_attribute_(function, attribute, value);
  }
  CuResult cuTensorMapEncodeTiled(CuTensorMap* map, const CuTiledTensor& tensor) override;
  CuResult cuMemAlloc(CuDevicePtr* pointer, std::size_t size_bytes) override {
    return mem_alloc_(pointer, size_bytes);
  }
  CuResult cuMemFree(CuDevicePtr pointer) override { return mem_free_(pointer); }
  CuResult cuMemcpyHtoDAsync(CuDevicePtr target, const void* source, std::size_t size_bytes,
                             CuStream stream) override {
    return memcpy_htod_async_(target, source, size_bytes, stream);
  }
  CuResult cuMemcpyDtoHAsync(void* target, CuDevicePtr source, std::size_t size_bytes,
                             CuStream stream) override {
    return memcpy_dtoh_async_(target, source, size_bytes, stream);
  }
  CuResult cuMemcpyDtoDAsync(CuDevicePtr target, CuDevicePtr source, std::size_t size_bytes,
                             CuStream stream) override {
    return memcpy_dtod_async_(target, source, size_bytes, stream);
  }
  // NOLINTNEXTLINE(readability-function-size): the public signature.
  CuResult cuMemcpyPeerAsync(CuDevicePtr target, CuContext target_context, CuDevicePtr source,
                             CuContext source_context, std::size_t size_bytes,
                             CuStream stream) override {
    return memcpy_peer_async_(target, target_context, source, source_context, size_bytes, stream);
  }
  CuResult cuMemsetD8Async(CuDevicePtr target, unsigned char value, std::size_t count,
                           CuStream stream) override {
    return memset_d8_async_(target, value, count, stream);
  }
  CuResult cuMemsetD32Async(CuDevicePtr target, unsigned value, std::size_t count,
                            CuStream stream) override {
    return memset_d32_async_(target, value, count, stream);
  }
  CuResult cuStreamCreate(CuStream* stream, unsigned flags) override {
    return stream_create_(stream, flags);
  }
  CuResult cuStreamDestroy(CuStream stream) override { return stream_destroy_(stream); }
  CuResult cuStreamSynchronize(CuStream stream) override { return stream_synchronize_(stream); }
  CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) override {
    return stream_wait_event_(stream, event, flags);
  }
  CuResult cuEventCreate(CuEvent* event, unsigned flags) override {
    return event_create_(event, flags);
  }
  CuResult cuEventDestroy(CuEvent event) override { return event_destroy_(event); }
  CuResult cuEventRecord(CuEvent event, CuStream stream) override {
    return event_record_(event, stream);
  }
  CuResult cuLaunchKernel(CuFunction function, const LaunchConfig& config,
                          void** parameters) override {
    return launch_kernel_(function, config.grid_x, config.grid_y, config.grid_z, config.block_x,
                          config.block_y, config.block_z, config.shared_bytes, config.stream,
                          parameters, nullptr);
  }
  CuResult cuLaunchKernelEx(const LaunchConfig& config, const LaunchAttribute* attributes,
                            unsigned attribute_count, CuFunction function,
                            void** parameters) override;
  const char* jit_error_log() override { return jit_error_log_.c_str(); }

 private:
  // Signatures as in the CUDA Driver API manual, for the versions named in the constructor.
  SharedLibrary library_;
  CuResult (*init_)(unsigned) = nullptr;
  CuResult (*device_get_count_)(int*) = nullptr;
  CuResult (*device_get_)(CuDevice*, int) = nullptr;
  CuResult (*device_get_attribute_)(int*, int, CuDevice) = nullptr;
  CuResult (*device_primary_ctx_retain_)(CuContext*, CuDevice) = nullptr;
  CuResult (*device_primary_ctx_release_)(CuDevice) = nullptr;
  CuResult (*ctx_set_current_)(CuContext) = nullptr;
  CuResult (*ctx_get_current_)(CuContext*) = nullptr;
  CuResult (*ctx_synchronize_)() = nullptr;
  CuResult (*module_unload_)(CuModule) = nullptr;
  CuResult (*module_get_function_)(CuFunction*, CuModule, const char*) = nullptr;
  CuResult (*func_set_attribute_)(CuFunction, int, int) = nullptr;
  CuResult (*tensor_map_encode_tiled_)(CuTensorMap*, CuTensorMapDataType, unsigned, void*,
                                       const std::uint64_t*, const std::uint64_t*,
                                       const std::uint32_t*, const std::uint32_t*,
                                       CuTensorMapInterleave, CuTensorMapSwizzle,
                                       CuTensorMapL2Promotion, CuTensorMapOobFill) = nullptr;
  CuResult (*mem_alloc_)(CuDevicePtr*, std::size_t) = nullptr;
  CuResult (*mem_free_)(CuDevicePtr) = nullptr;
  CuResult (*memcpy_htod_async_)(CuDevicePtr, const void*, std::size_t, CuStream) = nullptr;
  CuResult (*memcpy_dtoh_async_)(void*, CuDevicePtr, std::size_t, CuStream) = nullptr;
  CuResult (*memcpy_dtod_async_)(CuDevicePtr, CuDevicePtr, std::size_t, CuStream) = nullptr;
  CuResult (*memcpy_peer_async_)(CuDevicePtr, CuContext, CuDevicePtr, CuContext, std::size_t,
                                 CuStream) = nullptr;
  CuResult (*memset_d8_async_)(CuDevicePtr, unsigned char, std::size_t, CuStream) = nullptr;
  CuResult (*memset_d32_async_)(CuDevicePtr, unsigned, std::size_t, CuStream) = nullptr;
  CuResult (*stream_create_)(CuStream*, unsigned) = nullptr;
  CuResult (*stream_destroy_)(CuStream) = nullptr;
  CuResult (*stream_synchronize_)(CuStream) = nullptr;
  CuResult (*stream_wait_event_)(CuStream, CuEvent, unsigned) = nullptr;
  CuResult (*event_create_)(CuEvent*, unsigned) = nullptr;
  CuResult (*event_destroy_)(CuEvent) = nullptr;
  CuResult (*event_record_)(CuEvent, CuStream) = nullptr;
  CuResult (*module_load_data_ex_)(CuModule*, const void*, unsigned, int*, void**) = nullptr;
  CuResult (*launch_kernel_)(CuFunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                             unsigned, CuStream, void**, void**) = nullptr;
  CuResult (*launch_kernel_ex_)(const PublicLaunchConfig*, CuFunction, void**, void**) = nullptr;
  std::string jit_error_log_;
};

// The header of the toolkit renames these functions to the versions whose ABI we declare; the names
// without a suffix are older ones.
CudaDriver::CudaDriver(const std::string& library)
    : library_{library, "install the NVIDIA driver 520 or newer, or run with --lane sim"} {
  library_.resolve(init_, "cuInit");
  library_.resolve(device_get_count_, "cuDeviceGetCount");
  library_.resolve(device_get_, "cuDeviceGet");
  library_.resolve(device_get_attribute_, "cuDeviceGetAttribute");
  library_.resolve(device_primary_ctx_retain_, "cuDevicePrimaryCtxRetain");
  library_.resolve(device_primary_ctx_release_, "cuDevicePrimaryCtxRelease_v2");
  library_.resolve(ctx_set_current_, "cuCtxSetCurrent");
  library_.resolve(ctx_get_current_, "cuCtxGetCurrent");
  library_.resolve(ctx_synchronize_, "cuCtxSynchronize");
  library_.resolve(module_unload_, "cuModuleUnload");
  library_.resolve(module_get_function_, "cuModuleGetFunction");
  library_.resolve(func_set_attribute_, "cuFuncSetAttribute");
  library_.resolve_if_present(tensor_map_encode_tiled_, "cuTensorMapEncodeTiled");
  library_.resolve(mem_alloc_, "cuMemAlloc_v2");
  library_.resolve(mem_free_, "cuMemFree_v2");
  library_.resolve(memcpy_htod_async_, "cuMemcpyHtoDAsync_v2");
  library_.resolve(memcpy_dtoh_async_, "cuMemcpyDtoHAsync_v2");
  library_.resolve(memcpy_dtod_async_, "cuMemcpyDtoDAsync_v2");
  library_.resolve(memcpy_peer_async_, "cuMemcpyPeerAsync");
  library_.resolve(memset_d8_async_, "cuMemsetD8Async");
  library_.resolve(memset_d32_async_, "cuMemsetD32Async");
  library_.resolve(stream_create_, "cuStreamCreate");
  library_.resolve(stream_destroy_, "cuStreamDestroy_v2");
  library_.resolve(stream_synchronize_, "cuStreamSynchronize");
  library_.resolve(stream_wait_event_, "cuStreamWaitEvent");
  library_.resolve(event_create_, "cuEventCreate");
  library_.resolve(event_destroy_, "cuEventDestroy_v2");
  library_.resolve(event_record_, "cuEventRecord");
  library_.resolve(module_load_data_ex_, "cuModuleLoadDataEx");
  library_.resolve(launch_kernel_, "cuLaunchKernel");
  library_.resolve(launch_kernel_ex_, "cuLaunchKernelEx");
}

CuResult CudaDriver::cuLaunchKernelEx(const LaunchConfig& config, const LaunchAttribute* attributes,
                                      unsigned attribute_count, CuFunction function,
                                      void** parameters) {
  const PublicLaunchConfig all{{config.grid_x, config.grid_y, config.grid_z},
                               {config.block_x, config.block_y, config.block_z},
                               config.shared_bytes,
                               config.stream,
                               attributes,
                               attribute_count};
  return launch_kernel_ex_(&all, function, parameters, nullptr);
}

CuResult CudaDriver::cuTensorMapEncodeTiled(CuTensorMap* map, const CuTiledTensor& tensor) {
  if (tensor_map_encode_tiled_ == nullptr) return CuResult::not_supported;
  // The driver takes a device address where it says pointer.
  return tensor_map_encode_tiled_(
      map, tensor.type, tensor.rank, reinterpret_cast<void*>(std::uintptr_t{tensor.address}),
      tensor.extents, tensor.strides, tensor.box, tensor.element_strides, tensor.interleave,
      tensor.swizzle, tensor.promotion, tensor.fill);
}

CuResult CudaDriver::cuModuleLoadData(CuModule* module, const void* image) {
  std::string log(kJitLogBytes, '\0');
  std::array<int, 2> options{kJitErrorLogBuffer, kJitErrorLogBufferSize};
  // The driver takes a number where it says pointer.
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(std::uintptr_t{kJitLogBytes})};
  const CuResult result = module_load_data_ex_(module, image, static_cast<unsigned>(options.size()),
                                               options.data(), values.data());
  jit_error_log_ = result == CuResult::success ? "" : log.c_str();
  return result;
}

}  // namespace

std::unique_ptr<DriverApi> open_cuda_driver(const std::string& library) {
  return std::make_unique<CudaDriver>(library);
}

}  // namespace cpverify::gpu
