// The simulated driver keeps the contract; and what only it promises: faults as values.

#include "sim/driver/sim_driver.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/driver/driver_contract.hpp"
#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "support/device_session.hpp"
#include "support/test_kernels.hpp"

namespace cpverify::sim {
namespace {

using contract::DriverContract;
using contract::DriverSubject;
using gpu::CuDevicePtr;
using gpu::CuResult;
using test_support::DeviceSession;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

using Words = std::vector<std::uint32_t>;

std::unique_ptr<SimDriver> two_devices() {
  SimOptions options;
  options.device_count = 2;
  return make_sim_driver(options);
}

INSTANTIATE_TEST_SUITE_P(Sim, DriverContract, testing::Values(DriverSubject{"sim", two_devices}),
                         testing::PrintToStringParamName());

class SimDriverTest : public testing::Test {
 protected:
  gpu::CuFunction load(const char* ptx, const char* entry) {
    gpu::CuModule module = nullptr;
    gpu::CuFunction function = nullptr;
    EXPECT_EQ(driver_->cuModuleLoadData(&module, ptx), CuResult::success)
        << driver_->jit_error_log();
    EXPECT_EQ(driver_->cuModuleGetFunction(&function, module, entry), CuResult::success);
    return function;
  }

  /// add() on `count` words of one block, then a synchronisation.
  CuResult run_add(const DeviceSession& session, CuDevicePtr pointer, std::uint32_t count) {
    const gpu::CuFunction add = load(test_support::kAddPtx, "add");
    gpu::DriverApi::LaunchConfig config;
    config.block_x = count;
    config.stream = session.stream;
    std::uint32_t value = 1;
    std::array<void*, 3> parameters{&pointer, &count, &value};
    EXPECT_EQ(driver_->cuLaunchKernel(add, config, parameters.data()), CuResult::success);
    return driver_->cuStreamSynchronize(session.stream);
  }

