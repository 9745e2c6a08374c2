#include "run/rank_device.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/error.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "gpu/check.hpp"
#include "gpu/driver_api.hpp"
#include "support/check.hpp"

namespace cpverify::run {
namespace {

using gpu::cuda_check;
using gpu::CuResult;

/// Dynamic shared memory that a launch gets without asking. Source: CUDA C++ Programming Guide,
/// "Compute capabilities", table of technical specifications.
constexpr std::uint32_t kDefaultDynamicSharedBytes = 48 * 1024;

/// Modules for sm_90a, which only nvcc compiles: into the folder kernels-nvcc beside the other
/// kernels, which is empty where there is no nvcc.
constexpr std::string_view kNvccModule = "attention_hopper";
constexpr const char* kNvccFolder = "kernels-nvcc";

std::string read_nvcc_kernel_file(const std::string& directory, const std::string& module) {
  const std::filesystem::path given = std::filesystem::absolute(directory).lexically_normal();
  const std::filesystem::path folder = given.has_filename() ? given : given.parent_path();
  const std::filesystem::path path = folder.parent_path() / kNvccFolder / (module + ".ptx");
  std::ifstream file{path, std::ios::binary};
  if (!file) {
    throw EnvironmentError{fmt::format(
        "kernel file {} is missing or unreadable; {} is for sm_90a and was built only if nvcc was "
        "found: install the compiler of CUDA 12 or later, configure again (CPVERIFY_NVCC names it "
        "where it is not on the path) and build the target cpverify_kernels",
        path.string(), module)};
  }
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

std::string read_kernel_file(const std::string& directory, const std::string& module) {
  const std::filesystem::path path = std::filesystem::path{directory} / (module + ".ptx");
  std::ifstream file{path, std::ios::binary};
  if (!file && module.find(kNvccModule) != std::string::npos) {
    return read_nvcc_kernel_file(directory, module);
  }
  if (!file) {
    throw EnvironmentError{fmt::format(
        "kernel file {} is missing or unreadable; build the target cpverify_kernels or pass the "
        "directory that holds it",
        path.string())};
  }
  return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
}

/// Storage and pointers of kernel parameters as cuLaunchKernel wants them.
class PackedArguments {
 public:
  PackedArguments(const std::vector<KernelArgument>& arguments, const RankDevice& device) {
    words_.reserve(arguments.size());
    for (const KernelArgument& argument : arguments) words_.push_back(word(argument, device));
    for (std::uint64_t& value : words_) pointers_.push_back(&value);
  }
  [[nodiscard]] void** pointers() noexcept { return pointers_.data(); }

 private:
  /// Little endian: the low bytes of the word are the parameter whatever its size.
  static std::uint64_t word(const KernelArgument& argument, const RankDevice& device) {
    if (const auto* place = std::get_if<BufferRef>(&argument)) return device.address(*place);
    if (const auto* value = std::get_if<std::int32_t>(&argument)) {
      return static_cast<std::uint32_t>(*value);
    }
    if (const auto* value = std::get_if<std::int64_t>(&argument)) {
      return static_cast<std::uint64_t>(*value);
    }
    return __builtin_bit_cast(std::uint32_t, std::get<float>(argument));
  }

  std::vector<std::uint64_t> words_;
  std::vector<void*> pointers_;
};

}  // namespace

RankDevice::RankDevice(gpu::DriverApi& driver, std::uint32_t ordinal) : driver_{driver} {
  cuda_check(driver_.cuDeviceGet(&device_, static_cast<int>(ordinal)), "cuDeviceGet");
  cuda_check(driver_.cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
  make_current();
  cuda_check(driver_.cuStreamCreate(&stream_, gpu::kStreamNonBlocking), "cuStreamCreate");
}

// Results are ignored: after a fault every call fails, and there is nobody left to tell.
RankDevice::~RankDevice() {
  static_cast<void>(driver_.cuCtxSetCurrent(context_));
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (is_owned_[i]) release(buffers_[i]);
  }
  for (auto& entry : pools_) release(entry.second);
  for (const auto& entry : modules_) static_cast<void>(driver_.cuModuleUnload(entry.second));
  forget_events();
  for (const gpu::CuStream stream : more_streams_) {
    static_cast<void>(driver_.cuStreamDestroy(stream));
  }
  static_cast<void>(driver_.cuStreamDestroy(stream_));
  static_cast<void>(driver_.cuDevicePrimaryCtxRelease(device_));
}

void RankDevice::make_current() {
  cuda_check(driver_.cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

void RankDevice::forget_events() {
  for (const gpu::CuEvent event : events_) static_cast<void>(driver_.cuEventDestroy(event));
  events_.clear();
}

void RankDevice::begin_operations(const std::vector<Operation>& operations) {
  make_current();
  forget_events();
  std::size_t streams = 1;
  for (const Operation& operation : operations) {
    streams = std::max(streams, operation.stream + std::size_t{1});
  }
  if (streams == 1) return;
  while (more_streams_.size() + 1 < streams) {
    gpu::CuStream stream = nullptr;
    cuda_check(driver_.cuStreamCreate(&stream, gpu::kStreamNonBlocking), "cuStreamCreate");
    more_streams_.push_back(stream);
  }
  // One more than operations: the last is the end of the uploads.
  for (std::size_t i = 0; i <= operations.size(); ++i) {
    gpu::CuEvent event = nullptr;
    cuda_check(driver_.cuEventCreate(&event, gpu::kEventDisableTiming), "cuEventCreate");
    events_.push_back(event);
  }
  cuda_check(driver_.cuEventRecord(events_.back(), stream_), "cuEventRecord");
  for (const gpu::CuStream stream : more_streams_) {
    cuda_check(driver_.cuStreamWaitEvent(stream, events_.back(), 0), "cuStreamWaitEvent");
  }
}

gpu::CuStream RankDevice::begin(const Operation& operation) {
  make_current();
  const gpu::CuStream stream =
      operation.stream == 0 ? stream_ : more_streams_.at(operation.stream - 1);
  for (const std::uint32_t before : operation.after) {
    CPVERIFY_CHECK(before < events_.size());
    cuda_check(driver_.cuStreamWaitEvent(stream, events_[before], 0), "cuStreamWaitEvent");
  }
  return stream;
}

void RankDevice::end(const Operation& operation, std::size_t index) {
  if (events_.empty()) return;
  make_current();
  const gpu::CuStream stream =
      operation.stream == 0 ? stream_ : more_streams_.at(operation.stream - 1);
  cuda_check(driver_.cuEventRecord(events_.at(index), stream), "cuEventRecord");
}

NamedAllocation RankDevice::allocate(const Buffer& buffer) {
  NamedAllocation allocation{buffer.name, buffer.dtype, 0, 0};
  allocation.size_bytes = static_cast<std::size_t>(buffer.size_elems()) * size_bytes(buffer.dtype);
  if (allocation.size_bytes == 0) return allocation;
  cuda_check(driver_.cuMemAlloc(&allocation.address, allocation.size_bytes), "cuMemAlloc");
  return allocation;
}

void RankDevice::release(NamedAllocation& allocation) {
  if (allocation.address != 0) static_cast<void>(driver_.cuMemFree(allocation.address));
  allocation.address = 0;
}

void RankDevice::ensure_pool(const Buffer& buffer) {
  CPVERIFY_CHECK(buffer.role == BufferRole::kv_pool);
  make_current();
  if (pools_.find(buffer.name) == pools_.end()) pools_.emplace(buffer.name, allocate(buffer));
}

void RankDevice::begin_step(const std::vector<Buffer>& buffers) {
  make_current();
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    if (is_owned_[i]) release(buffers_[i]);
  }
  buffers_.clear();
  is_owned_.clear();
  for (const Buffer& buffer : buffers) {
    const bool is_pool = buffer.role == BufferRole::kv_pool;
    if (is_pool) ensure_pool(buffer);
    buffers_.push_back(is_pool ? pools_.at(buffer.name) : allocate(buffer));
    is_owned_.push_back(!is_pool);
  }
}

void RankDevice::upload(const NamedAllocation& target, const std::vector<std::byte>& bytes) {
  CPVERIFY_CHECK(bytes.size() == target.size_bytes);
  if (target.size_bytes == 0) return;
  make_current();
  cuda_check(driver_.cuMemcpyHtoDAsync(target.address, bytes.data(), bytes.size(), stream_),
             "cuMemcpyHtoDAsync");
}

void RankDevice::fill_bytes(const NamedAllocation& target, unsigned char value) {
  if (target.size_bytes == 0) return;
  make_current();
  cuda_check(driver_.cuMemsetD8Async(target.address, value, target.size_bytes, stream_),
             "cuMemsetD8Async");
}

CuResult RankDevice::download(const NamedAllocation& source, std::vector<std::byte>& bytes) {
  bytes.resize(source.size_bytes);
  if (source.size_bytes == 0) return CuResult::success;
  make_current();
  const CuResult copied =
      driver_.cuMemcpyDtoHAsync(bytes.data(), source.address, source.size_bytes, stream_);
  return copied == CuResult::success ? driver_.cuStreamSynchronize(stream_) : copied;
}

CuResult RankDevice::synchronize() {
  make_current();
  CuResult result = driver_.cuStreamSynchronize(stream_);
  for (const gpu::CuStream stream : more_streams_) {
    const CuResult more = driver_.cuStreamSynchronize(stream);
    if (result == CuResult::success) result = more;
  }
  return result;
}

CuResult RankDevice::launch(const Launch& launch, gpu::CuStream stream,
                            const std::string& kernel_directory) {
  make_current();
  const gpu::CuFunction kernel = function(launch, kernel_directory);
  if (launch.shared_bytes > kDefaultDynamicSharedBytes) {
    const CuResult allowed = driver_.cuFuncSetAttribute(
        kernel, gpu::kFuncAttributeMaxDynamicSharedBytes, static_cast<int>(launch.shared_bytes));
    if (allowed != CuResult::success) return allowed;
  }
  gpu::DriverApi::LaunchConfig config;
  config.grid_x = launch.grid[0];
  config.grid_y = launch.grid[1];
  config.grid_z = launch.grid[2];
  config.block_x = launch.block[0];
  config.block_y = launch.block[1];
  config.block_z = launch.block[2];
  config.shared_bytes = launch.shared_bytes;
  config.stream = stream;
  PackedArguments arguments{launch.arguments, *this};
  return driver_.cuLaunchKernel(kernel, config, arguments.pointers());
}

CuResult RankDevice::fill(const Fill& fill, gpu::CuStream stream) {
  if (fill.count == 0) return CuResult::success;
  make_current();
  return driver_.cuMemsetD32Async(address(fill.target), fill.pattern,
                                  static_cast<std::size_t>(fill.count), stream);
}

CuResult RankDevice::copy(const Copy& copy, gpu::CuStream stream) {
  if (copy.bytes == 0) return CuResult::success;
  make_current();
  return driver_.cuMemcpyDtoDAsync(address(copy.target), address(copy.source),
                                   static_cast<std::size_t>(copy.bytes), stream);
}

void RankDevice::free_buffer(BufferId buffer) {
  const NamedAllocation& target = allocation(buffer);
  if (target.address == 0 || !is_owned_[buffer.value()]) return;
  make_current();
  cuda_check(driver_.cuMemFree(target.address), "cuMemFree");
  is_owned_[buffer.value()] = false;
}

bool RankDevice::is_freed(BufferId buffer) const {
  return allocation(buffer).address != 0 && !is_owned_[buffer.value()];
}

const NamedAllocation& RankDevice::allocation(BufferId buffer) const {
  CPVERIFY_CHECK(buffer.value() < buffers_.size());
  return buffers_[buffer.value()];
}

const NamedAllocation& RankDevice::pool(const std::string& name) const {
  const auto found = pools_.find(name);
  CPVERIFY_CHECK(found != pools_.end());
  return found->second;
}

gpu::CuDevicePtr RankDevice::address(const BufferRef& place) const {
  const NamedAllocation& target = allocation(place.buffer);
  const auto offset = static_cast<std::uint64_t>(place.offset_elems) * size_bytes(target.dtype);
  return target.address + offset;
}

const NamedAllocation* RankDevice::find_allocation(std::uint64_t address) const {
  if (address == 0) return nullptr;
  for (const NamedAllocation& candidate : buffers_) {
    if (candidate.address == address) return &candidate;
  }
  for (const auto& entry : pools_) {
    if (entry.second.address == address) return &entry.second;
  }
  return nullptr;
}

gpu::CuFunction RankDevice::function(const Launch& launch, const std::string& kernel_directory) {
  auto found = modules_.find(launch.module);
  if (found == modules_.end()) {
    const gpu::CuModule module = load_module(launch.module, kernel_directory);
    found = modules_.emplace(launch.module, module).first;
  }
  gpu::CuFunction kernel = nullptr;
  const CuResult result = driver_.cuModuleGetFunction(&kernel, found->second, launch.entry.c_str());
  if (result == CuResult::not_found) {
    throw InputError{{launch.module + ".ptx", 0, 0},
                     fmt::format("has no entry '{}'", launch.entry)};
  }
  cuda_check(result, "cuModuleGetFunction");
  return kernel;
}

gpu::CuModule RankDevice::load_module(const std::string& name,
                                      const std::string& kernel_directory) {
  const std::string text = read_kernel_file(kernel_directory, name);
  gpu::CuModule module = nullptr;
  const CuResult result = driver_.cuModuleLoadData(&module, text.c_str());
  if (result == CuResult::invalid_ptx || result == CuResult::invalid_source) {
    throw InputError{{name + ".ptx", 0, 0}, driver_.jit_error_log()};
  }
  cuda_check(result, "cuModuleLoadData");
  return module;
}

}  // namespace cpverify::run
