#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpverify/schedule.hpp"
#include "support/rng.hpp"

namespace cpverify::sim {

/// Decides which of the streams that can go on runs its next piece of work: a function of the
/// schedule's policy and seed.
class StreamOrder {
 public:
  explicit StreamOrder(const ScheduleSpec& spec);

  /// One of `ready`: handles of streams as numbers, ascending, at least one.
  [[nodiscard]] std::uint64_t pick(std::span<const std::uint64_t> ready);

 private:
  [[nodiscard]] std::uint64_t highest(std::span<const std::uint64_t> ready);

  ScheduleSpec spec_;
  Rng rng_;
  std::uint64_t last_ = 0;              ///< Stream that ran last.
  std::uint64_t steps_ = 0;             ///< Pieces of work so far.
  std::vector<std::uint64_t> changes_;  ///< pct: steps at which the running stream falls.
  std::vector<std::uint64_t> fallen_;   ///< pct: below all others, the last one lowest.
};

}  // namespace cpverify::sim