  std::unique_ptr<SimDriver> driver_ = two_devices();
};

TEST_F(SimDriverTest, TensorMapsAreMadeWithinTheBoundsOfTheManual) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate(4096);
  std::array<std::uint64_t, 3> extents{64, 16, 2};
  std::array<std::uint64_t, 2> strides{128, 2048};
  std::array<std::uint32_t, 3> box{64, 8, 1};
  std::array<std::uint32_t, 3> steps{1, 1, 1};
  gpu::CuTensorMap map;
  const gpu::CuTiledTensor good{gpu::CuTensorMapDataType::bf16,
                                3,
                                pointer,
                                extents.data(),
                                strides.data(),
                                box.data(),
                                steps.data(),
                                gpu::CuTensorMapInterleave::none,
                                gpu::CuTensorMapSwizzle::bytes_128,
                                gpu::CuTensorMapL2Promotion::bytes_128,
                                gpu::CuTensorMapOobFill::nans};
  gpu::CuTiledTensor tensor = good;
  const auto result = [&] { return driver_->cuTensorMapEncodeTiled(&map, tensor); };
  EXPECT_EQ(result(), CuResult::success);
  EXPECT_NE(map.opaque[0], 0U);
  // 65 columns are 130 bytes: neither a multiple of 16 nor within the 128 of the swizzle.
  for (const auto& [place, bad] :
       std::vector<std::pair<std::uint32_t*, std::uint32_t>>{{&box[0], 65},
                                                             {&box[0], 128},
                                                             {&box[1], 0},
                                                             {&box[1], 257},
                                                             {&steps[1], 0},
                                                             {&steps[1], 9}}) {
    const std::uint32_t kept = std::exchange(*place, bad);
    EXPECT_EQ(result(), CuResult::invalid_value) << bad;
    *place = kept;
  }
  for (const auto& [place, bad] :
       std::vector<std::pair<std::uint64_t*, std::uint64_t>>{{&extents[0], 0},
                                                             {&extents[2], (1ULL << 32) + 1},
                                                             {&strides[0], 120},
                                                             {&strides[1], 1ULL << 40}}) {
    const std::uint64_t kept = std::exchange(*place, bad);
    EXPECT_EQ(result(), CuResult::invalid_value) << bad;
    *place = kept;
  }
  extents[2] = 1ULL << 32;
  strides[1] = (1ULL << 40) - 16;
  EXPECT_EQ(result(), CuResult::success);
  for (const auto& change : std::vector<std::function<void()>>{
           [&] { tensor.rank = 0; }, [&] { tensor.rank = 6; }, [&] { tensor.address += 8; },
           [&] { tensor.address = 0; }, [&] { tensor.extents = nullptr; },
           [&] { tensor.strides = nullptr; }, [&] { tensor.box = nullptr; },
           [&] { tensor.element_strides = nullptr; },
           [&] { tensor.type = static_cast<gpu::CuTensorMapDataType>(13); },
           [&] { tensor.swizzle = static_cast<gpu::CuTensorMapSwizzle>(4); },
           [&] { tensor.type = gpu::CuTensorMapDataType::u16; }}) {
    tensor = good;
    change();
    EXPECT_EQ(result(), CuResult::invalid_value);
  }
  tensor = good;
  EXPECT_EQ(driver_->cuTensorMapEncodeTiled(nullptr, tensor), CuResult::invalid_value);
  tensor.interleave = gpu::CuTensorMapInterleave::bytes_32;
  EXPECT_EQ(result(), CuResult::not_supported);
  EXPECT_EQ(two_devices()->cuTensorMapEncodeTiled(&map, good), CuResult::not_initialized);
}

TEST_F(SimDriverTest, HostCallsOutsideMemoryAreRefusedAndAreFaults) {
  DeviceSession session{*driver_, 1};
  const CuDevicePtr pointer = session.allocate(64);
  const CuDevicePtr target = session.allocate(256);
  std::array<std::byte, 128> host{};
  const gpu::CuStream stream = session.stream;
  struct Case {
    const char* call;
    FaultKind kind;
    std::function<CuResult()> run;
  };
  // Each touches 8 bytes from byte 60 of 64, so that byte 64 is the first bad one.
  const CuDevicePtr edge = pointer + 60;
  const std::vector<Case> cases{
      {"cuMemcpyHtoDAsync", FaultKind::out_of_bounds_write,
       [&] { return driver_->cuMemcpyHtoDAsync(edge, host.data(), 8, stream); }},
      {"cuMemcpyDtoHAsync", FaultKind::out_of_bounds_read,
       [&] { return driver_->cuMemcpyDtoHAsync(host.data(), edge, 8, stream); }},
      {"cuMemcpyDtoDAsync", FaultKind::out_of_bounds_write,
       [&] { return driver_->cuMemcpyDtoDAsync(edge, target, 8, stream); }},
      {"cuMemcpyDtoDAsync", FaultKind::out_of_bounds_read,
       [&] { return driver_->cuMemcpyDtoDAsync(target, edge, 8, stream); }},
      {"cuMemcpyPeerAsync", FaultKind::out_of_bounds_write,
       [&] {
         return driver_->cuMemcpyPeerAsync(edge, session.context, target, session.context, 8,
                                           stream);
       }},
      {"cuMemsetD8Async", FaultKind::out_of_bounds_write,
       [&] { return driver_->cuMemsetD8Async(edge, 1, 8, stream); }},
      {"cuMemsetD32Async", FaultKind::out_of_bounds_write,
       [&] { return driver_->cuMemsetD32Async(edge, 1, 2, stream); }},
  };
  for (const Case& example : cases) {
    EXPECT_EQ(example.run(), CuResult::invalid_value) << example.call;
    const std::vector<Fault> faults = driver_->take_faults();
    ASSERT_THAT(faults, SizeIs(1)) << example.call;
    EXPECT_EQ(faults[0].kernel, example.call);
    EXPECT_EQ(faults[0].kind, example.kind) << example.call;
    EXPECT_EQ(faults[0].space, MemorySpace::global);
    EXPECT_EQ(faults[0].device, 1U);
    EXPECT_EQ(faults[0].address, pointer + 64);
    EXPECT_EQ(faults[0].size_bytes, 8U);
    EXPECT_EQ(faults[0].allocation, pointer);
    EXPECT_EQ(faults[0].allocation_bytes, 64U);
  }
  // A refused call is not sticky.
  EXPECT_EQ(driver_->cuStreamSynchronize(stream), CuResult::success);
}

TEST_F(SimDriverTest, AHostCallWithHugeSizeIsOutOfBoundsAndDoesNotWrapAround) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate(64);
  const std::size_t huge = ~std::size_t{0} - 8;
  EXPECT_EQ(driver_->cuMemsetD8Async(pointer + 16, 0, huge, session.stream),
            CuResult::invalid_value);
  EXPECT_EQ(driver_->cuMemsetD32Async(pointer, 0, (~std::size_t{0} / 4) + 2, session.stream),
            CuResult::invalid_value);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].size_bytes, 0xffffffffU);
}

