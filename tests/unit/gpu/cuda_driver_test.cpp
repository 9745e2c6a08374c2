#include "gpu/cuda_driver.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"
#include "gpu/shared_library.hpp"

namespace cpverify::gpu {
namespace {

template <class Handle>
Handle handle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

class CudaDriverTest : public testing::Test {
 protected:
  CudaDriverTest() { fake_.resolve(last_call_, "fake_last_call"); }

  std::unique_ptr<DriverApi> driver_ = open_cuda_driver(CPVERIFY_FAKE_LIBCUDA);
  SharedLibrary fake_{CPVERIFY_FAKE_LIBCUDA, "build fake_libcuda"};
  const char* (*last_call_)() = nullptr;
};

TEST_F(CudaDriverTest, ForwardsDevicesAndContexts) {
  int number = 0;
  CuContext context = nullptr;
  driver_->cuInit(0);
  EXPECT_STREQ(last_call_(), "cuInit 0");
  driver_->cuDeviceGetCount(&number);
  EXPECT_EQ(number, 3);
  driver_->cuDeviceGet(&number, 2);
  EXPECT_STREQ(last_call_(), "cuDeviceGet 2");
  driver_->cuDeviceGetAttribute(&number, kDeviceAttributeComputeMajor, 2);
  EXPECT_STREQ(last_call_(), "cuDeviceGetAttribute 75 2");
  driver_->cuDevicePrimaryCtxRetain(&context, 1);
  EXPECT_STREQ(last_call_(), "cuDevicePrimaryCtxRetain 1");
  driver_->cuDevicePrimaryCtxRelease(1);
  EXPECT_STREQ(last_call_(), "cuDevicePrimaryCtxRelease 1");
  driver_->cuCtxSetCurrent(handle<CuContext>(9));
  EXPECT_STREQ(last_call_(), "cuCtxSetCurrent 9");
  driver_->cuCtxGetCurrent(&context);
  EXPECT_STREQ(last_call_(), "cuCtxGetCurrent");
  driver_->cuCtxSynchronize();
  EXPECT_STREQ(last_call_(), "cuCtxSynchronize");
}

TEST_F(CudaDriverTest, ForwardsMemoryCalls) {
  CuDevicePtr pointer = 0;
  const auto stream = handle<CuStream>(5);
  auto* host = handle<void*>(16);
  driver_->cuMemAlloc(&pointer, 64);
  EXPECT_STREQ(last_call_(), "cuMemAlloc 64");
  driver_->cuMemFree(7);
  EXPECT_STREQ(last_call_(), "cuMemFree 7");
  driver_->cuMemcpyHtoDAsync(1, host, 3, stream);
  EXPECT_STREQ(last_call_(), "cuMemcpyHtoDAsync 1 16 3 5");
  driver_->cuMemcpyDtoHAsync(host, 2, 3, stream);
  EXPECT_STREQ(last_call_(), "cuMemcpyDtoHAsync 16 2 3 5");
  driver_->cuMemcpyDtoDAsync(1, 2, 3, stream);
  EXPECT_STREQ(last_call_(), "cuMemcpyDtoDAsync 1 2 3 5");
  driver_->cuMemcpyPeerAsync(1, handle<CuContext>(11), 2, handle<CuContext>(12), 3, stream);
  EXPECT_STREQ(last_call_(), "cuMemcpyPeerAsync 1 11 2 12 3 5");
  driver_->cuMemsetD8Async(1, 255, 3, stream);
  EXPECT_STREQ(last_call_(), "cuMemsetD8Async 1 255 3 5");
  driver_->cuMemsetD32Async(1, 0xffffffffU, 3, stream);
  EXPECT_STREQ(last_call_(), "cuMemsetD32Async 1 4294967295 3 5");
}

TEST_F(CudaDriverTest, ForwardsTensorMaps) {
  CuTensorMap map;
  const std::array<std::uint64_t, 2> extents{64, 65};
  const std::array<std::uint64_t, 1> strides{128};
  const std::array<std::uint32_t, 2> box{32, 33};
  const std::array<std::uint32_t, 2> steps{1, 2};
  driver_->cuTensorMapEncodeTiled(
      &map, {CuTensorMapDataType::bf16, 2, 4096, extents.data(), strides.data(), box.data(),
             steps.data(), CuTensorMapInterleave::bytes_32, CuTensorMapSwizzle::bytes_128,
             CuTensorMapL2Promotion::bytes_64, CuTensorMapOobFill::nans});
  EXPECT_STREQ(last_call_(), "cuTensorMapEncodeTiled 9 2 4096 65 128 33 2 2 3 1 1");
}

TEST_F(CudaDriverTest, ForwardsStreamsAndEvents) {
  CuStream stream = nullptr;
  CuEvent event = nullptr;
  driver_->cuStreamCreate(&stream, kStreamNonBlocking);
  EXPECT_STREQ(last_call_(), "cuStreamCreate 1");
  driver_->cuStreamDestroy(handle<CuStream>(5));
  EXPECT_STREQ(last_call_(), "cuStreamDestroy 5");
  driver_->cuStreamSynchronize(handle<CuStream>(5));
  EXPECT_STREQ(last_call_(), "cuStreamSynchronize 5");
  driver_->cuStreamWaitEvent(handle<CuStream>(5), handle<CuEvent>(6), 0);
  EXPECT_STREQ(last_call_(), "cuStreamWaitEvent 5 6 0");
  driver_->cuEventCreate(&event, kEventDisableTiming);
  EXPECT_STREQ(last_call_(), "cuEventCreate 2");
  driver_->cuEventDestroy(handle<CuEvent>(6));
  EXPECT_STREQ(last_call_(), "cuEventDestroy 6");
  driver_->cuEventRecord(handle<CuEvent>(6), handle<CuStream>(5));
  EXPECT_STREQ(last_call_(), "cuEventRecord 6 5");
}

TEST_F(CudaDriverTest, ForwardsModulesAndLaunches) {
  CuFunction function = nullptr;
  driver_->cuModuleGetFunction(&function, handle<CuModule>(3), "saxpy");
  EXPECT_STREQ(last_call_(), "cuModuleGetFunction 3 saxpy");
  driver_->cuModuleUnload(handle<CuModule>(3));
  EXPECT_STREQ(last_call_(), "cuModuleUnload 3");
  driver_->cuFuncSetAttribute(handle<CuFunction>(4), kFuncAttributeMaxDynamicSharedBytes, 65536);
  EXPECT_STREQ(last_call_(), "cuFuncSetAttribute 4 8 65536");
  const DriverApi::LaunchConfig config{1, 2, 3, 4, 5, 6, 7, handle<CuStream>(8)};
  driver_->cuLaunchKernel(handle<CuFunction>(9), config, handle<void**>(10));
  EXPECT_STREQ(last_call_(), "cuLaunchKernel 9 1 2 3 4 5 6 7 8 10 0");
  const LaunchAttribute cluster{kLaunchAttributeCluster, 0, {11, 12, 13}};
  driver_->cuLaunchKernelEx(config, &cluster, 1, handle<CuFunction>(9), handle<void**>(10));
  EXPECT_STREQ(last_call_(), "cuLaunchKernelEx 9 1 2 3 4 5 6 7 8 1 4 11 12 13 10 0");
}

TEST_F(CudaDriverTest, KeepsTheErrorLogOfARefusedModuleOnly) {
  CuModule module = nullptr;
  EXPECT_EQ(driver_->cuModuleLoadData(&module, "bad"), CuResult::invalid_ptx);
  // Options 5 and 6 are the error log buffer and its size.
  EXPECT_STREQ(last_call_(), "cuModuleLoadDataEx bad 2 5 6 16384");
  EXPECT_STREQ(driver_->jit_error_log(), "ptxas says no");
  EXPECT_EQ(driver_->cuModuleLoadData(&module, "good"), CuResult::success);
  EXPECT_STREQ(driver_->jit_error_log(), "");
}

}  // namespace
}  // namespace cpverify::gpu
