#pragma once

#include <cstddef>
#include <cstdint>

#include "gpu/driver_api.hpp"

namespace cpverify::gpu {

/// ncclResult_t values. Source: NCCL user guide, "Types".
enum class NcclResult : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

/// ncclDataType_t values.
enum class NcclDataType : int {
  int8 = 0,
  uint8 = 1,
  int32 = 2,
  uint32 = 3,
  int64 = 4,
  uint64 = 5,
  float16 = 6,
  float32 = 7,
  float64 = 8,
  bfloat16 = 9,
};

using NcclComm = struct NcclCommOpaque*;

/// The NCCL API under its public names and semantics, for the calls that we make; ranks in one
/// process. One implementation forwards to libnccl, one is built on a DriverApi.
class NcclApi {
 public:
  virtual ~NcclApi() = default;

  // The names of the public API.
  // NOLINTBEGIN(readability-identifier-naming)
  /// One communicator per device of `devices`, in group-rank order.
  virtual NcclResult ncclCommInitAll(NcclComm* comms, int count, const int* devices) = 0;
  virtual NcclResult ncclCommDestroy(NcclComm comm) = 0;
  virtual NcclResult ncclGroupStart() = 0;
  virtual NcclResult ncclGroupEnd() = 0;
  /// `count` elements per rank; recv holds nranks * count, rank-major.
  virtual NcclResult ncclAllGather(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                   NcclDataType type, NcclComm comm, CuStream stream) = 0;
  virtual const char* ncclGetLastError(NcclComm comm) = 0;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace cpverify::gpu