TEST_F(SimDriverTest, AHostCallOnFreedMemoryIsUseAfterFree) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate(64);
  ASSERT_EQ(driver_->cuMemFree(pointer), CuResult::success);
  EXPECT_EQ(driver_->cuMemsetD8Async(pointer + 8, 0, 4, session.stream), CuResult::invalid_value);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::use_after_free);
  EXPECT_EQ(faults[0].address, pointer + 8);
  EXPECT_EQ(faults[0].allocation, pointer);
}

TEST_F(SimDriverTest, EqualFaultsAreCountedAndTakenOnce) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate(64);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(driver_->cuMemsetD8Async(pointer, 0, 65, session.stream), CuResult::invalid_value);
  }
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].count, 3U);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(SimDriverTest, WorkQueuedBeforeAFreeStillHasItsMemory) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr source = session.allocate_with(Words{4});
  const CuDevicePtr target = session.allocate(4);
  ASSERT_EQ(driver_->cuMemcpyDtoDAsync(target, source, 4, session.stream), CuResult::success);
  ASSERT_EQ(driver_->cuMemFree(source), CuResult::success);
  EXPECT_THAT(session.download<std::uint32_t>(target, 1), ElementsAre(4));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(SimDriverTest, DownloadsUnwrittenMemoryWithoutAFault) {
  DeviceSession session{*driver_, 0};
  EXPECT_THAT(session.download<std::uint32_t>(session.allocate(8), 2), Each(0xffffffffU));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(SimDriverTest, DownloadsAtTheSynchronisationNotBefore) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr pointer = session.allocate_with(Words{4});
  void* host = nullptr;
  ASSERT_EQ(driver_->cuMemAllocHost(&host, 4), CuResult::success);
  const auto word = [host] {
    std::uint32_t value = 0;
    std::memcpy(&value, host, sizeof value);
    return value;
  };
  ASSERT_EQ(driver_->cuMemcpyDtoHAsync(host, pointer, 4, session.stream), CuResult::success);
  EXPECT_NE(word(), 4U);
  ASSERT_EQ(driver_->cuCtxSynchronize(), CuResult::success);
  EXPECT_EQ(word(), 4U);
}

TEST_F(SimDriverTest, AKernelThatReadsUnwrittenMemoryIsReportedAndGoesOn) {
  DeviceSession session{*driver_, 0};
  EXPECT_EQ(run_add(session, session.allocate(16), 4), CuResult::success);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::uninitialised_read);
  EXPECT_EQ(faults[0].kernel, "add");
  // Where the sum is stored, two lines after the load, which is the 27th of the text.
  EXPECT_EQ(faults[0].ptx_line, 29U);
}

