#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::gpu {

/// Where a plan runs: a CUDA driver, a NCCL, and what its checkers saw.
class Lane {
 public:
  virtual ~Lane() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  [[nodiscard]] virtual DriverApi& driver() noexcept = 0;
  [[nodiscard]] virtual NcclApi& nccl() noexcept = 0;

  /// Faults since the last call, in schedule order, one per (kernel, instruction, kind, device).
  /// A lane without checkers returns none and says so in has_checkers().
  [[nodiscard]] virtual std::vector<Fault> take_faults() = 0;
  [[nodiscard]] virtual bool has_checkers() const noexcept = 0;

  /// What kernels executed since the last call. A lane that does not count returns nothing.
  [[nodiscard]] virtual Coverage take_coverage() { return {}; }
};

/// libcuda and libnccl, found at run time. Throws EnvironmentError naming what is missing when
/// there is no driver, no NCCL or fewer than `device_count` devices.
[[nodiscard]] std::unique_ptr<Lane> open_cuda_lane(int device_count);

}  // namespace cpverify::gpu
