#include "contract/driver/driver_contract.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"
#include "support/device_session.hpp"
#include "support/test_kernels.hpp"

namespace cpverify::contract {
namespace {

using gpu::CuContext;
using gpu::CuDevicePtr;
using gpu::CuEvent;
using gpu::CuFunction;
using gpu::CuModule;
using gpu::CuResult;
using gpu::CuStream;
using test_support::DeviceSession;
using testing::Each;
using testing::ElementsAre;

using Words = std::vector<std::uint32_t>;

CuFunction load(gpu::DriverApi& driver, const char* ptx, const char* entry) {
  CuModule module = nullptr;
  CuFunction function = nullptr;
  EXPECT_EQ(driver.cuModuleLoadData(&module, ptx), CuResult::success) << driver.jit_error_log();
  EXPECT_EQ(driver.cuModuleGetFunction(&function, module, entry), CuResult::success);
  return function;
}

CuResult launch_add(gpu::DriverApi& driver, CuFunction add, CuStream stream, CuDevicePtr pointer,
                    std::uint32_t count, std::uint32_t value) {
  gpu::DriverApi::LaunchConfig config;
  config.grid_x = (count + 63) / 64;
  config.block_x = 64;
  config.stream = stream;
  std::array<void*, 3> parameters{&pointer, &count, &value};
  return driver.cuLaunchKernel(add, config, parameters.data());
}

TEST_P(DriverContract, WantsInitialisationFirst) {
  int count = 0;
  EXPECT_EQ(driver_->cuDeviceGetCount(&count), CuResult::not_initialized);
  EXPECT_EQ(driver_->cuInit(1), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuInit(0), CuResult::success);
  EXPECT_EQ(driver_->cuDeviceGetCount(&count), CuResult::success);
  EXPECT_GE(count, 2);
  int device = -1;
  EXPECT_EQ(driver_->cuDeviceGet(&device, count), CuResult::invalid_device);
  EXPECT_EQ(driver_->cuDeviceGet(&device, -1), CuResult::invalid_device);
}

TEST_P(DriverContract, WantsACurrentContext) {
  CuDevicePtr pointer = 0;
  ASSERT_EQ(driver_->cuInit(0), CuResult::success);
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, 4), CuResult::invalid_context);
  CuContext current = nullptr;
  EXPECT_EQ(driver_->cuCtxGetCurrent(&current), CuResult::success);
  EXPECT_EQ(current, nullptr);
  const DeviceSession session{*driver_, 1};
  EXPECT_EQ(driver_->cuCtxGetCurrent(&current), CuResult::success);
  EXPECT_EQ(current, session.context);
}

TEST_P(DriverContract, CopiesThereAndBack) {
  DeviceSession session{*driver_, 0};
  const Words values{1, 2, 0xffffffff, 4};
  EXPECT_EQ(session.download<std::uint32_t>(session.allocate_with(values), 4), values);
}

TEST_P(DriverContract, AllocationsDoNotOverlapAndAreAligned) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr first = session.allocate_with(Words{1});
  const CuDevicePtr second = session.allocate_with(Words{2});
  EXPECT_EQ(first % 256, 0U);
  EXPECT_EQ(second % 256, 0U);
  EXPECT_EQ(session.download<std::uint32_t>(first, 1), Words{1});
  EXPECT_EQ(session.download<std::uint32_t>(second, 1), Words{2});
}

TEST_P(DriverContract, RefusesImpossibleAllocations) {
  const DeviceSession session{*driver_, 0};
  CuDevicePtr pointer = 0;
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemAlloc(nullptr, 4), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, std::size_t{1} << 50), CuResult::out_of_memory);
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, std::numeric_limits<std::size_t>::max()),
            CuResult::out_of_memory);
}

TEST_P(DriverContract, FreesOnce) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate(16);
  EXPECT_EQ(driver_->cuMemFree(pointer + 4), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemFree(pointer), CuResult::success);
  EXPECT_EQ(driver_->cuMemFree(pointer), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemFree(0), CuResult::success);
}

TEST_P(DriverContract, CapturesAPageableSourceAtTheCall) {
  DeviceSession session{*driver_, 0};
  Words values{1, 2};
  const CuDevicePtr pointer = session.allocate_with(values);
  values = {8, 9};
  EXPECT_THAT(session.download<std::uint32_t>(pointer, 2), ElementsAre(1, 2));
}

