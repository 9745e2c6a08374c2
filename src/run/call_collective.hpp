#pragma once

#include "cpverify/plan.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::run {

/// Where one rank's part of a collective lies.
struct CollectiveAddresses {
  gpu::CuDevicePtr send = 0;
  gpu::CuDevicePtr recv = 0;
};

/// Queues one rank's part of a collective on a stream, within an open group call. Throws
/// EnvironmentError when NCCL refuses the call itself.
void call_collective(gpu::NcclApi& nccl, const Collective& collective,
                     const CollectiveAddresses& addresses, gpu::NcclComm comm,
                     gpu::CuStream stream);

}  // namespace cpverify::run
