#pragma once

#include <memory>

#include "cpverify/reduction.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {

/// NCCL for ranks in one process, built from events and copies of a DriverApi.
///
/// Calls between ncclGroupStart and ncclGroupEnd are matched at the end, per communicator clique,
/// in call order. ncclGroupEnd returns invalid_usage, and runs nothing, when a member of a clique
/// did not call, when kind, count or type differ over the members, or when send overlaps recv other
/// than in place; ncclGetLastError says which. A real NCCL would hang or corrupt data there. A
/// failure of the driver is unhandled_cuda_error. `reduction` decides in which order sums are
/// taken; a ring that is no permutation of a communicator's ranks is an invalid_argument of its
/// reductions.
[[nodiscard]] std::unique_ptr<gpu::NcclApi> make_local_nccl(gpu::DriverApi& driver,
                                                            const ReductionSpec& reduction = {});

}  // namespace cpverify::collectives
