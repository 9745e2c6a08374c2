// Pinned host memory: the host and asynchronous copies; each defect beside its clean twin.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/driver/driver_fixture.hpp"
#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "support/device_session.hpp"

namespace cpverify::sim {
namespace {

using gpu::CuDevicePtr;
using gpu::CuResult;
using test_support::DeviceSession;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class HostMemoryTest : public DriverFixture {};

TEST_F(HostMemoryTest, ASourceThatTheHostWritesBeforeItsCopyIsARace) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr target = session.allocate(8);
  std::byte* const source = pinned(16);
  std::memset(source, 1, 16);
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync(target, source + 8, 8, session.stream), ok());
  source[11] = std::byte{2};
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::race);
  EXPECT_EQ(faults[0].space, MemorySpace::host);
  EXPECT_EQ(faults[0].kernel, "cuMemcpyHtoDAsync");
  EXPECT_EQ(faults[0].address, 11U);
  EXPECT_THAT(faults[0].detail, HasSubstr("had not read byte 11 of pinned host buffer 1"));
}

TEST_F(HostMemoryTest, ASourceMayBeWrittenOnceTheHostHasWaited) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr target = session.allocate(8);
  std::byte* const source = pinned(8);
  for (const int value : {1, 2, 3}) {
    std::memset(source, value, 8);
    ASSERT_EQ(driver_->cuMemcpyHtoDAsync(target, source, 8, session.stream), ok());
    ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  }
  EXPECT_THAT(session.download<std::uint32_t>(target, 2), Each(0x03030303U));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(HostMemoryTest, ATargetThatTheHostWritesBeforeItsCopyIsARace) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr source = session.allocate_with(Words{7});
  std::byte* const target = pinned(4);
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(target, source, 4, session.stream), ok());
  target[3] = std::byte{0};
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0].detail, HasSubstr("had not written byte 3 of pinned host buffer 1"));
}

TEST_F(HostMemoryTest, ATargetReadTooEarlyHoldsAPatternAndLaterTheBytes) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr source = session.allocate_with(Words{7});
  std::byte* const target = pinned(4);
  std::uint32_t value = 7;  // What a stale buffer would hold by chance.
  std::memcpy(target, &value, 4);
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(target, source, 4, session.stream), ok());
  std::memcpy(&value, target, 4);
  EXPECT_EQ(value, 0xfdfdfdfdU);
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  std::memcpy(&value, target, 4);
  EXPECT_EQ(value, 7U);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(HostMemoryTest, ABufferThatGoesDownAndUpInOneStreamIsClean) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr source = session.allocate_with(Words{7});
  const CuDevicePtr target = session.allocate(4);
  std::byte* const bounce = pinned(4);
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(bounce, source, 4, session.stream), ok());
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync(target, bounce, 4, session.stream), ok());
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(bounce, source, 4, session.stream), ok());
  EXPECT_THAT(session.download<std::uint32_t>(target, 1), ElementsAre(7));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

struct Increment {
  SimDriver* driver = nullptr;
  std::byte* word = nullptr;
  CuResult result_inside = CuResult::success;
};

void increment(void* data) {
  auto& task = *static_cast<Increment*>(data);
  std::uint32_t value = 0;
  std::memcpy(&value, task.word, 4);
  ++value;
  std::memcpy(task.word, &value, 4);
  task.result_inside = task.driver->cuCtxSynchronize();
}

