#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"

namespace cpverify::test_support {

/// The primary context of a device and a stream in it, for tests against a DriverApi. The helpers
/// expect success; what is tested for failure is called on the driver itself.
class DeviceSession {
 public:
  DeviceSession(gpu::DriverApi& driver, int ordinal) : driver_{&driver}, ordinal_{ordinal} {
    EXPECT_EQ(driver.cuInit(0), gpu::CuResult::success);
    EXPECT_EQ(driver.cuDevicePrimaryCtxRetain(&context, ordinal), gpu::CuResult::success);
    use();
    EXPECT_EQ(driver.cuStreamCreate(&stream, gpu::kStreamNonBlocking), gpu::CuResult::success);
  }
  ~DeviceSession() { EXPECT_EQ(driver_->cuDevicePrimaryCtxRelease(ordinal_), success()); }
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  gpu::CuContext context = nullptr;
  gpu::CuStream stream = nullptr;

  void use() { EXPECT_EQ(driver_->cuCtxSetCurrent(context), success()); }

  gpu::CuDevicePtr allocate(std::size_t size_bytes) {
    use();
    gpu::CuDevicePtr pointer = 0;
    EXPECT_EQ(driver_->cuMemAlloc(&pointer, size_bytes), success());
    return pointer;
  }

  template <class Value>
  void upload(gpu::CuDevicePtr target, const std::vector<Value>& values) {
    use();
    EXPECT_EQ(
        driver_->cuMemcpyHtoDAsync(target, values.data(), values.size() * sizeof(Value), stream),
        success());
  }

  template <class Value>
  gpu::CuDevicePtr allocate_with(const std::vector<Value>& values) {
    const gpu::CuDevicePtr pointer = allocate(values.size() * sizeof(Value));
    upload(pointer, values);
    return pointer;
  }

  template <class Value>
  std::vector<Value> download(gpu::CuDevicePtr source, std::size_t count) {
    use();
    std::vector<Value> values(count);
    EXPECT_EQ(driver_->cuMemcpyDtoHAsync(values.data(), source, count * sizeof(Value), stream),
              success());
    EXPECT_EQ(driver_->cuStreamSynchronize(stream), success());
    return values;
  }

 private:
  static constexpr gpu::CuResult success() { return gpu::CuResult::success; }

  gpu::DriverApi* driver_;
  int ordinal_;
};

}  // namespace cpverify::test_support
