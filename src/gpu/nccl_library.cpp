#include "gpu/nccl_library.hpp"

#include <cstddef>
#include <memory>
#include <string>

#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "gpu/shared_library.hpp"

namespace cpverify::gpu {
namespace {

class NcclLibrary final : public NcclApi {
 public:
  explicit NcclLibrary(const std::string& library)
      : library_{library, "install NCCL 2.13 or newer (package libnccl2), or run with --lane sim"} {
    library_.resolve(comm_init_all_, "ncclCommInitAll");
    library_.resolve(comm_destroy_, "ncclCommDestroy");
    library_.resolve(group_start_, "ncclGroupStart");
    library_.resolve(group_end_, "ncclGroupEnd");
    library_.resolve(all_gather_, "ncclAllGather");
    library_.resolve(comm_count_, "ncclCommCount");
    library_.resolve(comm_user_rank_, "ncclCommUserRank");
    library_.resolve(comm_cu_device_, "ncclCommCuDevice");
    library_.resolve(all_reduce_, "ncclAllReduce");
    library_.resolve(reduce_scatter_, "ncclReduceScatter");
    library_.resolve(reduce_, "ncclReduce");
    library_.resolve(broadcast_, "ncclBroadcast");
    library_.resolve(send_, "ncclSend");
    library_.resolve(recv_, "ncclRecv");
    library_.resolve(get_error_string_, "ncclGetErrorString");
    library_.resolve(get_last_error_, "ncclGetLastError");
  }

  NcclResult ncclCommInitAll(NcclComm* comms, int count, const int* devices) override {
    return comm_init_all_(comms, count, devices);
  }
  NcclResult ncclCommDestroy(NcclComm comm) override { return comm_destroy_(comm); }
  NcclResult ncclGroupStart() override { return group_start_(); }
  NcclResult ncclGroupEnd() override { return group_end_(); }
  // NOLINTNEXTLINE(readability-function-size): the public signature.
  NcclResult ncclAllGather(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           NcclComm comm, CuStream stream) override {
    return all_gather_(reinterpret_cast<const void*>(send), reinterpret_cast<void*>(recv), count,
                       type, comm, stream);
  }
  NcclResult ncclCommCount(NcclComm comm, int* count) override { return comm_count_(comm, count); }
  NcclResult ncclCommUserRank(NcclComm comm, int* rank) override {
    return comm_user_rank_(comm, rank);
  }
  NcclResult ncclCommCuDevice(NcclComm comm, int* device) override {
    return comm_cu_device_(comm, device);
  }
  // NOLINTBEGIN(readability-function-size): the public signatures.
  NcclResult ncclAllReduce(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           NcclRedOp op, NcclComm comm, CuStream stream) override {
    return all_reduce_(source(send), target(recv), count, type, op, comm, stream);
  }
  NcclResult ncclReduceScatter(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                               NcclDataType type, NcclRedOp op, NcclComm comm,
                               CuStream stream) override {
    return reduce_scatter_(source(send), target(recv), count, type, op, comm, stream);
  }
  NcclResult ncclReduce(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                        NcclRedOp op, int root, NcclComm comm, CuStream stream) override {
    return reduce_(source(send), target(recv), count, type, op, root, comm, stream);
  }
  NcclResult ncclBroadcast(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           int root, NcclComm comm, CuStream stream) override {
    return broadcast_(source(send), target(recv), count, type, root, comm, stream);
  }
  NcclResult ncclSend(CuDevicePtr send, std::size_t count, NcclDataType type, int peer,
                      NcclComm comm, CuStream stream) override {
    return send_(source(send), count, type, peer, comm, stream);
  }
  NcclResult ncclRecv(CuDevicePtr recv, std::size_t count, NcclDataType type, int peer,
                      NcclComm comm, CuStream stream) override {
    return recv_(target(recv), count, type, peer, comm, stream);
  }
  NcclResult ncclAlltoAll(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                          NcclComm comm, CuStream stream) override;
  // NOLINTEND(readability-function-size)
  const char* ncclGetErrorString(NcclResult result) override { return get_error_string_(result); }
  const char* ncclGetLastError(NcclComm comm) override { return get_last_error_(comm); }

 private:
  static const void* source(CuDevicePtr address) { return reinterpret_cast<const void*>(address); }
  static void* target(CuDevicePtr address) { return reinterpret_cast<void*>(address); }

  // Signatures as in the NCCL user guide, "NCCL API". cudaStream_t and CUstream are one type.
  SharedLibrary library_;
  NcclResult (*comm_init_all_)(NcclComm*, int, const int*) = nullptr;
  NcclResult (*comm_destroy_)(NcclComm) = nullptr;
  NcclResult (*group_start_)() = nullptr;
  NcclResult (*group_end_)() = nullptr;
  NcclResult (*all_gather_)(const void*, void*, std::size_t, NcclDataType, NcclComm,
                            CuStream) = nullptr;
  NcclResult (*comm_count_)(NcclComm, int*) = nullptr;
  NcclResult (*comm_user_rank_)(NcclComm, int*) = nullptr;
  NcclResult (*comm_cu_device_)(NcclComm, int*) = nullptr;
  NcclResult (*all_reduce_)(const void*, void*, std::size_t, NcclDataType, NcclRedOp, NcclComm,
                            CuStream) = nullptr;
  NcclResult (*reduce_scatter_)(const void*, void*, std::size_t, NcclDataType, NcclRedOp, NcclComm,
                                CuStream) = nullptr;
  NcclResult (*reduce_)(const void*, void*, std::size_t, NcclDataType, NcclRedOp, int, NcclComm,
                        CuStream) = nullptr;
  NcclResult (*broadcast_)(const void*, void*, std::size_t, NcclDataType, int, NcclComm,
                           CuStream) = nullptr;
  NcclResult (*send_)(const void*, std::size_t, NcclDataType, int, NcclComm, CuStream) = nullptr;
  NcclResult (*recv_)(void*, std::size_t, NcclDataType, int, NcclComm, CuStream) = nullptr;
  const char* (*get_error_string_)(NcclResult) = nullptr;
  const char* (*get_last_error_)(NcclComm) = nullptr;
};

// ncclAlltoAll is younger than the oldest NCCL that we take; this is what it does.
// NOLINTNEXTLINE(readability-function-size): the public signature.
NcclResult NcclLibrary::ncclAlltoAll(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                     NcclDataType type, NcclComm comm, CuStream stream) {
  int ranks = 0;
  NcclResult result = comm_count_(comm, &ranks);
  if (result == NcclResult::success) result = group_start_();
  const std::size_t block_bytes = count * size_bytes(type);
  for (int peer = 0; result == NcclResult::success && peer < ranks; ++peer) {
    const std::size_t offset = static_cast<std::size_t>(peer) * block_bytes;
    result = send_(source(send + offset), count, type, peer, comm, stream);
    if (result != NcclResult::success) break;
    result = recv_(target(recv + offset), count, type, peer, comm, stream);
  }
  const NcclResult ended = group_end_();
  return result == NcclResult::success ? ended : result;
}

}  // namespace

std::unique_ptr<NcclApi> open_nccl(const std::string& library) {
  return std::make_unique<NcclLibrary>(library);
}

}  // namespace cpverify::gpu
