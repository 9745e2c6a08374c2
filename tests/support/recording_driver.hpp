#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gpu/driver_api.hpp"

namespace cpverify::test_support {

/// A driver without devices behind it: it writes down every call that enqueues work, with handles
/// as the numbers it gave out, and fails the calls it is told to. Contexts are 100 + device.
class RecordingDriver final : public gpu::DriverApi {
 public:
  explicit RecordingDriver(int device_count) : device_count_{device_count} {}

  std::vector<std::string> calls;  ///< "copy 100:5000 <- 101:6000 size 8 on 1" and the like.
  std::string failing;             ///< Name of the call that returns launch_failed.
  int live_events = 0;
  int live_contexts = 0;

  /// The calls that begin with a word.
  [[nodiscard]] std::vector<std::string> calls_of(const std::string& verb) const {
    std::vector<std::string> found;
    for (const std::string& call : calls) {
      if (call.rfind(verb + " ", 0) == 0) found.push_back(call);
    }
    return found;
  }

  gpu::CuResult cuInit(unsigned) override { return result("cuInit"); }
  gpu::CuResult cuDeviceGetCount(int* count) override {
    *count = device_count_;
    return result("cuDeviceGetCount");
  }
  gpu::CuResult cuDeviceGet(gpu::CuDevice* device, int ordinal) override {
    *device = ordinal;
    const bool is_known = ordinal >= 0 && ordinal < device_count_;
    return is_known ? result("cuDeviceGet") : gpu::CuResult::invalid_device;
  }
  gpu::CuResult cuDeviceGetAttribute(int*, int, gpu::CuDevice) override {
    return result("cuDeviceGetAttribute");
  }
  gpu::CuResult cuDevicePrimaryCtxRetain(gpu::CuContext* context, gpu::CuDevice device) override {
    *context =
        reinterpret_cast<gpu::CuContext>(std::uintptr_t{100} + static_cast<std::uintptr_t>(device));
    ++live_contexts;
    return result("cuDevicePrimaryCtxRetain");
  }
  gpu::CuResult cuDevicePrimaryCtxRelease(gpu::CuDevice) override {
    --live_contexts;
    return result("cuDevicePrimaryCtxRelease");
  }
  gpu::CuResult cuCtxSetCurrent(gpu::CuContext context) override {
    current_ = context;
    return result("cuCtxSetCurrent");
  }
  gpu::CuResult cuCtxGetCurrent(gpu::CuContext* context) override {
    *context = current_;
    return result("cuCtxGetCurrent");
  }
  gpu::CuResult cuCtxSynchronize() override { return result("cuCtxSynchronize"); }

  gpu::CuResult cuModuleLoadData(gpu::CuModule*, const void*) override {
    return result("cuModuleLoadData");
  }
  gpu::CuResult cuModuleUnload(gpu::CuModule) override { return result("cuModuleUnload"); }
  gpu::CuResult cuModuleGetFunction(gpu::CuFunction*, gpu::CuModule, const char*) override {
    return result("cuModuleGetFunction");
  }
  gpu::CuResult cuFuncSetAttribute(gpu::CuFunction, int, int) override {
    return result("cuFuncSetAttribute");
  }

  gpu::CuResult cuTensorMapEncodeTiled(gpu::CuTensorMap*, const gpu::CuTiledTensor&) override {
    return result("cuTensorMapEncodeTiled");
  }
  gpu::CuResult cuMemAlloc(gpu::CuDevicePtr*, std::size_t) override { return result("cuMemAlloc"); }
  gpu::CuResult cuMemFree(gpu::CuDevicePtr) override { return result("cuMemFree"); }
  gpu::CuResult cuMemcpyHtoDAsync(gpu::CuDevicePtr, const void*, std::size_t,
                                  gpu::CuStream) override {
    return result("cuMemcpyHtoDAsync");
  }
  gpu::CuResult cuMemcpyDtoHAsync(void*, gpu::CuDevicePtr, std::size_t, gpu::CuStream) override {
    return result("cuMemcpyDtoHAsync");
  }
  gpu::CuResult cuMemcpyDtoDAsync(gpu::CuDevicePtr, gpu::CuDevicePtr, std::size_t,
                                  gpu::CuStream) override {
    return result("cuMemcpyDtoDAsync");
  }
  gpu::CuResult cuMemcpyPeerAsync(gpu::CuDevicePtr target, gpu::CuContext target_context,
                                  gpu::CuDevicePtr source, gpu::CuContext source_context,
                                  std::size_t size_bytes, gpu::CuStream stream) override {
    calls.push_back(fmt::format("copy {}:{} <- {}:{} size {} on {}", number(target_context), target,
                                number(source_context), source, size_bytes, number(stream)));
    return result("cuMemcpyPeerAsync");
  }
  gpu::CuResult cuMemsetD8Async(gpu::CuDevicePtr, unsigned char, std::size_t,
                                gpu::CuStream) override {
    return result("cuMemsetD8Async");
  }
  gpu::CuResult cuMemsetD32Async(gpu::CuDevicePtr, unsigned, std::size_t, gpu::CuStream) override {
    return result("cuMemsetD32Async");
  }

  gpu::CuResult cuStreamCreate(gpu::CuStream*, unsigned) override {
    return result("cuStreamCreate");
  }
  gpu::CuResult cuStreamDestroy(gpu::CuStream) override { return result("cuStreamDestroy"); }
  gpu::CuResult cuStreamSynchronize(gpu::CuStream) override {
    return result("cuStreamSynchronize");
  }
  gpu::CuResult cuStreamWaitEvent(gpu::CuStream stream, gpu::CuEvent event, unsigned) override {
    calls.push_back(fmt::format("wait {} on {}", number(event), number(stream)));
    return result("cuStreamWaitEvent");
  }
  gpu::CuResult cuEventCreate(gpu::CuEvent* event, unsigned) override {
    *event = reinterpret_cast<gpu::CuEvent>(next_event_++);
    ++live_events;
    return result("cuEventCreate");
  }
  gpu::CuResult cuEventDestroy(gpu::CuEvent) override {
    --live_events;
    return result("cuEventDestroy");
  }
  gpu::CuResult cuEventRecord(gpu::CuEvent event, gpu::CuStream stream) override {
    calls.push_back(fmt::format("record {} on {}", number(event), number(stream)));
    return result("cuEventRecord");
  }
  gpu::CuResult cuLaunchKernelEx(const LaunchConfig&, const gpu::LaunchAttribute*, unsigned,
                                 gpu::CuFunction, void**) override {
    return result("cuLaunchKernelEx");
  }
  gpu::CuResult cuLaunchKernel(gpu::CuFunction, const LaunchConfig&, void**) override {
    return result("cuLaunchKernel");
  }
  const char* jit_error_log() override { return ""; }

 private:
  [[nodiscard]] gpu::CuResult result(const char* name) const {
    return failing == name ? gpu::CuResult::launch_failed : gpu::CuResult::success;
  }
  template <class Handle>
  static std::uintptr_t number(Handle handle) {
    return reinterpret_cast<std::uintptr_t>(handle);
  }

  int device_count_;
  gpu::CuContext current_ = nullptr;
  std::uintptr_t next_event_ = 1;
};

}  // namespace cpverify::test_support
