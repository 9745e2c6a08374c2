#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"
#include "scenario/yaml_value.hpp"

namespace cpverify::scenario {

/// Readers of the sections, in the order in which they must be called: each may need what the ones
/// above it put into the scenario.
void read_system(const Map& file, Scenario& scenario);
void read_model(const Map& file, Scenario& scenario);
void read_topology(const Map& file, Scenario& scenario);
void read_strategies(const Map& file, Scenario& scenario);
void read_attention_kernel(const Map& file, Scenario& scenario);
void read_dcp(const Map& file, Scenario& scenario);
void read_cache(const Map& file, Scenario& scenario);
void read_requests(const Map& file, Scenario& scenario);
void read_scheduler(const Map& file, Scenario& scenario);
void read_padding(const Map& file, Scenario& scenario);
void read_data(const Map& file, Scenario& scenario);
void read_schedule(const Map& file, Scenario& scenario);
void read_mma_accumulation(const Map& file, Scenario& scenario);
void read_reduction(const Map& file, Scenario& scenario);
void read_checks(const Map& file, Scenario& scenario);
void read_inject(const Map& file, Scenario& scenario);
void read_expect(const Map& file, Scenario& scenario);

/// A scenario with `launch`: refuses the keys that describe an attention problem.
void read_launch(const Map& file, Scenario& scenario);
/// `values` of `expect`, after read_launch.
void read_expected_values(const Map& expect, Scenario& scenario);

/// Throws InputError at the request that brings the scenario over a limit of schema.hpp.
void check_total_size(const Scenario& scenario);

}  // namespace cpverify::scenario
