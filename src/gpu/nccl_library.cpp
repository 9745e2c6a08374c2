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
  const char* ncclGetLastError(NcclComm comm) override { return get_last_error_(comm); }

 private:
  // Signatures as in the NCCL user guide, "NCCL API". cudaStream_t and CUstream are one type.
  SharedLibrary library_;
  NcclResult (*comm_init_all_)(NcclComm*, int, const int*) = nullptr;
  NcclResult (*comm_destroy_)(NcclComm) = nullptr;
  NcclResult (*group_start_)() = nullptr;
  NcclResult (*group_end_)() = nullptr;
  NcclResult (*all_gather_)(const void*, void*, std::size_t, NcclDataType, NcclComm,
                            CuStream) = nullptr;
  const char* (*get_last_error_)(NcclComm) = nullptr;
};

}  // namespace

std::unique_ptr<NcclApi> open_nccl(const std::string& library) {
  return std::make_unique<NcclLibrary>(library);
}

}  // namespace cpverify::gpu