TEST_P(DriverContract, CopiesOfNothingSucceed) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate(4);
  EXPECT_EQ(driver_->cuMemcpyHtoDAsync(pointer, nullptr, 0, session.stream), CuResult::success);
  EXPECT_EQ(driver_->cuMemcpyDtoHAsync(nullptr, pointer, 0, session.stream), CuResult::success);
  EXPECT_EQ(driver_->cuMemcpyDtoDAsync(pointer, pointer, 0, session.stream), CuResult::success);
  EXPECT_EQ(driver_->cuMemsetD32Async(pointer, 1, 0, session.stream), CuResult::success);
}

TEST_P(DriverContract, FillsBytesAndWordsAndLeavesTheNeighbours) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate_with(Words{1, 2, 3, 4});
  EXPECT_EQ(driver_->cuMemsetD32Async(pointer + 4, 0xdeadbeef, 1, session.stream),
            CuResult::success);
  EXPECT_EQ(driver_->cuMemsetD8Async(pointer + 9, 0xab, 2, session.stream), CuResult::success);
  // Word 2 is 00 00 00 03 from high to low byte; bytes 1 and 2 become ab.
  EXPECT_THAT(session.download<std::uint32_t>(pointer, 4),
              ElementsAre(1, 0xdeadbeef, 0x00abab03, 4));
  EXPECT_EQ(driver_->cuMemsetD32Async(pointer + 2, 1, 1, session.stream), CuResult::invalid_value);
}

TEST_P(DriverContract, CopiesBetweenDevices) {
  DeviceSession first{*driver_, 0};
  DeviceSession second{*driver_, 1};
  const CuDevicePtr source = first.allocate_with(Words{5, 6, 7});
  const CuDevicePtr target = second.allocate_with(Words{0, 0, 0});
  first.use();
  ASSERT_EQ(driver_->cuStreamSynchronize(first.stream), CuResult::success);
  second.use();
  EXPECT_EQ(driver_->cuMemcpyPeerAsync(target, second.context, source + 4, first.context, 8,
                                       second.stream),
            CuResult::success);
  EXPECT_THAT(second.download<std::uint32_t>(target, 3), ElementsAre(6, 7, 0));
  EXPECT_EQ(driver_->cuMemcpyDtoDAsync(target, source, 4, second.stream), CuResult::success);
  EXPECT_THAT(second.download<std::uint32_t>(target, 3), ElementsAre(5, 7, 0));
}

TEST_P(DriverContract, MakesAndDestroysStreamsAndEvents) {
  const DeviceSession session{*driver_, 0};
  CuStream stream = nullptr;
  CuEvent event = nullptr;
  EXPECT_EQ(driver_->cuStreamCreate(&stream, 2), CuResult::invalid_value);
  ASSERT_EQ(driver_->cuStreamCreate(&stream, 0), CuResult::success);
  ASSERT_EQ(driver_->cuEventCreate(&event, gpu::kEventDisableTiming), CuResult::success);
  EXPECT_EQ(driver_->cuEventRecord(event, stream), CuResult::success);
  EXPECT_EQ(driver_->cuStreamWaitEvent(stream, event, 0), CuResult::success);
  EXPECT_EQ(driver_->cuEventDestroy(event), CuResult::success);
  EXPECT_EQ(driver_->cuStreamDestroy(stream), CuResult::success);
}

TEST_P(DriverContract, AnEventOrdersTwoStreamsOnTwoDevices) {
  DeviceSession producer{*driver_, 1};
  DeviceSession consumer{*driver_, 0};  // Its stream is younger, its device comes first.
  const CuDevicePtr source = producer.allocate_with(Words(1000, 1));
  const CuDevicePtr target = consumer.allocate(4000);
  producer.use();
  const CuFunction add = load(*driver_, test_support::kAddPtx, "add");
  CuEvent event = nullptr;
  ASSERT_EQ(driver_->cuEventCreate(&event, gpu::kEventDisableTiming), CuResult::success);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(launch_add(*driver_, add, producer.stream, source, 1000, 1), CuResult::success);
  }
  ASSERT_EQ(driver_->cuEventRecord(event, producer.stream), CuResult::success);

  consumer.use();
  ASSERT_EQ(driver_->cuStreamWaitEvent(consumer.stream, event, 0), CuResult::success);
  ASSERT_EQ(driver_->cuMemcpyPeerAsync(target, consumer.context, source, producer.context, 4000,
                                       consumer.stream),
            CuResult::success);
  EXPECT_THAT(consumer.download<std::uint32_t>(target, 1000), Each(6U));
}