TEST_F(SimDriverTest, CopiesCarryWhatIsUnwrittenToAnotherDevice) {
  DeviceSession first{*driver_, 0};
  const CuDevicePtr half_written = first.allocate(8);
  first.upload(half_written, Words{1});
  DeviceSession second{*driver_, 1};
  const CuDevicePtr copy = second.allocate(8);
  const CuDevicePtr filled = second.allocate(8);
  first.use();
  ASSERT_EQ(driver_->cuCtxSynchronize(), CuResult::success);
  second.use();
  ASSERT_EQ(driver_->cuMemsetD8Async(filled, 0, 8, second.stream), CuResult::success);
  ASSERT_EQ(driver_->cuMemcpyPeerAsync(copy, second.context, half_written, first.context, 8,
                                       second.stream),
            CuResult::success);
  EXPECT_EQ(run_add(second, copy, 1), CuResult::success);
  EXPECT_EQ(run_add(second, filled, 2), CuResult::success);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  EXPECT_EQ(run_add(second, copy, 2), CuResult::success);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].address, copy + 4);
}

TEST_F(SimDriverTest, AKernelThatWritesPastABufferIsAFaultOfThatInstruction) {
  DeviceSession session{*driver_, 1};
  const CuDevicePtr pointer = session.allocate_with(Words(4, 0));
  EXPECT_EQ(run_add(session, pointer, 5), CuResult::illegal_address);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, testing::Not(IsEmpty()));
  EXPECT_EQ(faults.back().kind, FaultKind::out_of_bounds_read);
  EXPECT_EQ(faults.back().device, 1U);
  EXPECT_EQ(faults.back().kernel, "add");
  EXPECT_EQ(faults.back().address, pointer + 16);
  EXPECT_EQ(faults.back().allocation, pointer);
  EXPECT_THAT(faults.back().thread, ElementsAre(4, 0, 0));
}

TEST_F(SimDriverTest, ReleasingTheContextHealsItAndFreesItsMemory) {
  CuDevicePtr pointer = 0;
  {
    DeviceSession session{*driver_, 0};
    pointer = session.allocate_with(Words(4, 0));
    EXPECT_EQ(run_add(session, pointer, 5), CuResult::illegal_address);
    static_cast<void>(driver_->take_faults());
  }
  DeviceSession session{*driver_, 0};
  EXPECT_THAT(session.download<std::uint32_t>(session.allocate_with(Words{3}), 1), ElementsAre(3));
  EXPECT_EQ(driver_->cuMemFree(pointer), CuResult::invalid_value);
}

TEST_F(SimDriverTest, HasAsMuchMemoryAsItWasGiven) {
  SimOptions options;
  options.memory_bytes = 1024;
  driver_ = make_sim_driver(options);
  DeviceSession session{*driver_, 0};
  CuDevicePtr pointer = 0;
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, 1025), CuResult::out_of_memory);
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, 1000), CuResult::success);
  CuDevicePtr second = 0;
  EXPECT_EQ(driver_->cuMemAlloc(&second, 25), CuResult::out_of_memory);
  EXPECT_EQ(driver_->cuMemAlloc(&second, 24), CuResult::success);
  EXPECT_EQ(driver_->cuMemFree(pointer), CuResult::success);
  EXPECT_EQ(driver_->cuMemAlloc(&pointer, 1000), CuResult::success);
}

TEST_F(SimDriverTest, RecognisesStaleHandles) {
  DeviceSession session{*driver_, 0};
  gpu::CuStream stream = nullptr;
  gpu::CuEvent event = nullptr;
  gpu::CuModule module = nullptr;
  gpu::CuFunction function = nullptr;
  ASSERT_EQ(driver_->cuStreamCreate(&stream, 0), CuResult::success);
  ASSERT_EQ(driver_->cuStreamDestroy(stream), CuResult::success);
  EXPECT_EQ(driver_->cuStreamSynchronize(stream), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuStreamDestroy(stream), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuStreamDestroy(nullptr), CuResult::invalid_handle);
  ASSERT_EQ(driver_->cuEventCreate(&event, 0), CuResult::success);
  ASSERT_EQ(driver_->cuEventDestroy(event), CuResult::success);
  EXPECT_EQ(driver_->cuEventRecord(event, session.stream), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuStreamWaitEvent(session.stream, event, 0), CuResult::invalid_handle);
  ASSERT_EQ(driver_->cuModuleLoadData(&module, test_support::kAddPtx), CuResult::success);
  ASSERT_EQ(driver_->cuModuleGetFunction(&function, module, "add"), CuResult::success);
  ASSERT_EQ(driver_->cuModuleUnload(module), CuResult::success);
  EXPECT_EQ(driver_->cuModuleUnload(module), CuResult::invalid_handle);
  EXPECT_EQ(driver_->cuLaunchKernel(function, {}, nullptr), CuResult::invalid_handle);
}

