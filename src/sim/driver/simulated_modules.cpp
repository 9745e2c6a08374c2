#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "gpu/driver_api.hpp"
#include "sim/driver/graph.hpp"
#include "sim/driver/launch_check.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"
#include "sim/isa/kernel_info.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {

using gpu::CuFunction;
using gpu::CuModule;
using gpu::CuResult;

CuResult SimulatedDriver::cuModuleLoadData(CuModule* module, const void* image) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (module == nullptr || image == nullptr) return CuResult::invalid_value;
  const Context* context = live_context(current_);
  auto loaded = std::make_unique<DriverModule>();
  loaded->context = context;
  jit_error_log_.clear();
  try {
    loaded->program =
        std::make_unique<Program>(parsed_modules_.parse(static_cast<const char*>(image)), memory_,
                                  static_cast<std::uint32_t>(context->device), options_.vectors);
  } catch (const InputError& error) {
    jit_error_log_ = error.what();
    return CuResult::invalid_ptx;
  }
  *module = modules_.insert(std::move(loaded));
  return CuResult::success;
}

CuResult SimulatedDriver::cuModuleUnload(CuModule module) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  const DriverModule* found = modules_.find(module);
  if (found == nullptr) return CuResult::invalid_handle;
  streams_.drain_all();
  functions_.erase_if([found](const DriverFunction& function) { return function.module == found; });
  modules_.erase(module);
  return CuResult::success;
}

CuResult SimulatedDriver::cuModuleGetFunction(CuFunction* function, CuModule module,
                                              const char* name) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  if (function == nullptr || name == nullptr) return CuResult::invalid_value;
  DriverModule* found = modules_.find(module);
  if (found == nullptr) return CuResult::invalid_handle;
  const Kernel* kernel = found->program->find(name);
  if (kernel == nullptr) return CuResult::not_found;
  auto place = found->functions.find(name);
  if (place == found->functions.end()) {
    auto created = std::make_unique<DriverFunction>();
    const auto device = static_cast<std::size_t>(found->context->device);
    created->context = contexts_.find(context_of_device_[device]);
    created->module = found;
    created->kernel = kernel;
    place = found->functions.emplace(name, functions_.insert(std::move(created))).first;
  }
  *function = place->second;
  return CuResult::success;
}

CuResult SimulatedDriver::cuFuncSetAttribute(CuFunction function, int attribute, int value) {
  const CuResult status = current_status();
  if (status != CuResult::success) return status;
  DriverFunction* found = functions_.find(function);
  if (found == nullptr) return CuResult::invalid_handle;
  if (attribute != gpu::kFuncAttributeMaxDynamicSharedBytes || value < 0) {
    return CuResult::invalid_value;
  }
  const std::uint32_t static_bytes = kernel_info(*found->kernel).static_shared_bytes;
  const auto dynamic_bytes = static_cast<std::uint32_t>(value);
  if (static_bytes > kSharedBytesMax || dynamic_bytes > kSharedBytesMax - static_bytes) {
    return CuResult::invalid_value;
  }
  found->shared_bytes_optin = dynamic_bytes;
  return CuResult::success;
}

CuResult SimulatedDriver::make_launch(const KernelNode& node,
                                      const std::array<std::uint32_t, 3>& cluster, NodeTask& task) {
  const DriverFunction* found = functions_.find(node.function);
  if (found == nullptr) return CuResult::invalid_handle;
  LaunchConfig config;
  config.grid_x = node.grid_x;
  config.grid_y = node.grid_y;
  config.grid_z = node.grid_z;
  config.block_x = node.block_x;
  config.block_y = node.block_y;
  config.block_z = node.block_z;
  config.shared_bytes = node.shared_bytes;
  const KernelInfo& kernel = kernel_info(*found->kernel);
  const CuResult status = check_launch(kernel, config, cluster, found->shared_bytes_optin);
  if (status != CuResult::success) return status;
  if (node.parameters == nullptr && !kernel.parameters.empty()) return CuResult::invalid_value;

  LaunchWork work;
  work.kernel = found->kernel;
  work.parameters = pack_parameters(kernel, node.parameters);
  work.request.grid = {node.grid_x, node.grid_y, node.grid_z};
  work.request.block = {node.block_x, node.block_y, node.block_z};
  work.request.cluster = cluster;
  work.request.shared_bytes = node.shared_bytes;
  work.request.shared_bytes_optin = found->shared_bytes_optin;
  work.request.instruction_budget = options_.instruction_budget;
  work.request.schedule = options_.schedule;
  work.request.mma_accumulation = options_.mma_accumulation;
  task.body = std::move(work);
  task.context = found->context;
  task.function = node.function;
  task.name = {kernel.name, fmt::format("kernel '{}'", kernel.name)};
  return CuResult::success;
}

CuResult SimulatedDriver::cuLaunchKernel(CuFunction function, const LaunchConfig& config,
                                         void** parameters) {
  return cuLaunchKernelEx(config, nullptr, 0, function, parameters);
}

CuResult SimulatedDriver::cuLaunchKernelEx(const LaunchConfig& config,
                                           const gpu::LaunchAttribute* attributes,
                                           unsigned attribute_count, CuFunction function,
                                           void** parameters) {
  Stream* queue = nullptr;
  CuResult status = find_stream(config.stream, queue);
  if (status != CuResult::success) return status;
  const DriverFunction* found = functions_.find(function);
  if (found == nullptr || found->context != queue->context) return CuResult::invalid_handle;
  std::array<std::uint32_t, 3> cluster{};
  status = read_attributes({attributes, attribute_count}, cluster);
  if (status != CuResult::success) return status;
  NodeTask task;
  status = make_launch({function, config.grid_x, config.grid_y, config.grid_z, config.block_x,
                        config.block_y, config.block_z, config.shared_bytes, parameters},
                       cluster, task);
  return status == CuResult::success ? submit(*queue, std::move(task)) : status;
}

}  // namespace cpverify::sim
