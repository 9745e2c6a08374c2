#pragma once

#include "sim/machine/cta.hpp"

namespace cpverify::sim {

/// Makes the launch count its instructions when one of its observers wants to know.
void prepare_counts(LaunchState& launch);

/// At the end of a launch, also of one that was aborted: tells those who want to know.
void report_counts(const LaunchState& launch);

}  // namespace cpverify::sim
