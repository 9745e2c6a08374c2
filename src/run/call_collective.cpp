#include "run/call_collective.hpp"

#include <cstddef>

#include "cpverify/plan.hpp"
#include "gpu/check.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "run/communicators.hpp"

namespace cpverify::run {

void call_collective(gpu::NcclApi& nccl, const Collective& collective,
                     const CollectiveAddresses& addresses, gpu::NcclComm comm,
                     gpu::CuStream stream) {
  const auto [send, recv] = addresses;
  const auto count = static_cast<std::size_t>(collective.count);
  const gpu::NcclDataType type = nccl_type(collective.dtype);
  switch (collective.kind) {
    case CollectiveKind::all_gather:
      gpu::nccl_check(nccl.ncclAllGather(send, recv, count, type, comm, stream), "ncclAllGather");
      break;
    case CollectiveKind::all_reduce:
      gpu::nccl_check(
          nccl.ncclAllReduce(send, recv, count, type, gpu::NcclRedOp::sum, comm, stream),
          "ncclAllReduce");
      break;
    case CollectiveKind::reduce_scatter:
      gpu::nccl_check(
          nccl.ncclReduceScatter(send, recv, count, type, gpu::NcclRedOp::sum, comm, stream),
          "ncclReduceScatter");
      break;
    case CollectiveKind::all_to_all:
      gpu::nccl_check(nccl.ncclAlltoAll(send, recv, count, type, comm, stream), "ncclAlltoAll");
      break;
    case CollectiveKind::send_recv:
      gpu::nccl_check(
          nccl.ncclSend(send, count, type, static_cast<int>(collective.send_peer), comm, stream),
          "ncclSend");
      gpu::nccl_check(
          nccl.ncclRecv(recv, count, type, static_cast<int>(collective.recv_peer), comm, stream),
          "ncclRecv");
      break;
  }
}

}  // namespace cpverify::run
