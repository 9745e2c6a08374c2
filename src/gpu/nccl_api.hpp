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

/// Of one element; 0 for a value that is no ncclDataType_t.
[[nodiscard]] constexpr std::size_t size_bytes(NcclDataType type) noexcept {
  switch (type) {
    case NcclDataType::int8:
    case NcclDataType::uint8:
      return 1;
    case NcclDataType::float16:
    case NcclDataType::bfloat16:
      return 2;
    case NcclDataType::int32:
    case NcclDataType::uint32:
    case NcclDataType::float32:
      return 4;
    case NcclDataType::int64:
    case NcclDataType::uint64:
    case NcclDataType::float64:
      return 8;
  }
  return 0;
}

/// ncclRedOp_t values.
enum class NcclRedOp : int { sum = 0, prod = 1, max = 2, min = 3, avg = 4 };

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
  virtual NcclResult ncclCommCount(NcclComm comm, int* count) = 0;
  virtual NcclResult ncclCommUserRank(NcclComm comm, int* rank) = 0;
  virtual NcclResult ncclCommCuDevice(NcclComm comm, int* device) = 0;
  /// The sum (or other reduction) of all ranks' `count` elements, on all ranks. Which order it is
  /// added up in is not promised. In place when recv is send.
  virtual NcclResult ncclAllReduce(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                   NcclDataType type, NcclRedOp op, NcclComm comm,
                                   CuStream stream) = 0;
  /// send holds nranks * count elements; block r of the reduction goes to rank r.
  virtual NcclResult ncclReduceScatter(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                       NcclDataType type, NcclRedOp op, NcclComm comm,
                                       CuStream stream) = 0;
  /// recv is used on rank `root` only.
  virtual NcclResult ncclReduce(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                NcclDataType type, NcclRedOp op, int root, NcclComm comm,
                                CuStream stream) = 0;
  /// send is used on rank `root` only.
  virtual NcclResult ncclBroadcast(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                   NcclDataType type, int root, NcclComm comm, CuStream stream) = 0;
  virtual NcclResult ncclSend(CuDevicePtr send, std::size_t count, NcclDataType type, int peer,
                              NcclComm comm, CuStream stream) = 0;
  virtual NcclResult ncclRecv(CuDevicePtr recv, std::size_t count, NcclDataType type, int peer,
                              NcclComm comm, CuStream stream) = 0;
  /// Block p of send goes to block r of rank p's recv; `count` elements per block.
  virtual NcclResult ncclAlltoAll(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                  NcclDataType type, NcclComm comm, CuStream stream) = 0;
  virtual const char* ncclGetErrorString(NcclResult result) = 0;
  virtual const char* ncclGetLastError(NcclComm comm) = 0;
  // NOLINTEND(readability-identifier-naming)
};

}  // namespace cpverify::gpu
