#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "gpu/driver_api.hpp"
#include "sim/driver/sim_driver.hpp"
#include "support/device_session.hpp"
#include "support/test_kernels.hpp"

namespace cpverify::sim {

using Words = std::vector<std::uint32_t>;

/// Two simulated devices under racecheck, and kernel add() of both.
class DriverFixture : public testing::Test {
 protected:
  explicit DriverFixture(const ScheduleSpec& schedule = {}) {
    SimOptions options;
    options.device_count = 2;
    options.is_race_checked = true;
    options.schedule = schedule;
    driver_ = make_sim_driver(options);
  }

  static constexpr gpu::CuResult ok() { return gpu::CuResult::success; }

  gpu::CuFunction load(const char* entry = "add", const char* ptx = test_support::kAddPtx) {
    gpu::CuModule module = nullptr;
    gpu::CuFunction function = nullptr;
    EXPECT_EQ(driver_->cuModuleLoadData(&module, ptx), ok()) << driver_->jit_error_log();
    EXPECT_EQ(driver_->cuModuleGetFunction(&function, module, entry), ok());
    return function;
  }

  gpu::CuStream new_stream(unsigned flags = gpu::kStreamNonBlocking) {
    gpu::CuStream stream = nullptr;
    EXPECT_EQ(driver_->cuStreamCreate(&stream, flags), ok());
    return stream;
  }

  gpu::CuEvent new_event(unsigned flags = 0) {
    gpu::CuEvent event = nullptr;
    EXPECT_EQ(driver_->cuEventCreate(&event, flags), ok());
    return event;
  }

  /// Adds `value` to `count` words, one block.
  gpu::CuResult add(gpu::CuFunction function, gpu::CuStream stream, gpu::CuDevicePtr pointer,
                    std::uint32_t count, std::uint32_t value) {
    gpu::DriverApi::LaunchConfig config;
    config.block_x = 64;
    config.stream = stream;
    std::array<void*, 3> parameters{&pointer, &count, &value};
    return driver_->cuLaunchKernel(function, config, parameters.data());
  }

  /// `second` goes on after what `first` has so far.
  void order(gpu::CuStream first, gpu::CuStream second) {
    const gpu::CuEvent event = new_event(gpu::kEventDisableTiming);
    EXPECT_EQ(driver_->cuEventRecord(event, first), ok());
    EXPECT_EQ(driver_->cuStreamWaitEvent(second, event, 0), ok());
    EXPECT_EQ(driver_->cuEventDestroy(event), ok());
  }

  std::byte* pinned(std::size_t size_bytes) {
    void* pointer = nullptr;
    EXPECT_EQ(driver_->cuMemAllocHost(&pointer, size_bytes), ok());
    return static_cast<std::byte*>(pointer);
  }

  std::unique_ptr<SimDriver> driver_;
};

}  // namespace cpverify::sim
