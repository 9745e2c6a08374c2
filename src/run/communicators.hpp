#pragma once

#include <map>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::run {

/// ncclDataType_t of an element type.
[[nodiscard]] gpu::NcclDataType nccl_type(DType dtype) noexcept;

/// The communicators of a run's groups, made when first asked for and kept over steps. World rank r
/// is device r.
class Communicators {
 public:
  explicit Communicators(gpu::NcclApi& nccl) : nccl_{nccl} {}
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  Communicators(Communicators&&) = delete;
  Communicators& operator=(Communicators&&) = delete;

  /// Throws EnvironmentError when NCCL refuses the group. `rank` must be a member.
  [[nodiscard]] gpu::NcclComm of(const Group& group, RankId rank);

 private:
  gpu::NcclApi& nccl_;
  std::map<std::vector<RankId>, std::vector<gpu::NcclComm>> by_members_;
};

}  // namespace cpverify::run
