#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/driver_types.hpp"

namespace cpverify::gpu {

/// Stream capture and graphs of the CUDA driver API, under their public names. Every function
/// answers not_supported where an implementation lacks it.
class GraphApi {
 public:
  virtual ~GraphApi() = default;

  /// The fields of CUDA_KERNEL_NODE_PARAMS. The parameters are copied by the call.
  struct KernelNode {
    CuFunction function = nullptr;
    unsigned grid_x = 1, grid_y = 1, grid_z = 1;
    unsigned block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    void** parameters = nullptr;
  };
  /// CUDA_MEMCPY3D of one row. A host pointer that is not null takes the place of the device's.
  struct CopyNode {
    CuDevicePtr target = 0;
    CuDevicePtr source = 0;
    void* host_target = nullptr;
    const void* host_source = nullptr;
    std::size_t size_bytes = 0;
  };
  /// CUDA_MEMSET_NODE_PARAMS of one row.
  struct FillNode {
    CuDevicePtr target = 0;
    unsigned value = 0;
    unsigned element_bytes = 1;  ///< 1, 2 or 4.
    std::size_t count = 0;       ///< Elements.
  };
  /// Nodes that a new one comes after.
  struct Dependencies {
    const CuGraphNode* nodes = nullptr;
    std::size_t count = 0;
  };

  // The names of the public API.
  // NOLINTBEGIN(readability-identifier-naming)
  virtual CuResult cuStreamBeginCapture(CuStream /*stream*/, CuCaptureMode /*mode*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuStreamEndCapture(CuStream /*stream*/, CuGraph* /*graph*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuStreamIsCapturing(CuStream /*stream*/, CuCaptureStatus* /*status*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuStreamGetCaptureInfo(CuStream /*stream*/, CuCaptureStatus* /*status*/,
                                          std::uint64_t* /*id*/) {
    return CuResult::not_supported;
  }

  virtual CuResult cuGraphCreate(CuGraph* /*graph*/, unsigned /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphDestroy(CuGraph /*graph*/) { return CuResult::not_supported; }
  /// With null `nodes`, `count` is set to their number.
  virtual CuResult cuGraphGetNodes(CuGraph /*graph*/, CuGraphNode* /*nodes*/,
                                   std::size_t* /*count*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddKernelNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                        Dependencies /*after*/, const KernelNode* /*kernel*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddMemcpyNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                        Dependencies /*after*/, const CopyNode* /*copy*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddMemsetNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                        Dependencies /*after*/, const FillNode* /*fill*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddEmptyNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                       Dependencies /*after*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddHostNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                      Dependencies /*after*/, CuHostFunction /*function*/,
                                      void* /*data*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddEventRecordNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                             Dependencies /*after*/, CuEvent /*event*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphAddEventWaitNode(CuGraphNode* /*node*/, CuGraph /*graph*/,
                                           Dependencies /*after*/, CuEvent /*event*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphInstantiate(CuGraphExec* /*exec*/, CuGraph /*graph*/,
                                      std::uint64_t /*flags*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphLaunch(CuGraphExec /*exec*/, CuStream /*stream*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphExecDestroy(CuGraphExec /*exec*/) { return CuResult::not_supported; }
  /// graph_exec_update_failure when the graph differs from the instantiated one in more than the
  /// parameters of its nodes; the instance is then as it was.
  virtual CuResult cuGraphExecUpdate(CuGraphExec /*exec*/, CuGraph /*graph*/) {
    return CuResult::not_supported;
  }
  virtual CuResult cuGraphExecKernelNodeSetParams(CuGraphExec /*exec*/, CuGraphNode /*node*/,
                                                  const KernelNode* /*kernel*/) {
    return CuResult::not_supported;
  }
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace cpverify::gpu
