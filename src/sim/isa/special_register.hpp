#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cpverify::sim {

/// The special registers that we have, all 32 bits wide. Source: PTX ISA, "Special Registers".
enum class SpecialRegister : std::uint8_t {
  tid_x,
  tid_y,
  tid_z,
  ntid_x,
  ntid_y,
  ntid_z,
  ctaid_x,
  ctaid_y,
  ctaid_z,
  nctaid_x,
  nctaid_y,
  nctaid_z,
  laneid,
  warpid,
  nwarpid,
  lanemask_eq,
  lanemask_le,
  lanemask_lt,
  lanemask_ge,
  lanemask_gt,
  dynamic_smem_size,
  cluster_ctaid_x,
  cluster_ctaid_y,
  cluster_ctaid_z,
  cluster_nctaid_x,
  cluster_nctaid_y,
  cluster_nctaid_z,
  cluster_ctarank,
  cluster_nctarank,
  clusterid_x,
  clusterid_y,
  clusterid_z,
  nclusterid_x,
  nclusterid_y,
  nclusterid_z,
  is_explicit_cluster,  ///< A predicate to the program: 0 or 1 here.
};

/// A register that changes while the kernel runs: %clock and %globaltimer in their widths.
struct ClockRegister {
  std::uint32_t width_bytes = 4;
  bool is_high = false;  ///< The upper 32 bits.
};
[[nodiscard]] std::optional<ClockRegister> find_clock(std::string_view name) noexcept;

/// Of `%tid.x` and so on. SM numbers have no deterministic meaning and are not here.
[[nodiscard]] std::optional<SpecialRegister> find_special_register(std::string_view name) noexcept;

}  // namespace cpverify::sim
