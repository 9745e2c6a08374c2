#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "sim/driver/sim_driver.hpp"

namespace cpverify::tests {

/// A kernel parameter: a pointer or s64, an s32, or an f32.
using Argument = std::variant<std::uint64_t, std::int32_t, float>;

/// One module loaded on one simulated GPU. Every driver call that fails is a test failure.
class KernelBench {
 public:
  /// `module` is a path in the build folder without extension, e.g. "kernels/rows".
  explicit KernelBench(const std::string& module, bool is_race_checked = false);

  /// Fresh memory that nobody has written.
  [[nodiscard]] gpu::CuDevicePtr allocate(std::size_t size_bytes);
  [[nodiscard]] gpu::CuDevicePtr upload(std::span<const std::byte> bytes);
  void write(gpu::CuDevicePtr target, std::span<const std::byte> bytes);
  [[nodiscard]] std::vector<std::byte> read(gpu::CuDevicePtr source, std::size_t size_bytes);

  template <class T>
  [[nodiscard]] gpu::CuDevicePtr upload(const std::vector<T>& values) {
    return upload(std::as_bytes(std::span{values}));
  }

  /// Runs to completion. A block size of 1 stands for 128, that of most of our kernels.
  void launch(const std::string& entry, gpu::DriverApi::LaunchConfig config,
              std::vector<Argument> arguments);

  /// Faults since the last call.
  [[nodiscard]] std::vector<Fault> take_faults() { return driver_->take_faults(); }

 private:
  std::unique_ptr<sim::SimDriver> driver_;
  gpu::CuModule module_ = nullptr;
  gpu::CuStream stream_ = nullptr;
};

/// "kernels/" and, where nvcc built them too, "kernels-nvcc/".
[[nodiscard]] std::vector<std::string> kernel_folders();

}  // namespace cpverify::tests
