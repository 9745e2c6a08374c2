// Operations on different streams that touch the same bytes: each defect beside its clean twin.

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/driver/driver_fixture.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/schedule.hpp"
#include "gpu/driver_api.hpp"
#include "support/device_session.hpp"

namespace cpverify::sim {
namespace {

using gpu::CuDevicePtr;
using gpu::CuResult;
using test_support::DeviceSession;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class StreamRacesTest : public DriverFixture {};

TEST_F(StreamRacesTest, AKernelWithoutAWaitForTheOtherStreamsKernelRaces) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words(64, 1));
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const gpu::CuFunction function = load();
  const gpu::CuStream other = new_stream();
  ASSERT_EQ(add(function, session.stream, words, 64, 1), ok());
  ASSERT_EQ(add(function, other, words + 128, 16, 1), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::race);
  EXPECT_EQ(faults[0].kernel, "add");
  EXPECT_EQ(faults[0].allocation, words);
  // Words 32 to 47 of 64.
  EXPECT_EQ(faults[0].address, words + 128);
  EXPECT_EQ(faults[0].size_bytes, 64U);
  EXPECT_THAT(faults[0].detail,
              AllOf(HasSubstr("kernel 'add' on stream 2 of device 0 reads and writes (PTX line "),
                    HasSubstr("kernel 'add' on stream 1 of device 0 reads and writes (PTX line ")));
  EXPECT_GT(faults[0].ptx_line, 0U);
}

/// A kernel with the parameters of add() that adds 1 to the first word, with an atomic of this
/// scope.
std::string count_text(const std::string& scope) {
  return ".version 7.5\n.target sm_80\n.address_size 64\n"
         ".visible .entry count(.param .u64 p, .param .u32 n, .param .u32 v) {\n"
         ".reg .b64 %d<3>; .reg .b32 %r<2>; .reg .pred %p<2>;\n"
         ".loc 1 6 1\nld.param.u64 %d0, [p]; mov.u32 %r0, %tid.x;\n"
         "setp.ne.u32 %p0, %r0, 0; @%p0 ret;\n"
         ".loc 1 7 1\nred.relaxed." +
         scope +
         ".global.add.u32 [%d0], 1;\n"
         "ret; }\n.file 1 \"count.cu\"\n";
}

TEST_F(StreamRacesTest, AtomicsOfTheScopeOfACtaRaceAndTheirLinesAreNamed) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words(64, 1));
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const gpu::CuStream other = new_stream();
  const gpu::CuFunction gpu_wide = load("count", count_text("gpu").c_str());
  ASSERT_EQ(add(gpu_wide, session.stream, words, 1, 1), ok());
  ASSERT_EQ(add(gpu_wide, other, words, 1, 1), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  const gpu::CuFunction cta_wide = load("count", count_text("cta").c_str());
  ASSERT_EQ(add(cta_wide, session.stream, words + 4, 1, 1), ok());
  ASSERT_EQ(add(cta_wide, other, words + 4, 1, 1), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::race);
  EXPECT_EQ(faults[0].source_file, "count.cu");
  EXPECT_EQ(faults[0].source_line, 7U);
  EXPECT_THAT(faults[0].detail, HasSubstr("on stream 1 of device 0 writes (count.cu:7, PTX line "));
}

TEST_F(StreamRacesTest, AnEventOrdersThem) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words(64, 1));
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const gpu::CuFunction function = load();
  const gpu::CuStream other = new_stream();
  ASSERT_EQ(add(function, session.stream, words, 64, 1), ok());
  order(session.stream, other);
  ASSERT_EQ(add(function, other, words + 128, 16, 1), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(StreamRacesTest, AnEventRecordedTooEarlyOrdersNothing) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words(64, 1));
  const gpu::CuFunction function = load();
  const gpu::CuStream other = new_stream();
  order(session.stream, other);  // The upload is before, the kernel is not.
  ASSERT_EQ(add(function, session.stream, words, 1, 1), ok());
  ASSERT_EQ(add(function, other, words, 64, 1), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].size_bytes, 4U);
}

TEST_F(StreamRacesTest, NeighboursAndReadersDoNotRace) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words(64, 1));
  const CuDevicePtr copies = session.allocate(512);
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const gpu::CuFunction function = load();
  const gpu::CuStream other = new_stream();
  // Words 0 to 15 and 16 to 31 meet at byte 64.
  ASSERT_EQ(add(function, session.stream, words, 16, 1), ok());
  ASSERT_EQ(add(function, other, words + 64, 16, 1), ok());
  // Both read words 32 to 63.
  ASSERT_EQ(driver_->cuMemcpyDtoDAsync(copies, words + 128, 128, session.stream), ok());
  ASSERT_EQ(driver_->cuMemcpyDtoDAsync(copies + 128, words + 128, 128, other), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(StreamRacesTest, TheHostOrdersWhatItWaitsFor) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate(64);
  const gpu::CuStream other = new_stream();
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 2, 64, other), ok());
  const gpu::CuEvent event = new_event();
  ASSERT_EQ(driver_->cuEventRecord(event, other), ok());
  while (driver_->cuEventQuery(event) == CuResult::not_ready) {
  }
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 3, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  // A query that says not_ready orders nothing, whatever has run by then.
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 4, 64, other), ok());
  EXPECT_EQ(driver_->cuStreamQuery(other), CuResult::not_ready);
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 5, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), SizeIs(1));
}

TEST_F(StreamRacesTest, TheDefaultStreamOrdersBlockingStreamsOnly) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate(64);
  const gpu::CuStream blocking = new_stream(0);
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, blocking), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 2, 64, nullptr), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 3, 64, blocking), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 4, 64, nullptr), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 5, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0].detail, HasSubstr("the default stream of device 0"));
}