TEST_P(DriverContract, AWaitMeansTheRecordBeforeIt) {
  DeviceSession session{*driver_, 0};
  CuStream other = nullptr;
  CuEvent event = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, gpu::kStreamNonBlocking), CuResult::success);
  ASSERT_EQ(driver_->cuEventCreate(&event, 0), CuResult::success);
  // Never recorded: no wait. Recorded again later, on a stream that itself waits for us: the first
  // record counts, or the two streams would wait for each other.
  EXPECT_EQ(driver_->cuStreamWaitEvent(session.stream, event, 0), CuResult::success);
  EXPECT_EQ(driver_->cuEventRecord(event, session.stream), CuResult::success);
  EXPECT_EQ(driver_->cuStreamWaitEvent(other, event, 0), CuResult::success);
  EXPECT_EQ(driver_->cuEventRecord(event, other), CuResult::success);
  EXPECT_EQ(driver_->cuStreamWaitEvent(session.stream, event, 0), CuResult::success);
  EXPECT_EQ(driver_->cuStreamSynchronize(session.stream), CuResult::success);
}

TEST_P(DriverContract, TheDefaultStreamWaitsForBlockingStreams) {
  DeviceSession session{*driver_, 0};
  CuStream blocking = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&blocking, 0), CuResult::success);
  const CuDevicePtr pointer = session.allocate_with(Words{1});
  ASSERT_EQ(driver_->cuCtxSynchronize(), CuResult::success);
  const CuFunction add = load(*driver_, test_support::kAddPtx, "add");
  ASSERT_EQ(launch_add(*driver_, add, blocking, pointer, 1, 1), CuResult::success);
  ASSERT_EQ(driver_->cuMemsetD32Async(pointer, 10, 1, nullptr), CuResult::success);
  ASSERT_EQ(launch_add(*driver_, add, blocking, pointer, 1, 1), CuResult::success);
  ASSERT_EQ(driver_->cuStreamSynchronize(nullptr), CuResult::success);
  EXPECT_THAT(session.download<std::uint32_t>(pointer, 1), ElementsAre(11));
}

TEST_P(DriverContract, DestroyingAStreamKeepsItsWork) {
  DeviceSession session{*driver_, 0};
  CuStream other = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&other, gpu::kStreamNonBlocking), CuResult::success);
  const CuDevicePtr pointer = session.allocate(4);
  ASSERT_EQ(driver_->cuMemsetD32Async(pointer, 10, 1, other), CuResult::success);
  ASSERT_EQ(driver_->cuStreamDestroy(other), CuResult::success);
  ASSERT_EQ(driver_->cuCtxSynchronize(), CuResult::success);
  EXPECT_THAT(session.download<std::uint32_t>(pointer, 1), ElementsAre(10));
}

TEST_P(DriverContract, RunsAKernelOnPartOfABuffer) {
  DeviceSession session{*driver_, 1};
  const CuDevicePtr pointer = session.allocate_with(Words(70, 5));
  const CuFunction add = load(*driver_, test_support::kAddPtx, "add");
  // 65 threads need a second block of 64, most of which must do nothing.
  EXPECT_EQ(launch_add(*driver_, add, session.stream, pointer, 65, 3), CuResult::success);
  const Words result = session.download<std::uint32_t>(pointer, 70);
  EXPECT_THAT(Words(result.begin(), result.begin() + 65), Each(8U));
  EXPECT_THAT(Words(result.begin() + 65, result.end()), Each(5U));
}

TEST_P(DriverContract, CapturesParametersAtTheCallAndLaysThemOut) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr target = session.allocate(8);
  const CuFunction both = load(*driver_, test_support::kOddPtx, "both");
  gpu::DriverApi::LaunchConfig config;
  config.stream = session.stream;
  std::uint32_t first = 1;
  std::uint64_t large = 0x1'0000'0000;
  std::uint32_t last = 0x20;
  CuDevicePtr pointer = target;
  std::array<void*, 4> parameters{&first, &large, &last, &pointer};
  EXPECT_EQ(driver_->cuLaunchKernel(both, config, parameters.data()), CuResult::success);
  first = 99;
  large = 99;
  EXPECT_THAT(session.download<std::uint64_t>(target, 1), ElementsAre(0x1'0000'0021));
}

