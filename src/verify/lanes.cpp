#include "verify/lanes.hpp"

#include <memory>

#include "cpverify/scenario.hpp"
#include "cpverify/verify.hpp"
#include "gpu/lane.hpp"
#include "sim/driver/sim_driver.hpp"
#include "verify/sim_lane.hpp"

namespace cpverify::verify_detail {

std::unique_ptr<gpu::Lane> open_lane(const Scenario& scenario, const VerifyOptions& options,
                                     int devices) {
  if (options.lane == LaneKind::cuda) return gpu::open_cuda_lane(devices);
  sim::SimOptions sim_options;
  sim_options.device_count = devices;
  sim_options.has_coverage = options.coverage != nullptr;
  sim_options.is_race_checked = scenario.asks_for(Check::racecheck);
  sim_options.is_nan_checked = scenario.asks_for(Check::nancheck);
  sim_options.schedule = scenario.schedule;
  sim_options.mma_accumulation = scenario.mma_accumulation;
  if (scenario.launch) sim_options.instruction_budget = scenario.launch->instruction_budget;
  return open_sim_lane(sim_options, scenario.reduction);
}

}  // namespace cpverify::verify_detail
