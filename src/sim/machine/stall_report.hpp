#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/cta.hpp"

namespace cpverify::sim {

/// End the launch with a fault that says who waits for what. `ctas`: those that have begun and not
/// ended, at least one.

/// Every warp has exited or waits at a barrier that will not complete.
void report_barrier_deadlock(const std::vector<Cta*>& ctas);

/// No warp can go on, and at least one repeats its state for ever. `unstarted`: CTAs for which
/// there was no room.
void report_livelock(const std::vector<Cta*>& ctas, std::uint64_t unstarted);

/// The CTA has ended: a fault if a bar.arrive still waits for others.
void report_pending_barriers(Cta& cta);

}  // namespace cpverify::sim
