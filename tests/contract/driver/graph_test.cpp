// Stream capture and graphs of the simulated driver; each defect beside its clean twin.

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "contract/driver/driver_fixture.hpp"
#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "support/device_session.hpp"

namespace cpverify::sim {
namespace {

using gpu::CuCaptureMode;
using gpu::CuCaptureStatus;
using gpu::CuDevicePtr;
using gpu::CuEvent;
using gpu::CuFunction;
using gpu::CuGraph;
using gpu::CuGraphExec;
using gpu::CuGraphNode;
using gpu::CuResult;
using gpu::CuStream;
using test_support::DeviceSession;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class GraphTest : public DriverFixture {
 protected:
  void begin(CuStream stream, CuCaptureMode mode = CuCaptureMode::global) {
    ASSERT_EQ(driver_->cuStreamBeginCapture(stream, mode), ok());
  }
  CuGraph end(CuStream stream, CuResult expected = CuResult::success) {
    CuGraph graph = nullptr;
    EXPECT_EQ(driver_->cuStreamEndCapture(stream, &graph), expected);
    EXPECT_EQ(graph == nullptr, expected != CuResult::success);
    return graph;
  }
  CuGraphExec instantiate(CuGraph graph) {
    CuGraphExec exec = nullptr;
    EXPECT_EQ(driver_->cuGraphInstantiate(&exec, graph, 0), ok());
    return exec;
  }
  std::size_t node_count(CuGraph graph) {
    std::size_t count = 0;
    EXPECT_EQ(driver_->cuGraphGetNodes(graph, nullptr, &count), ok());
    return count;
  }
};

TEST_F(GraphTest, ACaptureRunsNothingAndAReplayRunsItAgain) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words{1});
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const CuFunction function = load();
  begin(session.stream);
  CuCaptureStatus status = CuCaptureStatus::none;
  std::uint64_t id = 0;
  ASSERT_EQ(driver_->cuStreamGetCaptureInfo(session.stream, &status, &id), ok());
  EXPECT_EQ(status, CuCaptureStatus::active);
  EXPECT_NE(id, 0U);
  ASSERT_EQ(add(function, session.stream, words, 1, 2), ok());
  ASSERT_EQ(add(function, session.stream, words, 1, 3), ok());
  const CuGraph graph = end(session.stream);
  ASSERT_EQ(driver_->cuStreamIsCapturing(session.stream, &status), ok());
  EXPECT_EQ(status, CuCaptureStatus::none);
  EXPECT_EQ(node_count(graph), 2U);
  EXPECT_THAT(session.download<std::uint32_t>(words, 1), ElementsAre(1));
  const CuGraphExec exec = instantiate(graph);
  ASSERT_EQ(driver_->cuGraphDestroy(graph), ok());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  // 1 + 3 * (2 + 3).
  EXPECT_THAT(session.download<std::uint32_t>(words, 1), ElementsAre(16));
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuGraphExecDestroy(exec), ok());
  EXPECT_THAT(session.download<std::uint32_t>(words, 1), ElementsAre(21));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(GraphTest, AForkedStreamIsPartOfTheGraphWhenItJoins) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words(4, 0));
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const CuStream other = new_stream();
  begin(session.stream);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 1, 4, session.stream), ok());
  order(session.stream, other);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 2, 1, other), ok());
  ASSERT_EQ(driver_->cuMemsetD32Async(words + 4, 3, 1, session.stream), ok());
  order(other, session.stream);
  ASSERT_EQ(driver_->cuMemsetD32Async(words + 8, 4, 1, session.stream), ok());
  const CuGraphExec exec = instantiate(end(session.stream));
  // On a third stream, twice: the whole graph is behind what that stream did before.
  const CuStream third = new_stream();
  order(session.stream, third);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 9, 4, third), ok());
  ASSERT_EQ(driver_->cuGraphLaunch(exec, third), ok());
  ASSERT_EQ(driver_->cuGraphLaunch(exec, third), ok());
  order(third, session.stream);
  EXPECT_THAT(session.download<std::uint32_t>(words, 4), ElementsAre(2, 3, 4, 1));
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(GraphTest, BranchesThatNothingOrdersRace) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate(16);
  const CuStream other = new_stream();
  begin(session.stream);
  order(session.stream, other);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 1, 4, session.stream), ok());
  ASSERT_EQ(driver_->cuMemsetD32Async(words + 12, 2, 1, other), ok());
  order(other, session.stream);
  const CuGraphExec exec = instantiate(end(session.stream));
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].address, words + 12);
  EXPECT_THAT(faults[0].detail, HasSubstr("branch 1 of a graph on device 0"));
}

