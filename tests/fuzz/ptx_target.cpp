#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/error.hpp"
#include "fuzz/targets.hpp"
#include "gpu/driver_api.hpp"
#include "sim/driver/sim_driver.hpp"
#include "sim/inspect/module_facts.hpp"

namespace cpverify::fuzz {
namespace {

constexpr std::uint64_t kInstructions = 2000;
constexpr std::size_t kMemoryBytes = std::size_t{1} << 22;
constexpr std::size_t kBufferBytes = 4096;
/// As the manual limits the parameters of a kernel.
constexpr std::size_t kParameterBytes = 32764;

/// Every parameter is the address of one buffer, followed by zeros.
void launch(gpu::DriverApi& driver, gpu::CuModule module, const sim::EntryFacts& entry,
            gpu::CuDevicePtr buffer) {
  gpu::CuFunction function = nullptr;
  if (driver.cuModuleGetFunction(&function, module, entry.info.name.c_str()) !=
      gpu::CuResult::success) {
    return;
  }
  std::vector<std::uint64_t> parameter(kParameterBytes / sizeof(std::uint64_t) + 1);
  parameter[0] = buffer;
  for (const sim::ParameterInfo& info : entry.info.parameters) {
    if (info.size_bytes > kParameterBytes) return;
  }
  std::vector<void*> parameters(entry.info.parameters.size() + 1, parameter.data());
  gpu::DriverApi::LaunchConfig config;
  config.block_x = 32;
  config.grid_x = 2;
  static_cast<void>(driver.cuLaunchKernel(function, config, parameters.data()));
  static_cast<void>(driver.cuCtxSynchronize());
}

}  // namespace

void run_ptx(std::string_view text) {
  const std::string ptx{text};
  sim::ModuleFacts facts;
  try {
    facts = sim::inspect_module(ptx, "fuzz.ptx");
  } catch (const InputError&) {
    return;
  }
  for (const sim::EntryFacts& entry : facts.entries) {
    // One driver for each launch: a fault ends a context.
    sim::SimOptions options;
    options.instruction_budget = kInstructions;
    options.memory_bytes = kMemoryBytes;
    options.is_race_checked = true;
    const std::unique_ptr<sim::SimDriver> driver = sim::make_sim_driver(options);
    gpu::CuContext context = nullptr;
    static_cast<void>(driver->cuInit(0));
    static_cast<void>(driver->cuDevicePrimaryCtxRetain(&context, 0));
    static_cast<void>(driver->cuCtxSetCurrent(context));
    gpu::CuDevicePtr buffer = 0;
    static_cast<void>(driver->cuMemAlloc(&buffer, kBufferBytes));
    gpu::CuModule module = nullptr;
    if (driver->cuModuleLoadData(&module, ptx.c_str()) != gpu::CuResult::success) return;
    launch(*driver, module, entry, buffer);
  }
}

}  // namespace cpverify::fuzz
