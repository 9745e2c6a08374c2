#pragma once

#include <memory>
#include <string>

#include "gpu/driver_api.hpp"

namespace cpverify::gpu {

/// The table that forwards to a CUDA driver library. Throws EnvironmentError when it cannot be
/// opened or lacks a function.
[[nodiscard]] std::unique_ptr<DriverApi> open_cuda_driver(const std::string& library);

}  // namespace cpverify::gpu
