#include "verify/sim_lane.hpp"

#include <memory>
#include <string_view>
#include <vector>

#include "collectives/local_nccl.hpp"
#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/reduction.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/lane.hpp"
#include "gpu/nccl_api.hpp"
#include "sim/driver/sim_driver.hpp"

namespace cpverify::verify_detail {
namespace {

class SimLane final : public gpu::Lane {
 public:
  SimLane(const sim::SimOptions& options, const ReductionSpec& reduction)
      : driver_{sim::make_sim_driver(options)},
        nccl_{collectives::make_local_nccl(*driver_, reduction)} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "sim"; }
  [[nodiscard]] gpu::DriverApi& driver() noexcept override { return *driver_; }
  [[nodiscard]] gpu::NcclApi& nccl() noexcept override { return *nccl_; }
  [[nodiscard]] std::vector<Fault> take_faults() override { return driver_->take_faults(); }
  [[nodiscard]] bool has_checkers() const noexcept override { return true; }
  [[nodiscard]] Coverage take_coverage() override { return driver_->take_coverage(); }

 private:
  std::unique_ptr<sim::SimDriver> driver_;
  std::unique_ptr<gpu::NcclApi> nccl_;
};

}  // namespace

std::unique_ptr<gpu::Lane> open_sim_lane(const sim::SimOptions& options,
                                         const ReductionSpec& reduction) {
  return std::make_unique<SimLane>(options, reduction);
}

}  // namespace cpverify::verify_detail