TEST_F(GraphTest, AReplayThatOutlivesItsMemoryIsAUseAfterFree) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate(16);
  const CuDevicePtr copy = session.allocate(16);
  begin(session.stream);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 1, 4, session.stream), ok());
  ASSERT_EQ(driver_->cuMemcpyDtoDAsync(copy, words, 16, session.stream), ok());
  const CuGraphExec exec = instantiate(end(session.stream));
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuMemFree(copy), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  EXPECT_EQ(driver_->cuStreamSynchronize(session.stream), CuResult::illegal_address);
  const std::vector<Fault> faults = driver_->take_faults();
  ASSERT_THAT(faults, SizeIs(1));
  EXPECT_EQ(faults[0].kind, FaultKind::use_after_free);
  EXPECT_EQ(faults[0].kernel, "cuMemcpyDtoDAsync");
  EXPECT_EQ(faults[0].allocation, copy);
}

TEST_F(GraphTest, ACaptureWithoutItsJoinIsRefused) {
  const DeviceSession session{*driver_, 0};
  const CuStream other = new_stream();
  CuDevicePtr words = 0;
  ASSERT_EQ(driver_->cuMemAlloc(&words, 4), ok());
  begin(session.stream);
  order(session.stream, other);
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 1, 1, other), ok());
  end(session.stream, CuResult::stream_capture_unjoined);
  // Both streams are as before.
  ASSERT_EQ(driver_->cuStreamSynchronize(other), ok());
  begin(session.stream);
  static_cast<void>(end(session.stream));
}

TEST_F(GraphTest, WhatWaitsEndsACapture) {
  const DeviceSession session{*driver_, 0};
  CuDevicePtr words = 0;
  const auto expect_invalidated = [&](CuResult result) {
    EXPECT_EQ(result, CuResult::stream_capture_unsupported);
    CuCaptureStatus status = CuCaptureStatus::none;
    ASSERT_EQ(driver_->cuStreamIsCapturing(session.stream, &status), ok());
    EXPECT_EQ(status, CuCaptureStatus::invalidated);
    EXPECT_EQ(driver_->cuMemsetD32Async(words, 1, 0, session.stream), ok());
    end(session.stream, CuResult::stream_capture_invalidated);
  };
  begin(session.stream);
  expect_invalidated(driver_->cuStreamSynchronize(session.stream));
  begin(session.stream);
  expect_invalidated(driver_->cuStreamQuery(session.stream));
  begin(session.stream);
  expect_invalidated(driver_->cuCtxSynchronize());
  begin(session.stream);
  expect_invalidated(driver_->cuMemAlloc(&words, 4));
  begin(session.stream, CuCaptureMode::relaxed);
  EXPECT_EQ(driver_->cuMemAlloc(&words, 4), ok());
  static_cast<void>(end(session.stream));
}

TEST_F(GraphTest, AnEventOfACaptureIsNoEventOfTheDevice) {
  const DeviceSession session{*driver_, 0};
  const CuEvent event = new_event();
  begin(session.stream);
  ASSERT_EQ(driver_->cuEventRecord(event, session.stream), ok());
  EXPECT_EQ(driver_->cuEventQuery(event), CuResult::captured_event);
  EXPECT_EQ(driver_->cuEventSynchronize(event), CuResult::captured_event);
  static_cast<void>(end(session.stream));
  ASSERT_EQ(driver_->cuEventRecord(event, session.stream), ok());
  EXPECT_EQ(driver_->cuEventSynchronize(event), ok());
}

TEST_F(GraphTest, CapturesKeepApart) {
  const DeviceSession session{*driver_, 0};
  const CuStream other = new_stream();
  const CuEvent event = new_event();
  // An event from outside.
  ASSERT_EQ(driver_->cuEventRecord(event, other), ok());
  begin(session.stream);
  EXPECT_EQ(driver_->cuStreamWaitEvent(session.stream, event, 0),
            CuResult::stream_capture_isolation);
  end(session.stream, CuResult::stream_capture_invalidated);
  // An event of another capture.
  begin(session.stream);
  begin(other);
  ASSERT_EQ(driver_->cuEventRecord(event, other), ok());
  EXPECT_EQ(driver_->cuStreamWaitEvent(session.stream, event, 0), CuResult::stream_capture_merge);
  end(session.stream, CuResult::stream_capture_invalidated);
  end(other, CuResult::stream_capture_invalidated);
  // The end on a stream that only joined.
  begin(session.stream);
  order(session.stream, other);
  end(other, CuResult::stream_capture_unmatched);
  end(session.stream, CuResult::stream_capture_invalidated);
  end(session.stream, CuResult::illegal_state);
}

