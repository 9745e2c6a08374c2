#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/driver_api.hpp"
#include "sim/isa/kernel_info.hpp"

namespace cpverify::sim {

/// What cuLaunchKernel returns of its own accord: invalid_value for an impossible grid, block or
/// amount of shared memory. `shared_bytes_optin` is the attribute's value, 0 when never set.
/// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
[[nodiscard]] gpu::CuResult check_launch(const KernelInfo& kernel,
                                         const gpu::DriverApi::LaunchConfig& config,
                                         std::uint32_t shared_bytes_optin);

/// The parameter bytes of a launch: parameters[i] points to the value of parameter i.
[[nodiscard]] std::vector<std::byte> pack_parameters(const KernelInfo& kernel,
                                                     void* const* parameters);

}  // namespace cpverify::sim
