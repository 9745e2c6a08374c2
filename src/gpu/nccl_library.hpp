#pragma once

#include <memory>
#include <string>

#include "gpu/nccl_api.hpp"

namespace cpverify::gpu {

/// The table that forwards to a NCCL library. Throws EnvironmentError when it cannot be opened or
/// lacks a function.
[[nodiscard]] std::unique_ptr<NcclApi> open_nccl(const std::string& library);

}  // namespace cpverify::gpu
