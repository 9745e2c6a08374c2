#pragma once

#include <cstdint>
#include <functional>

#include "sim/machine/schedule.hpp"

namespace cpverify::sim {

/// What explore() tries at most: the number of interleavings grows as the binomial of the points.
struct ExploreBounds {
  std::uint64_t runs = 10'000;
  std::uint32_t warps = 4;     ///< Of all CTAs that are resident; fragments of independent threads.
  std::uint32_t choices = 64;  ///< Of one run; beyond them warps go on in turns.
};

struct Exploration {
  std::uint64_t runs = 0;
  bool is_complete = false;  ///< Every interleaving was run: no bound was met.
};

/// Calls `run` once for every order in which warps can pass their memory and synchronisation
/// instructions, each time with a schedule that brings it about; CTAs are all resident. `run` must
/// launch one kernel with it, always from the same memory. A launch that has more warps than the
/// bound is run once, in turns.
[[nodiscard]] Exploration explore(const std::function<void(Schedule&)>& run,
                                  const ExploreBounds& bounds = {});

}  // namespace cpverify::sim