TEST_F(GraphTest, TheLegacyStreamCannotBeCapturedNorUsedBesideABlockingOne) {
  const DeviceSession session{*driver_, 0};
  CuDevicePtr words = 0;
  ASSERT_EQ(driver_->cuMemAlloc(&words, 4), ok());
  EXPECT_EQ(driver_->cuStreamBeginCapture(nullptr, CuCaptureMode::global),
            CuResult::stream_capture_unsupported);
  const CuStream blocking = new_stream(0);
  begin(blocking);
  EXPECT_EQ(driver_->cuMemsetD32Async(words, 1, 1, nullptr), CuResult::stream_capture_implicit);
  end(blocking, CuResult::stream_capture_invalidated);
  begin(session.stream);
  EXPECT_EQ(driver_->cuMemsetD32Async(words, 1, 1, nullptr), ok());
  static_cast<void>(end(session.stream));
}

void count_up(void* data) {
  ++*static_cast<int*>(data);
}

TEST_F(GraphTest, NodesRunInTheOrderOfTheirEdges) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate(16);
  const CuFunction function = load();
  CuGraph graph = nullptr;
  ASSERT_EQ(driver_->cuGraphCreate(&graph, 0), ok());
  CuDevicePtr pointer = words;
  std::uint32_t count = 4;
  std::uint32_t value = 10;
  std::array<void*, 3> parameters{&pointer, &count, &value};
  gpu::GraphApi::KernelNode kernel;
  kernel.function = function;
  kernel.block_x = 4;
  kernel.parameters = parameters.data();
  const gpu::GraphApi::FillNode fill{words, 5, 4, 4};
  Words host(4);
  const gpu::GraphApi::CopyNode copy{0, words, host.data(), nullptr, 16};
  int runs = 0;
  std::array<CuGraphNode, 5> nodes{};
  ASSERT_EQ(driver_->cuGraphAddMemsetNode(&nodes[0], graph, {}, &fill), ok());
  ASSERT_EQ(driver_->cuGraphAddEmptyNode(&nodes[1], graph, {&nodes[0], 1}), ok());
  ASSERT_EQ(driver_->cuGraphAddKernelNode(&nodes[2], graph, {&nodes[1], 1}, &kernel), ok());
  ASSERT_EQ(driver_->cuGraphAddMemcpyNode(&nodes[3], graph, {&nodes[2], 1}, &copy), ok());
  ASSERT_EQ(driver_->cuGraphAddHostNode(&nodes[4], graph, {}, count_up, &runs), ok());
  value = 99;  // The node has a copy.
  std::array<CuGraphNode, 6> listed{};
  std::size_t listed_count = listed.size();
  ASSERT_EQ(driver_->cuGraphGetNodes(graph, listed.data(), &listed_count), ok());
  EXPECT_EQ(listed_count, 5U);
  EXPECT_EQ(listed[4], nodes[4]);
  EXPECT_EQ(listed[5], nullptr);

  const CuGraphExec exec = instantiate(graph);
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  EXPECT_EQ(host, Words(4, 15));
  EXPECT_EQ(runs, 1);
  // 1 thread, and 99 from now on.
  kernel.block_x = 1;
  ASSERT_EQ(driver_->cuGraphExecKernelNodeSetParams(exec, nodes[2], &kernel), ok());
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  EXPECT_THAT(host, ElementsAre(104, 5, 5, 5));
  EXPECT_EQ(driver_->cuGraphExecKernelNodeSetParams(exec, nodes[0], &kernel),
            CuResult::invalid_value);
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(GraphTest, AnUpdateTakesNewParametersButNoNewShape) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words{0});
  ASSERT_EQ(driver_->cuStreamSynchronize(session.stream), ok());
  const CuFunction function = load();
  const auto capture = [&](std::uint32_t value, bool has_fill) {
    begin(session.stream);
    EXPECT_EQ(add(function, session.stream, words, 1, value), ok());
    if (has_fill) {
      EXPECT_EQ(driver_->cuMemsetD32Async(words, 1, 1, session.stream), ok());
    }
    return end(session.stream);
  };
  const CuGraphExec exec = instantiate(capture(1, false));
  EXPECT_EQ(driver_->cuGraphExecUpdate(exec, capture(7, true)),
            CuResult::graph_exec_update_failure);
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuGraphExecUpdate(exec, capture(7, false)), ok());
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  EXPECT_THAT(session.download<std::uint32_t>(words, 1), ElementsAre(8));
}