TEST_F(HostMemoryTest, AHostFunctionRunsInStreamOrderAndMustNotCallTheDriver) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr word = session.allocate_with(Words{41});
  std::byte* const host = pinned(4);
  Increment task{driver_.get(), host};
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(host, word, 4, session.stream), ok());
  ASSERT_EQ(driver_->cuLaunchHostFunc(session.stream, increment, &task), ok());
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync(word, host, 4, session.stream), ok());
  EXPECT_EQ(driver_->cuLaunchHostFunc(session.stream, nullptr, &task), CuResult::invalid_value);
  EXPECT_THAT(session.download<std::uint32_t>(word, 1), ElementsAre(42));
  EXPECT_EQ(task.result_inside, CuResult::not_permitted);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(HostMemoryTest, AHostFunctionOfAnotherStreamIsNoBetterThanTheHost) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr word = session.allocate(4);
  std::byte* const host = pinned(4);
  Increment task{driver_.get(), host};
  // Round robin begins with the stream that is older, so the function runs first.
  const gpu::CuStream other = new_stream();
  ASSERT_EQ(driver_->cuLaunchHostFunc(session.stream, increment, &task), ok());
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync(word, host, 4, other), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), SizeIs(1));
}

TEST_F(HostMemoryTest, PageableMemoryIsStagedUpAndWaitedForDown) {
  DeviceSession session{*driver_, 0};
  Words host{1};
  const CuDevicePtr word = session.allocate_with(host);
  host[0] = 2;
  std::uint32_t value = 0;
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(&value, word, 4, session.stream), ok());
  EXPECT_EQ(value, 1U);
  // That the call waited is an order too.
  ASSERT_EQ(driver_->cuMemsetD8Async(word, 0, 4, new_stream()), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(HostMemoryTest, RegisteredMemoryIsPinnedUntilUnregistered) {
  DeviceSession session{*driver_, 0};
  std::array<std::byte, 64> host{};
  ASSERT_EQ(driver_->cuMemHostRegister(host.data(), 64, 0), ok());
  EXPECT_EQ(driver_->cuMemHostRegister(host.data() + 32, 64, 0),
            CuResult::host_memory_already_registered);
  const CuDevicePtr target = session.allocate(64);
  ASSERT_EQ(driver_->cuMemcpyHtoDAsync(target, host.data(), 64, session.stream), ok());
  host[0] = std::byte{1};
  EXPECT_EQ(driver_->cuMemHostUnregister(host.data() + 1), CuResult::host_memory_not_registered);
  ASSERT_EQ(driver_->cuMemHostUnregister(host.data()), ok());
  EXPECT_EQ(driver_->cuMemHostUnregister(host.data()), CuResult::host_memory_not_registered);
  EXPECT_THAT(driver_->take_faults(), SizeIs(1));
}

TEST_F(HostMemoryTest, RefusesWhatIsNoPinnedMemory) {
  const DeviceSession session{*driver_, 0};
  void* pointer = nullptr;
  EXPECT_EQ(driver_->cuMemHostAlloc(nullptr, 4, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemHostAlloc(&pointer, 0, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemHostAlloc(&pointer, 4, 8), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemHostAlloc(&pointer, ~std::size_t{0}, 0), CuResult::out_of_memory);
  std::byte* const host = pinned(8);
  EXPECT_EQ(driver_->cuMemFreeHost(host + 1), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemHostUnregister(host), CuResult::host_memory_not_registered);
  EXPECT_EQ(driver_->cuMemFreeHost(host), ok());
  EXPECT_EQ(driver_->cuMemFreeHost(host), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemFreeHost(nullptr), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemHostRegister(nullptr, 4, 0), CuResult::invalid_value);
}

TEST_F(HostMemoryTest, KernelsReachPinnedMemoryUnderItsDeviceAddress) {
  DeviceSession session{*driver_, 1};
  std::byte* const host = pinned(8);
  std::uint32_t value = 5;
  std::memcpy(host + 4, &value, 4);
  CuDevicePtr address = 0;
  ASSERT_EQ(driver_->cuMemHostGetDevicePointer(&address, host + 4, 0), ok());
  ASSERT_EQ(add(load(), session.stream, address, 1, 3), ok());
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  std::memcpy(&value, host + 4, 4);
  EXPECT_EQ(value, 8U);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  EXPECT_EQ(driver_->cuMemHostGetDevicePointer(&address, &value, 0), CuResult::invalid_value);
}

TEST_F(HostMemoryTest, PointersSayWhatTheyAre) {
  DeviceSession session{*driver_, 1};
  const CuDevicePtr device = session.allocate(64);
  std::byte* const host = pinned(8);
  unsigned type = 0;
  ASSERT_EQ(driver_->cuPointerGetAttribute(&type, gpu::kPointerAttributeMemoryType, device + 8),
            ok());
  EXPECT_EQ(type, gpu::kMemoryTypeDevice);
  int ordinal = -1;
  ASSERT_EQ(driver_->cuPointerGetAttribute(&ordinal, gpu::kPointerAttributeDeviceOrdinal, device),
            ok());
  EXPECT_EQ(ordinal, 1);
  std::uint64_t start = 0;
  ASSERT_EQ(driver_->cuPointerGetAttribute(&start, gpu::kPointerAttributeRangeStart, device + 8),
            ok());
  EXPECT_EQ(start, device);
  const auto address = reinterpret_cast<std::uintptr_t>(host);
  ASSERT_EQ(driver_->cuPointerGetAttribute(&type, gpu::kPointerAttributeMemoryType, address), ok());
  EXPECT_EQ(type, gpu::kMemoryTypeHost);
  EXPECT_EQ(driver_->cuPointerGetAttribute(&type, gpu::kPointerAttributeMemoryType, 16),
            CuResult::invalid_value);
  EXPECT_EQ(driver_->cuPointerGetAttribute(&type, gpu::kPointerAttributeHostPointer, device),
            CuResult::invalid_value);
  EXPECT_EQ(driver_->cuPointerGetAttribute(&type, 999, device), CuResult::invalid_value);
}

TEST_F(HostMemoryTest, AKernelReachesAPeerOnlyWhenThatIsEnabled) {
  DeviceSession owner{*driver_, 1};
  const CuDevicePtr words = owner.allocate_with(Words{1});
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  {
    DeviceSession session{*driver_, 0};
    int can = 0;
    EXPECT_EQ(driver_->cuDeviceCanAccessPeer(&can, 0, 1), ok());
    EXPECT_EQ(can, 1);
    EXPECT_EQ(driver_->cuDeviceCanAccessPeer(&can, 1, 1), ok());
    EXPECT_EQ(can, 0);
    EXPECT_EQ(driver_->cuDeviceCanAccessPeer(&can, 0, 2), CuResult::invalid_device);
    EXPECT_EQ(driver_->cuCtxEnablePeerAccess(session.context, 0),
              CuResult::peer_access_unsupported);
    EXPECT_EQ(driver_->cuCtxEnablePeerAccess(nullptr, 0), CuResult::invalid_context);
    EXPECT_EQ(driver_->cuCtxEnablePeerAccess(owner.context, 1), CuResult::invalid_value);
    EXPECT_EQ(driver_->cuCtxDisablePeerAccess(owner.context), CuResult::peer_access_not_enabled);
    ASSERT_EQ(driver_->cuCtxEnablePeerAccess(owner.context, 0), ok());
    EXPECT_EQ(driver_->cuCtxEnablePeerAccess(owner.context, 0),
              CuResult::peer_access_already_enabled);
    ASSERT_EQ(add(load(), session.stream, words, 1, 2), ok());
    ASSERT_EQ(driver_->cuCtxDisablePeerAccess(owner.context), ok());
    EXPECT_THAT(driver_->take_faults(), IsEmpty());
    ASSERT_EQ(add(load(), session.stream, words, 1, 2), ok());
    EXPECT_EQ(driver_->cuStreamSynchronize(session.stream), CuResult::illegal_address);
  }
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, testing::Not(IsEmpty()));
  EXPECT_THAT(faults[0].detail, HasSubstr("peer access of device 0 to it is not enabled"));
  EXPECT_THAT(owner.download<std::uint32_t>(words, 1), ElementsAre(3));
}

}  // namespace
}  // namespace cpverify::sim
