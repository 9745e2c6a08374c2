#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/driver_api.hpp"
#include "sim/isa/kernel_info.hpp"

namespace cpverify::sim {

/// What cuLaunchKernel returns of its own accord: invalid_value for an impossible grid, block or
/// amount of shared memory, invalid_cluster_size for an impossible cluster, which is zeros when the
/// launch names none. `shared_bytes_optin` is the attribute's value, 0 when never set.
/// Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
[[nodiscard]] gpu::CuResult check_launch(const KernelInfo& kernel,
                                         const gpu::DriverApi::LaunchConfig& config,
                                         const std::array<std::uint32_t, 3>& cluster,
                                         std::uint32_t shared_bytes_optin);

/// What cuLaunchKernelEx is given besides: sets the cluster; invalid_value for what we do not have.
[[nodiscard]] gpu::CuResult read_attributes(std::span<const gpu::LaunchAttribute> attributes,
                                            std::array<std::uint32_t, 3>& cluster);

/// The parameter bytes of a launch: parameters[i] points to the value of parameter i.
[[nodiscard]] std::vector<std::byte> pack_parameters(const KernelInfo& kernel,
                                                     void* const* parameters);

}  // namespace cpverify::sim
