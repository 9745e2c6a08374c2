#include "sim/driver/stream_order.hpp"

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "cpverify/schedule.hpp"
#include "support/check.hpp"
#include "support/rng.hpp"

namespace cpverify::sim {
namespace {

/// Keeps the choice among streams apart from that among warps, which has the same seed.
constexpr std::uint64_t kSalt = 0x73747265616d73ULL;
/// Priority changes of pct fall among so many pieces of work.
constexpr std::uint64_t kPctSteps = 64;

}  // namespace

StreamOrder::StreamOrder(const ScheduleSpec& spec) : spec_{spec}, rng_{mix64(spec.seed ^ kSalt)} {
  for (std::uint32_t i = 1; i < spec.depth && spec.policy == SchedulePolicy::pct; ++i) {
    changes_.push_back(rng_.below(kPctSteps));
  }
}

std::uint64_t StreamOrder::pick(std::span<const std::uint64_t> ready) {
  CPVERIFY_CHECK(!ready.empty());
  const auto after = std::upper_bound(ready.begin(), ready.end(), last_);
  const auto before = std::lower_bound(ready.begin(), ready.end(), last_);
  const bool is_last_ready = before != ready.end() && *before == last_;
  switch (spec_.policy) {
    case SchedulePolicy::round_robin:
      last_ = after == ready.end() ? ready.front() : *after;
      break;
    case SchedulePolicy::reverse:
      last_ = before == ready.begin() ? ready.back() : *(before - 1);
      break;
    case SchedulePolicy::run_to_block:
      if (!is_last_ready) last_ = after == ready.end() ? ready.front() : *after;
      break;
    case SchedulePolicy::random:
      last_ = ready[rng_.below(ready.size())];
      break;
    case SchedulePolicy::pct:
      last_ = highest(ready);
      break;
  }
  ++steps_;
  return last_;
}

std::uint64_t StreamOrder::highest(std::span<const std::uint64_t> ready) {
  if (std::find(changes_.begin(), changes_.end(), steps_) != changes_.end()) {
    std::erase(fallen_, last_);
    fallen_.push_back(last_);
  }
  const auto priority = [this](std::uint64_t stream) {
    const auto place = std::find(fallen_.begin(), fallen_.end(), stream);
    const auto depth = static_cast<std::uint64_t>(fallen_.end() - place);
    // Standing ones first; of the fallen, the one that fell first.
    return std::pair{place == fallen_.end(),
                     place == fallen_.end() ? mix64(stream ^ mix64(spec_.seed ^ kSalt)) : depth};
  };
  return *std::max_element(ready.begin(), ready.end(), [&](std::uint64_t a, std::uint64_t b) {
    return priority(a) < priority(b);
  });
}

}  // namespace cpverify::sim
