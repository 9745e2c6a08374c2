// The local NCCL on the simulated driver keeps the contract; and what only the pair promises.

#include "collectives/local_nccl.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/nccl/nccl_contract.hpp"
#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "sim/driver/sim_driver.hpp"
#include "support/device_session.hpp"

namespace cpverify::collectives {
namespace {

using contract::NcclContract;
using contract::NcclPair;
using contract::NcclSubject;
using gpu::NcclDataType;
using gpu::NcclResult;
using test_support::DeviceSession;

std::unique_ptr<sim::SimDriver> four_devices() {
  sim::SimOptions options;
  options.device_count = 4;
  return sim::make_sim_driver(options);
}

NcclPair local_on_sim() {
  NcclPair pair;
  pair.driver = four_devices();
  pair.nccl = make_local_nccl(*pair.driver);
  return pair;
}

INSTANTIATE_TEST_SUITE_P(LocalOnSim, NcclContract,
                         testing::Values(NcclSubject{"local_on_sim", local_on_sim}),
                         testing::PrintToStringParamName());

// A gather buffer that is too small for all ranks: a defect that real systems had.
TEST(LocalNcclOnSim, AGatherPastTheEndOfRecvIsAFaultOfThatRank) {
  const std::unique_ptr<sim::SimDriver> driver = four_devices();
  const std::unique_ptr<gpu::NcclApi> nccl = make_local_nccl(*driver);
  DeviceSession first{*driver, 0};
  DeviceSession second{*driver, 1};
  std::array<gpu::NcclComm, 2> comms{};
  ASSERT_EQ(nccl->ncclCommInitAll(comms.data(), 2, nullptr), NcclResult::success);
  const std::vector<std::uint32_t> block(8, 1);
  const gpu::CuDevicePtr send_first = first.allocate_with(block);
  const gpu::CuDevicePtr recv_first = first.allocate(64);
  const gpu::CuDevicePtr send_second = second.allocate_with(block);
  const gpu::CuDevicePtr recv_second = second.allocate(60);  // 2 * 8 words are 64 bytes.
  ASSERT_EQ(nccl->ncclGroupStart(), NcclResult::success);
  nccl->ncclAllGather(send_first, recv_first, 8, NcclDataType::uint32, comms[0], first.stream);
  nccl->ncclAllGather(send_second, recv_second, 8, NcclDataType::uint32, comms[1], second.stream);
  EXPECT_EQ(nccl->ncclGroupEnd(), NcclResult::unhandled_cuda_error);
  EXPECT_EQ(std::string{nccl->ncclGetLastError(nullptr)},
            "cuMemcpyPeerAsync failed: CUDA_ERROR_INVALID_VALUE (1)");
  const std::vector<Fault> faults = driver->take_faults();
  ASSERT_THAT(faults, testing::SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::out_of_bounds_write);
  EXPECT_EQ(faults[0].device, 1U);
  EXPECT_EQ(faults[0].kernel, "ncclAllGather");
  EXPECT_EQ(faults[0].allocation, recv_second);
  EXPECT_EQ(faults[0].address, recv_second + 60);
  for (const gpu::NcclComm comm : comms) {
    EXPECT_EQ(nccl->ncclCommDestroy(comm), NcclResult::success);
  }
}

}  // namespace
}  // namespace cpverify::collectives
