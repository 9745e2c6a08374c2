#include "contract/kernels/kernel_bench.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"
#include "sim/driver/sim_driver.hpp"

namespace cpverify::tests {
namespace {

using gpu::CuResult;

std::string text_of(const std::filesystem::path& path) {
  std::ifstream file{path, std::ios::binary};
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>{file}, {}};
}

void expect_success(CuResult result) {
  EXPECT_EQ(result, CuResult::success);
}

}  // namespace

KernelBench::KernelBench(const std::string& module, bool is_race_checked) {
  sim::SimOptions options;
  options.is_race_checked = is_race_checked;
  driver_ = sim::make_sim_driver(options);
  expect_success(driver_->cuInit(0));
  gpu::CuContext context = nullptr;
  expect_success(driver_->cuDevicePrimaryCtxRetain(&context, 0));
  expect_success(driver_->cuCtxSetCurrent(context));
  expect_success(driver_->cuStreamCreate(&stream_, gpu::kStreamNonBlocking));
  const std::string ptx = text_of(std::filesystem::path{CPVERIFY_BINARY_DIR} / (module + ".ptx"));
  EXPECT_EQ(driver_->cuModuleLoadData(&module_, ptx.c_str()), CuResult::success)
      << driver_->jit_error_log();
}

gpu::CuDevicePtr KernelBench::allocate(std::size_t size_bytes) {
  gpu::CuDevicePtr pointer = 0;
  expect_success(driver_->cuMemAlloc(&pointer, size_bytes));
  return pointer;
}

gpu::CuDevicePtr KernelBench::upload(std::span<const std::byte> bytes) {
  const gpu::CuDevicePtr pointer = allocate(bytes.size());
  write(pointer, bytes);
  return pointer;
}

void KernelBench::write(gpu::CuDevicePtr target, std::span<const std::byte> bytes) {
  expect_success(driver_->cuMemcpyHtoDAsync(target, bytes.data(), bytes.size(), stream_));
  expect_success(driver_->cuStreamSynchronize(stream_));
}

std::vector<std::byte> KernelBench::read(gpu::CuDevicePtr source, std::size_t size_bytes) {
  std::vector<std::byte> bytes(size_bytes);
  expect_success(driver_->cuMemcpyDtoHAsync(bytes.data(), source, size_bytes, stream_));
  expect_success(driver_->cuStreamSynchronize(stream_));
  return bytes;
}

void KernelBench::launch(const std::string& entry, gpu::DriverApi::LaunchConfig config,
                         std::vector<Argument> arguments) {
  gpu::CuFunction function = nullptr;
  ASSERT_EQ(driver_->cuModuleGetFunction(&function, module_, entry.c_str()), CuResult::success)
      << entry;
  std::vector<void*> parameters;
  parameters.reserve(arguments.size());
  for (Argument& argument : arguments) {
    parameters.push_back(std::visit([](auto& value) -> void* { return &value; }, argument));
  }
  if (config.block_x == 1) config.block_x = 128;
  if (config.shared_bytes > 48 * 1024) {
    expect_success(driver_->cuFuncSetAttribute(function, gpu::kFuncAttributeMaxDynamicSharedBytes,
                                               static_cast<int>(config.shared_bytes)));
  }
  config.stream = stream_;
  expect_success(driver_->cuLaunchKernel(function, config, parameters.data()));
  expect_success(driver_->cuStreamSynchronize(stream_));
}

std::vector<std::string> kernel_folders() {
  std::vector<std::string> folders{"kernels/"};
  if (std::filesystem::exists(std::filesystem::path{CPVERIFY_BINARY_DIR} / "kernels-nvcc")) {
    folders.emplace_back("kernels-nvcc/");
  }
  return folders;
}

}  // namespace cpverify::tests
