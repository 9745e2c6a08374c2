#pragma once

#include <string>

#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::gpu {

/// The public name and number: "CUDA_ERROR_INVALID_VALUE (1)".
[[nodiscard]] std::string describe(CuResult result);
/// "ncclInvalidUsage (5)".
[[nodiscard]] std::string describe(NcclResult result);

/// Throw EnvironmentError naming the call and the result unless it is success.
void cuda_check(CuResult result, const char* call);
void nccl_check(NcclResult result, const char* call);

}  // namespace cpverify::gpu