TEST_F(SimDriverTest, RefusesAKernelOfAnotherDevice) {
  const DeviceSession other{*driver_, 1};
  const gpu::CuFunction add = load(test_support::kAddPtx, "add");
  const DeviceSession session{*driver_, 0};
  gpu::DriverApi::LaunchConfig config;
  config.stream = session.stream;
  EXPECT_EQ(driver_->cuLaunchKernel(add, config, nullptr), CuResult::invalid_handle);
}

constexpr const char* kClusterPtx = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry size(.param .u64 p) {
.reg .b64 %d; .reg .b32 %r;
ld.param.u64 %d, [p]; mov.u32 %r, %cluster_nctarank; st.global.u32 [%d], %r; ret;
}
.visible .entry pairs() .reqnctapercluster 2, 1, 1 { ret; }
)";

TEST_F(SimDriverTest, LaunchesClustersThatFit) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr target = session.allocate(4);
  const gpu::CuFunction size = load(kClusterPtx, "size");
  const gpu::CuFunction pairs = load(kClusterPtx, "pairs");
  CuDevicePtr pointer = target;
  std::array<void*, 1> parameters{&pointer};
  const auto launch = [&](gpu::CuFunction function, unsigned ctas, gpu::LaunchAttribute attribute) {
    gpu::DriverApi::LaunchConfig config;
    config.grid_x = ctas;
    config.stream = session.stream;
    return driver_->cuLaunchKernelEx(config, &attribute, 1, function, parameters.data());
  };
  const auto cluster = [](unsigned x) {
    return gpu::LaunchAttribute{gpu::kLaunchAttributeCluster, 0, {x, 1, 1}};
  };
  EXPECT_EQ(launch(size, 8, cluster(4)), CuResult::success);
  EXPECT_THAT(session.download<std::uint32_t>(target, 1), ElementsAre(4));
  EXPECT_EQ(launch(pairs, 8, cluster(2)), CuResult::success);
  EXPECT_EQ(launch(pairs, 8, cluster(4)), CuResult::invalid_cluster_size);
  EXPECT_EQ(launch(size, 9, cluster(4)), CuResult::invalid_cluster_size);
  EXPECT_EQ(launch(size, 16, cluster(16)), CuResult::invalid_cluster_size);
  EXPECT_EQ(launch(size, 8, cluster(0)), CuResult::invalid_cluster_size);
  EXPECT_EQ(launch(size, 8, gpu::LaunchAttribute{99, 0, {}}), CuResult::invalid_value);
  gpu::DriverApi::LaunchConfig odd;
  odd.grid_x = 3;
  odd.stream = session.stream;
  EXPECT_EQ(driver_->cuLaunchKernel(pairs, odd, nullptr), CuResult::invalid_cluster_size);
  EXPECT_EQ(driver_->cuLaunchKernelEx(odd, nullptr, 1, size, parameters.data()),
            CuResult::invalid_value);
  EXPECT_EQ(driver_->cuStreamSynchronize(session.stream), CuResult::success);
}

TEST_F(SimDriverTest, RefusesAPeerCopyThatNamesTheWrongContext) {
  DeviceSession first{*driver_, 0};
  const CuDevicePtr source = first.allocate_with(Words{1});
  DeviceSession second{*driver_, 1};
  const CuDevicePtr target = second.allocate(4);
  EXPECT_EQ(
      driver_->cuMemcpyPeerAsync(target, first.context, source, first.context, 4, second.stream),
      CuResult::invalid_value);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

}  // namespace
}  // namespace cpverify::sim
