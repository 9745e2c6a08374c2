#include "sim/driver/launch_check.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "gpu/driver_api.hpp"
#include "sim/isa/kernel_info.hpp"
#include "sim/machine/launch.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

constexpr std::array<std::uint64_t, 3> kMaxGrid{0x7fffffff, 65535, 65535};
constexpr std::array<std::uint64_t, 3> kMaxBlock{1024, 1024, 64};

bool is_within(const std::array<unsigned, 3>& extents,
               const std::array<std::uint64_t, 3>& limits) noexcept {
  for (std::size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 0 || extents[i] > limits[i]) return false;
  }
  return true;
}

}  // namespace

gpu::CuResult read_attributes(std::span<const gpu::LaunchAttribute> attributes,
                              std::array<std::uint32_t, 3>& cluster) {
  if (attributes.data() == nullptr && !attributes.empty()) return gpu::CuResult::invalid_value;
  for (const gpu::LaunchAttribute& attribute : attributes) {
    if (attribute.id != gpu::kLaunchAttributeCluster) return gpu::CuResult::invalid_value;
    cluster = {attribute.value[0], attribute.value[1], attribute.value[2]};
    if (cluster[0] == 0 || cluster[1] == 0 || cluster[2] == 0) {
      return gpu::CuResult::invalid_cluster_size;
    }
  }
  return gpu::CuResult::success;
}

gpu::CuResult check_launch(const KernelInfo& kernel, const gpu::DriverApi::LaunchConfig& config,
                           const std::array<std::uint32_t, 3>& cluster,
                           std::uint32_t shared_bytes_optin) {
  const std::array<unsigned, 3> grid{config.grid_x, config.grid_y, config.grid_z};
  const std::array<unsigned, 3> block{config.block_x, config.block_y, config.block_z};
  if (!is_within(grid, kMaxGrid) || !is_within(block, kMaxBlock)) {
    return gpu::CuResult::invalid_value;
  }
  if (std::uint64_t{block[0]} * block[1] * block[2] > kernel.max_threads) {
    return gpu::CuResult::invalid_value;
  }
  const bool is_block_required = kernel.required_block != std::array<std::uint32_t, 3>{};
  if (is_block_required && kernel.required_block != block) return gpu::CuResult::invalid_value;
  if (!choose_cluster(kernel, grid, cluster).refusal.empty()) {
    return gpu::CuResult::invalid_cluster_size;
  }

  // Without the attribute, static and dynamic memory share the default amount.
  const std::uint64_t total = std::uint64_t{kernel.static_shared_bytes} + config.shared_bytes;
  const bool is_shared_allowed = shared_bytes_optin == 0
                                     ? total <= kSharedBytesDefault
                                     : config.shared_bytes <= shared_bytes_optin;
  return is_shared_allowed ? gpu::CuResult::success : gpu::CuResult::invalid_value;
}

std::vector<std::byte> pack_parameters(const KernelInfo& kernel, void* const* parameters) {
  std::vector<std::byte> bytes(kernel.parameter_bytes);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ParameterInfo& parameter = kernel.parameters[i];
    CPVERIFY_CHECK(parameter.offset_bytes + parameter.size_bytes <= bytes.size());
    std::memcpy(bytes.data() + parameter.offset_bytes, parameters[i], parameter.size_bytes);
  }
  return bytes;
}

}  // namespace cpverify::sim
