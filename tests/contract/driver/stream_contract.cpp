// Streams and events as every driver has them.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "contract/driver/driver_contract.hpp"
#include "gpu/driver_api.hpp"
#include "support/device_session.hpp"

namespace cpverify::contract {
namespace {

using gpu::CuContext;
using gpu::CuEvent;
using gpu::CuResult;
using gpu::CuStream;
using test_support::DeviceSession;

TEST_P(DriverContract, StreamsSayHowTheyWereMade) {
  const DeviceSession session{*driver_, 1};
  int least = 1;
  int greatest = 1;
  ASSERT_EQ(driver_->cuCtxGetStreamPriorityRange(&least, &greatest), CuResult::success);
  EXPECT_LE(greatest, least);
  EXPECT_EQ(driver_->cuCtxGetStreamPriorityRange(nullptr, nullptr), CuResult::success);
  CuStream stream = nullptr;
  // Beyond the range it is the nearest.
  ASSERT_EQ(driver_->cuStreamCreateWithPriority(&stream, gpu::kStreamNonBlocking, greatest - 7),
            CuResult::success);
  int priority = 1;
  unsigned flags = 0;
  CuContext context = nullptr;
  EXPECT_EQ(driver_->cuStreamGetPriority(stream, &priority), CuResult::success);
  EXPECT_EQ(priority, greatest);
  EXPECT_EQ(driver_->cuStreamGetFlags(stream, &flags), CuResult::success);
  EXPECT_EQ(flags, gpu::kStreamNonBlocking);
  EXPECT_EQ(driver_->cuStreamGetCtx(stream, &context), CuResult::success);
  EXPECT_EQ(context, session.context);
  EXPECT_EQ(driver_->cuStreamGetFlags(nullptr, &flags), CuResult::success);
  EXPECT_EQ(flags, 0U);
  EXPECT_EQ(driver_->cuStreamGetPriority(stream, nullptr), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamGetFlags(stream, nullptr), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamGetCtx(stream, nullptr), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamCreateWithPriority(nullptr, 0, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamCreateWithPriority(&stream, 4, 0), CuResult::invalid_value);
}

TEST_P(DriverContract, AQueryComesTrueWithoutASynchronisation) {
  DeviceSession session{*driver_, 0};
  const gpu::CuDevicePtr words = session.allocate(64);
  ASSERT_EQ(driver_->cuCtxSynchronize(), CuResult::success);
  CuEvent event = nullptr;
  ASSERT_EQ(driver_->cuEventCreate(&event, 0), CuResult::success);
  EXPECT_EQ(driver_->cuEventQuery(event), CuResult::success);  // Never recorded.
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, session.stream), CuResult::success);
  ASSERT_EQ(driver_->cuEventRecord(event, session.stream), CuResult::success);
  while (driver_->cuEventQuery(event) == CuResult::not_ready) {
  }
  EXPECT_EQ(driver_->cuEventQuery(event), CuResult::success);
  EXPECT_EQ(driver_->cuStreamQuery(session.stream), CuResult::success);
  EXPECT_EQ(driver_->cuEventSynchronize(event), CuResult::success);
}

TEST_P(DriverContract, TimeGoesOnBetweenEvents) {
  DeviceSession session{*driver_, 0};
  const gpu::CuDevicePtr words = session.allocate(1 << 16);
  CuEvent start = nullptr;
  CuEvent end = nullptr;
  CuEvent untimed = nullptr;
  ASSERT_EQ(driver_->cuEventCreate(&start, 0), CuResult::success);
  ASSERT_EQ(driver_->cuEventCreate(&end, 0), CuResult::success);
  ASSERT_EQ(driver_->cuEventCreate(&untimed, gpu::kEventDisableTiming), CuResult::success);
  float elapsed = 0;
  EXPECT_EQ(driver_->cuEventElapsedTime(&elapsed, start, end), CuResult::invalid_handle);
  ASSERT_EQ(driver_->cuEventRecord(start, session.stream), CuResult::success);
  ASSERT_EQ(driver_->cuEventRecord(untimed, session.stream), CuResult::success);
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 1 << 16, session.stream), CuResult::success);
  ASSERT_EQ(driver_->cuEventRecord(end, session.stream), CuResult::success);
  ASSERT_EQ(driver_->cuEventSynchronize(end), CuResult::success);
  ASSERT_EQ(driver_->cuEventElapsedTime(&elapsed, start, end), CuResult::success);
  EXPECT_GT(elapsed, 0.0F);
  EXPECT_EQ(driver_->cuEventElapsedTime(&elapsed, start, untimed), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuEventElapsedTime(nullptr, start, end), CuResult::invalid_value);
}

TEST_P(DriverContract, RefusesHandlesOfNothing) {
  DeviceSession session{*driver_, 0};
  CuEvent event = nullptr;
  EXPECT_EQ(driver_->cuEventQuery(event), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuEventSynchronize(event), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuEventDestroy(event), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuEventRecord(event, session.stream), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuEventCreate(nullptr, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuEventCreate(&event, 0x80), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamCreate(nullptr, 0), CuResult::invalid_value);
  float elapsed = 0;
  EXPECT_EQ(driver_->cuEventElapsedTime(&elapsed, nullptr, nullptr), CuResult::invalid_handle);
}

TEST_P(DriverContract, AnEventBelongsToTheContextItWasMadeIn) {
  DeviceSession first{*driver_, 0};
  CuEvent event = nullptr;
  ASSERT_EQ(driver_->cuEventCreate(&event, 0), CuResult::success);
  DeviceSession second{*driver_, 1};
  EXPECT_EQ(driver_->cuEventRecord(event, second.stream), CuResult::invalid_handle);
  first.use();
  EXPECT_EQ(driver_->cuEventRecord(event, first.stream), CuResult::success);
  second.use();
  EXPECT_EQ(driver_->cuStreamWaitEvent(second.stream, event, 0), CuResult::success);
  EXPECT_EQ(driver_->cuStreamSynchronize(second.stream), CuResult::success);
}

TEST_P(DriverContract, TheDefaultStreamsHaveHandlesOfTheirOwn) {
  DeviceSession session{*driver_, 0};
  const gpu::CuDevicePtr words = session.allocate(8);
  auto* const legacy = reinterpret_cast<CuStream>(gpu::kStreamLegacy);
  auto* const per_thread = reinterpret_cast<CuStream>(gpu::kStreamPerThread);
  // The legacy stream and the per-thread stream order each other.
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 1, 2, per_thread), CuResult::success);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 2, 1, legacy), CuResult::success);
  ASSERT_EQ(driver_->cuStreamSynchronize(nullptr), CuResult::success);
  EXPECT_EQ(session.download<std::uint32_t>(words, 2), (std::vector<std::uint32_t>{2, 1}));
  EXPECT_EQ(driver_->cuStreamDestroy(legacy), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuStreamDestroy(per_thread), CuResult::invalid_handle);
}

}  // namespace
}  // namespace cpverify::contract