TEST_F(StreamRacesTest, AStreamThatIsGoneIsWaitedForAsOthers) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate(64);
  const auto fill_and_destroy = [&](unsigned flags) {
    const gpu::CuStream gone = new_stream(flags);
    ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, gone), ok());
    ASSERT_EQ(driver_->cuStreamDestroy(gone), ok());
    // Another stream's wait lets its work run.
    ASSERT_EQ(driver_->cuMemFree(session.allocate(4)), ok());
  };
  fill_and_destroy(gpu::kStreamNonBlocking);
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 2, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  fill_and_destroy(0);
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 3, 64, nullptr), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  fill_and_destroy(0);
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 4, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), SizeIs(1));
}

TEST_F(StreamRacesTest, CopiesOfTwoDevicesRace) {
  DeviceSession first{*driver_, 0};
  const CuDevicePtr source = first.allocate_with(Words(4, 1));
  ASSERT_EQ(driver_->cuStreamSynchronize(first.stream), ok());
  DeviceSession second{*driver_, 1};
  const CuDevicePtr target = second.allocate(16);
  ASSERT_EQ(
      driver_->cuMemcpyPeerAsync(target, second.context, source, first.context, 16, second.stream),
      ok());
  first.use();
  ASSERT_EQ(driver_->cuMemsetD32Async(source, 9, 4, first.stream), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  second.use();
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].allocation, source);
  EXPECT_THAT(faults[0].detail,
              AllOf(HasSubstr("on stream 1 of device 0"),
                    HasSubstr("cuMemcpyPeerAsync on stream 1 of device 1 reads")));
}

TEST_F(StreamRacesTest, MemoryIsThereFromItsAllocationToItsFreeInStreamOrder) {
  const DeviceSession session{*driver_, 0};
  const gpu::CuStream other = new_stream();
  CuDevicePtr words = 0;
  ASSERT_EQ(driver_->cuMemAllocAsync(&words, 64, session.stream), ok());
  order(session.stream, other);
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, other), ok());
  order(other, session.stream);
  ASSERT_EQ(driver_->cuMemFreeAsync(words, session.stream), ok());
  EXPECT_EQ(driver_->cuMemFreeAsync(words, session.stream), CuResult::invalid_value);
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());

  ASSERT_EQ(driver_->cuMemAllocAsync(&words, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, other), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_THAT(faults[0].detail, HasSubstr("cuMemAllocAsync"));
}

TEST_F(StreamRacesTest, MemoryFreedBeforeItsUseIsGone) {
  const DeviceSession session{*driver_, 0};
  CuDevicePtr words = 0;
  ASSERT_EQ(driver_->cuMemAllocAsync(&words, 64, session.stream), ok());
  ASSERT_EQ(driver_->cuMemFreeAsync(words, session.stream), ok());
  ASSERT_EQ(driver_->cuMemsetD8Async(words, 1, 64, session.stream), ok());
  EXPECT_EQ(driver_->cuStreamSynchronize(session.stream), CuResult::illegal_address);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::use_after_free);
  EXPECT_EQ(faults[0].kernel, "cuMemsetD8Async");
}

/// Two streams that each write one byte in turn, without order: the last write of the schedule
/// stays.
class StreamOrderTest : public DriverFixture, public testing::WithParamInterface<ScheduleSpec> {
 protected:
  StreamOrderTest() : DriverFixture{GetParam()} {}

  /// Values that stay after each of 16 rounds.
  std::string run() {
    const DeviceSession session{*driver_, 0};
    const gpu::CuStream other = new_stream();
    CuDevicePtr byte = 0;
    EXPECT_EQ(driver_->cuMemAlloc(&byte, 1), ok());
    std::string values;
    for (int round = 0; round < 16; ++round) {
      EXPECT_EQ(driver_->cuMemsetD8Async(byte, 'a', 1, session.stream), ok());
      EXPECT_EQ(driver_->cuMemsetD8Async(byte, 'b', 1, other), ok());
      EXPECT_EQ(driver_->cuCtxSynchronize(), ok());
      char value = 0;
      EXPECT_EQ(driver_->cuMemcpyDtoHAsync(&value, byte, 1, session.stream), ok());
      values += value;
    }
    return values;
  }
};

TEST_P(StreamOrderTest, IsAFunctionOfTheScheduleAndEveryOrderIsARace) {
  const std::string values = run();
  // One race for each pair of operations in a round, under one name.
  const std::vector<Fault> faults = driver_->take_faults();
  EXPECT_THAT(faults, testing::Not(IsEmpty()));
  SimOptions options;
  options.is_race_checked = true;
  options.schedule = GetParam();
  driver_ = make_sim_driver(options);
  EXPECT_EQ(run(), values);
  if (GetParam().policy == SchedulePolicy::random) {
    EXPECT_THAT(values, AllOf(HasSubstr("a"), HasSubstr("b")));
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, StreamOrderTest,
                         testing::Values(ScheduleSpec{SchedulePolicy::round_robin, 0, 3},
                                         ScheduleSpec{SchedulePolicy::reverse, 0, 3},
                                         ScheduleSpec{SchedulePolicy::run_to_block, 0, 3},
                                         ScheduleSpec{SchedulePolicy::random, 1, 3},
                                         ScheduleSpec{SchedulePolicy::random, 2, 3},
                                         ScheduleSpec{SchedulePolicy::pct, 1, 3}),
                         [](const auto& subject) {
                           return std::string{name(subject.param.policy)} +
                                  std::to_string(subject.param.seed);
                         });

}  // namespace
}  // namespace cpverify::sim
