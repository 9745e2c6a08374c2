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
#include "gpu/handle_table.hpp"
#include "sim/check/coverage_observer.hpp"
#include "sim/driver/executor.hpp"
#include "sim/driver/fault_log.hpp"
#include "sim/driver/sim_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {

struct DriverEvent {
  const Context* context = nullptr;
  Marker marker;
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

  gpu::CuResult cuModuleLoadData(gpu::CuModule* module, const void* image) override;
  gpu::CuResult cuModuleUnload(gpu::CuModule module) override;
  gpu::CuResult cuModuleGetFunction(gpu::CuFunction* function, gpu::CuModule module,
                                    const char* name) override;
  gpu::CuResult cuFuncSetAttribute(gpu::CuFunction function, int attribute, int value) override;

  gpu::CuResult cuTensorMapEncodeTiled(gpu::CuTensorMap* map,
                                       const gpu::CuTiledTensor& tensor) override;

  gpu::CuResult cuMemAlloc(gpu::CuDevicePtr* pointer, std::size_t size_bytes) override;
  gpu::CuResult cuMemFree(gpu::CuDevicePtr pointer) override;
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
  gpu::CuResult cuMemsetD32Async(gpu::CuDevicePtr target, unsigned value, std::size_t count,
                                 gpu::CuStream stream) override;

  gpu::CuResult cuStreamCreate(gpu::CuStream* stream, unsigned flags) override;
  gpu::CuResult cuStreamDestroy(gpu::CuStream stream) override;
  gpu::CuResult cuStreamSynchronize(gpu::CuStream stream) override;
  gpu::CuResult cuStreamWaitEvent(gpu::CuStream stream, gpu::CuEvent event,
                                  unsigned flags) override;
  gpu::CuResult cuEventCreate(gpu::CuEvent* event, unsigned flags) override;
  gpu::CuResult cuEventDestroy(gpu::CuEvent event) override;
  gpu::CuResult cuEventRecord(gpu::CuEvent event, gpu::CuStream stream) override;

  gpu::CuResult cuLaunchKernel(gpu::CuFunction function, const LaunchConfig& config,
                               void** parameters) override;
  gpu::CuResult cuLaunchKernelEx(const LaunchConfig& config, const gpu::LaunchAttribute* attributes,
                                 unsigned attribute_count, gpu::CuFunction function,
                                 void** parameters) override;
  const char* jit_error_log() override { return jit_error_log_.c_str(); }

 private:
  /// The context behind a handle while its device is retained, else null.
  [[nodiscard]] Context* live_context(gpu::CuContext handle) const noexcept;
  /// not_initialized, invalid_context, the context's sticky error, or success.
  [[nodiscard]] gpu::CuResult current_status() const noexcept;
  /// As current_status(), then for the stream; sets `target` on success.
  [[nodiscard]] gpu::CuResult find_stream(gpu::CuStream handle, Stream*& target) const noexcept;
  [[nodiscard]] gpu::CuResult enqueue_copy(const char* call, const CopyWork& work,
                                           const Context& target, const Context& source,
                                           Stream& stream);
  [[nodiscard]] gpu::CuResult enqueue_fill(const char* call, FillWork work, gpu::CuStream stream);
  void destroy(Context& context);

  SimOptions options_;
  GlobalMemory memory_;  ///< Before what holds memory: modules.
  FaultLog faults_;
  CoverageObserver coverage_;
  Executor executor_;
  gpu::HandleTable<gpu::CuContext, Context> contexts_;
  std::vector<gpu::CuContext> context_of_device_;
  Streams streams_;
  gpu::HandleTable<gpu::CuEvent, DriverEvent> events_;
  gpu::HandleTable<gpu::CuModule, DriverModule> modules_;
  gpu::HandleTable<gpu::CuFunction, DriverFunction> functions_;
  std::map<gpu::CuDevicePtr, const Context*> allocations_;  ///< Of cuMemAlloc, not of modules.
  gpu::CuContext current_ = nullptr;
  bool is_initialised_ = false;
  std::string jit_error_log_;
};

}  // namespace cpverify::sim