TEST_F(GraphTest, EventsInAGraphReachOutOfIt) {
  const DeviceSession session{*driver_, 0};
  const CuStream other = new_stream();
  CuDevicePtr words = 0;
  ASSERT_EQ(driver_->cuMemAlloc(&words, 8), ok());
  const CuEvent event = new_event();
  CuGraph graph = nullptr;
  ASSERT_EQ(driver_->cuGraphCreate(&graph, 0), ok());
  const gpu::GraphApi::FillNode fill{words, 1, 4, 1};
  std::array<CuGraphNode, 2> nodes{};
  ASSERT_EQ(driver_->cuGraphAddMemsetNode(&nodes[0], graph, {}, &fill), ok());
  ASSERT_EQ(driver_->cuGraphAddEventRecordNode(&nodes[1], graph, {&nodes[0], 1}, event), ok());
  EXPECT_EQ(driver_->cuGraphAddEventWaitNode(&nodes[1], graph, {}, nullptr),
            CuResult::invalid_handle);
  const CuGraphExec exec = instantiate(graph);
  ASSERT_EQ(driver_->cuGraphLaunch(exec, session.stream), ok());
  ASSERT_EQ(driver_->cuStreamWaitEvent(other, event, 0), ok());
  ASSERT_EQ(driver_->cuMemsetD32Async(words, 2, 1, other), ok());
  ASSERT_EQ(driver_->cuCtxSynchronize(), ok());
  EXPECT_THAT(driver_->take_faults(), IsEmpty());
}

TEST_F(GraphTest, RefusesWhatIsNoGraph) {
  const DeviceSession session{*driver_, 0};
  CuGraph graph = nullptr;
  CuGraph other = nullptr;
  CuGraphExec exec = nullptr;
  CuGraphNode node = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(driver_->cuGraphCreate(nullptr, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphCreate(&graph, 1), CuResult::invalid_value);
  ASSERT_EQ(driver_->cuGraphCreate(&graph, 0), ok());
  ASSERT_EQ(driver_->cuGraphCreate(&other, 0), ok());
  ASSERT_EQ(driver_->cuGraphAddEmptyNode(&node, graph, {}), ok());
  const std::array<CuGraphNode, 2> twice{node, node};
  EXPECT_EQ(driver_->cuGraphAddEmptyNode(&node, graph, {twice.data(), 2}), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphAddEmptyNode(&node, other, {twice.data(), 1}), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphAddEmptyNode(&node, graph, {nullptr, 1}), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphAddEmptyNode(nullptr, graph, {}), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphAddKernelNode(&node, graph, {}, nullptr), CuResult::invalid_value);
  const gpu::GraphApi::KernelNode kernel;
  EXPECT_EQ(driver_->cuGraphAddKernelNode(&node, graph, {}, &kernel), CuResult::invalid_handle);
  const gpu::GraphApi::FillNode odd{0, 0, 3, 1};
  EXPECT_EQ(driver_->cuGraphAddMemsetNode(&node, graph, {}, &odd), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphAddHostNode(&node, graph, {}, nullptr, nullptr),
            CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphGetNodes(graph, nullptr, nullptr), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphInstantiate(&exec, graph, 1), CuResult::invalid_value);
  ASSERT_EQ(driver_->cuGraphDestroy(graph), ok());
  EXPECT_EQ(driver_->cuGraphDestroy(graph), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphGetNodes(graph, nullptr, &count), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphInstantiate(&exec, graph, 0), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphLaunch(exec, session.stream), CuResult::invalid_value);
  EXPECT_EQ(driver_->cuGraphExecDestroy(exec), CuResult::invalid_value);
}

TEST_F(GraphTest, AGraphOfAnUnloadedModuleIsNotLaunched) {
  DeviceSession session{*driver_, 0};
  const CuDevicePtr words = session.allocate_with(Words{0});
  gpu::CuModule module = nullptr;
  CuFunction function = nullptr;
  ASSERT_EQ(driver_->cuModuleLoadData(&module, test_support::kAddPtx), ok());
  ASSERT_EQ(driver_->cuModuleGetFunction(&function, module, "add"), ok());
  begin(session.stream);
  ASSERT_EQ(add(function, session.stream, words, 1, 1), ok());
  const CuGraphExec exec = instantiate(end(session.stream));
  ASSERT_EQ(driver_->cuModuleUnload(module), ok());
  EXPECT_EQ(driver_->cuGraphLaunch(exec, session.stream), CuResult::invalid_handle);
}

}  // namespace
}  // namespace cpverify::sim