TEST_P(DriverContract, RefusesImpossibleLaunches) {
  DeviceSession session{*driver_, 0};
  const CuFunction abort = load(*driver_, test_support::kOddPtx, "abort");
  const auto result = [&](unsigned grid_x, unsigned grid_y, unsigned block_x, unsigned block_z) {
    gpu::DriverApi::LaunchConfig config;
    config.grid_x = grid_x;
    config.grid_y = grid_y;
    config.block_x = block_x;
    config.block_z = block_z;
    config.stream = session.stream;
    return driver_->cuLaunchKernel(abort, config, nullptr);
  };
  EXPECT_EQ(result(0, 1, 1, 1), CuResult::invalid_value);
  EXPECT_EQ(result(1, 65536, 1, 1), CuResult::invalid_value);
  EXPECT_EQ(result(1, 1, 0, 1), CuResult::invalid_value);
  EXPECT_EQ(result(1, 1, 1025, 1), CuResult::invalid_value);
  EXPECT_EQ(result(1, 1, 1, 65), CuResult::invalid_value);
  EXPECT_EQ(result(1, 1, 512, 4), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamSynchronize(session.stream), CuResult::success);
}

TEST_P(DriverContract, GivesMuchSharedMemoryOnlyWhenAsked) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr target = session.allocate(4);
  const CuFunction shared = load(*driver_, test_support::kOddPtx, "shared");
  gpu::DriverApi::LaunchConfig config;
  config.stream = session.stream;
  config.shared_bytes = 65536;
  CuDevicePtr pointer = target;
  std::array<void*, 1> parameters{&pointer};
  EXPECT_EQ(driver_->cuLaunchKernel(shared, config, parameters.data()), CuResult::invalid_value);
  const int attribute = gpu::kFuncAttributeMaxDynamicSharedBytes;
  EXPECT_EQ(driver_->cuFuncSetAttribute(shared, attribute, 1 << 30), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuFuncSetAttribute(shared, attribute, 65536), CuResult::success);
  EXPECT_EQ(driver_->cuLaunchKernel(shared, config, parameters.data()), CuResult::success);
  EXPECT_THAT(session.download<std::uint32_t>(target, 1), ElementsAre(99));
}

TEST_P(DriverContract, RefusesWhatIsNotPtxAndSaysWhere) {
  const DeviceSession session{*driver_, 0};
  CuModule module = nullptr;
  const char* text =
      ".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  no.such.op;\n}\n";
  EXPECT_EQ(driver_->cuModuleLoadData(&module, text), CuResult::invalid_ptx);
  EXPECT_THAT(std::string{driver_->jit_error_log()}, testing::HasSubstr("6"));
  EXPECT_EQ(driver_->cuModuleLoadData(&module, test_support::kAddPtx), CuResult::success);
  EXPECT_STREQ(driver_->jit_error_log(), "");
  CuFunction function = nullptr;
  EXPECT_EQ(driver_->cuModuleGetFunction(&function, module, "subtract"), CuResult::not_found);
  EXPECT_EQ(driver_->cuModuleUnload(module), CuResult::success);
}

struct FaultyLaunch {
  const char* entry;
  CuDevicePtr address;
  CuResult result;
};

void expect_sticky(gpu::DriverApi& driver, const FaultyLaunch& faulty) {
  const DeviceSession healthy{driver, 1};
  const DeviceSession session{driver, 0};
  const CuFunction function = load(driver, test_support::kOddPtx, faulty.entry);
  gpu::DriverApi::LaunchConfig config;
  config.stream = session.stream;
  CuDevicePtr pointer = faulty.address;
  std::array<void*, 1> parameters{&pointer};
  ASSERT_EQ(driver.cuLaunchKernel(function, config, parameters.data()), CuResult::success);
  EXPECT_EQ(driver.cuStreamSynchronize(session.stream), faulty.result);
  EXPECT_EQ(driver.cuStreamSynchronize(session.stream), faulty.result);
  EXPECT_EQ(driver.cuLaunchKernel(function, config, parameters.data()), faulty.result);
  CuDevicePtr fresh = 0;
  EXPECT_EQ(driver.cuMemAlloc(&fresh, 4), faulty.result);
  // The other device goes on.
  ASSERT_EQ(driver.cuCtxSetCurrent(healthy.context), CuResult::success);
  EXPECT_EQ(driver.cuMemAlloc(&fresh, 4), CuResult::success);
}

TEST_P(DriverContract, AWildStoreIsAnIllegalAddress) {
  expect_sticky(*driver_, {"store", 0x10, CuResult::illegal_address});
}

TEST_P(DriverContract, AnOddAddressIsMisaligned) {
  DeviceSession session{*driver_, 0};
  expect_sticky(*driver_, {"store", session.allocate(16) + 2, CuResult::misaligned_address});
}

TEST_P(DriverContract, ATrapIsALaunchFailure) {
  expect_sticky(*driver_, {"abort", 0, CuResult::launch_failed});
}

}  // namespace
}  // namespace cpverify::contract
