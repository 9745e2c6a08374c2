#include "sim/machine/schedule.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "cpverify/schedule.hpp"
#include "support/rng.hpp"

namespace cpverify::sim {
namespace {

/// Of the policies that look for races: enough to let CTAs meet, few enough to stay in cache.
constexpr std::uint32_t kResidentCtas = 4;

/// i -> a * i + b modulo `count`, with a coprime to it: each CTA once.
std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed) noexcept {
  constexpr std::uint64_t kMax = 1ULL << 32;  // Beyond it the product would not fit.
  if (count > kMax) return index;
  std::uint64_t factor = mix64(seed) % count;
  while (std::gcd(factor, count) != 1) ++factor;
  return (factor % count * index + mix64(~seed) % count) % count;
}

/// Warps by turns, from the first to the last or back; a round lets each run once.
class InTurns final : public Schedule {
 public:
  explicit InTurns(bool is_reverse) : is_reverse_{is_reverse} {}

  [[nodiscard]] std::uint64_t cta(std::uint64_t index,
                                  std::uint64_t count) const noexcept override {
    return is_reverse_ ? count - 1 - index : index;
  }
  [[nodiscard]] bool has_rounds() const noexcept override { return true; }
  [[nodiscard]] bool prefers_high_lanes() const noexcept override { return is_reverse_; }
  [[nodiscard]] std::optional<Turn> pick(std::span<const Candidate> candidates) override {
    while (next_ < candidates.size()) {
      const std::size_t place = is_reverse_ ? candidates.size() - 1 - next_ : next_;
      ++next_;
      if (candidates[place].is_ready) return Turn{place};
    }
    next_ = 0;
    return std::nullopt;
  }
  /// Once in every round.
  [[nodiscard]] std::uint64_t fair_turns(std::size_t count) const noexcept override {
    return 2 * count;
  }

 private:
  bool is_reverse_;
  std::size_t next_ = 0;
};

/// Stays with a warp until it stops. Only when it runs for very long do the others get a turn: it
/// may wait for them in a way that is not recognised as polling.
class RunToBlock final : public Schedule {
 public:
  [[nodiscard]] std::optional<Turn> pick(std::span<const Candidate> candidates) override {
    const bool may_stay = current_ < candidates.size() && candidates[current_].is_ready &&
                          !candidates[current_].is_spinning && turns_ < kTurns;
    if (!may_stay) {
      turns_ = 0;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        const std::size_t place = (next_ + i) % candidates.size();
        if (!candidates[place].is_ready) continue;
        current_ = place;
        next_ = place + 1;
        ++turns_;
        return Turn{place};
      }
      return std::nullopt;
    }
    ++turns_;
    return Turn{current_};
  }
  [[nodiscard]] std::uint64_t fair_turns(std::size_t count) const noexcept override {
    return kTurns * count;
  }

 private:
  static constexpr std::uint32_t kTurns = 64;  ///< 4 million instructions.

  std::size_t current_ = ~std::size_t{0};
  std::size_t next_ = 0;
  std::uint32_t turns_ = 0;
};

/// Any ready warp, for a stretch of 1 to 128 memory and synchronisation instructions: short ones
/// find races between neighbouring accesses, long ones those between distant parts of a kernel.
class Random final : public Schedule {
 public:
  explicit Random(std::uint64_t seed) : seed_{seed}, rng_{mix64(seed)} {}

  [[nodiscard]] std::uint64_t cta(std::uint64_t index,
                                  std::uint64_t count) const noexcept override {
    return shuffled(index, count, seed_);
  }
  [[nodiscard]] std::uint32_t resident_ctas() const noexcept override { return kResidentCtas; }
  [[nodiscard]] std::optional<Turn> pick(std::span<const Candidate> candidates) override {
    ready_.clear();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].is_ready) ready_.push_back(i);
    }
    if (ready_.empty()) return std::nullopt;
    const std::size_t place = ready_[rng_.below(ready_.size())];
    return Turn{place, kSliceInstructions, 1U << rng_.below(8)};
  }
  /// A candidate is left out of 64 n picks with probability (1 - 1/n)^(64 n) < e^-64.
  [[nodiscard]] std::uint64_t fair_turns(std::size_t count) const noexcept override {
    return 64 * count;
  }

 private:
  std::uint64_t seed_;
  Rng rng_;
  std::vector<std::size_t> ready_;
};

/// The ready warp with the highest priority runs; at depth - 1 random points the one that runs
/// falls below all others. Source: Burckhardt et al. 2010, "A randomized scheduler with
/// probabilistic guarantees of finding bugs", section 3. Added to it: a warp that spins or has run
/// for very long falls too, so that nobody starves.
class Pct final : public Schedule {
 public:
  explicit Pct(const ScheduleSpec& spec) : seed_{spec.seed} {
    Rng rng{mix64(spec.seed)};
    // How many points a launch has is not known before; all orders of magnitude are as likely.
    for (std::uint32_t i = 1; i < spec.depth; ++i) {
      const std::uint64_t magnitude = 1ULL << rng.below(kMagnitudes);
      changes_.push_back(magnitude + rng.below(magnitude));
    }
    std::sort(changes_.begin(), changes_.end());
  }

  [[nodiscard]] std::uint64_t cta(std::uint64_t index,
                                  std::uint64_t count) const noexcept override {
    return shuffled(index, count, seed_);
  }
  [[nodiscard]] std::uint32_t resident_ctas() const noexcept override { return kResidentCtas; }
  [[nodiscard]] std::optional<Turn> pick(std::span<const Candidate> candidates) override {
    lower_last(candidates);
    std::size_t best = candidates.size();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!candidates[i].is_ready) continue;
      if (best == candidates.size() || priority(candidates[i].id) > priority(candidates[best].id)) {
        best = i;
      }
    }
    if (best == candidates.size()) return std::nullopt;
    turns_.resize(std::max(turns_.size(), candidates.size()));
    ++turns_[best];
    last_ = best;
    return Turn{best, kSliceInstructions, 1};
  }
  [[nodiscard]] std::uint64_t fair_turns(std::size_t count) const noexcept override {
    return kTurns * (count + changes_.size());
  }

 private:
  static constexpr std::uint32_t kMagnitudes = 16;
  static constexpr std::uint32_t kTurns = 4096;

  void lower_last(std::span<const Candidate> candidates) {
    ++step_;
    const bool is_change = next_change_ < changes_.size() && changes_[next_change_] <= step_;
    if (is_change) ++next_change_;
    if (last_ >= candidates.size()) return;
    const bool is_tired = turns_[last_] >= kTurns || candidates[last_].is_spinning;
    if (!is_change && !is_tired) return;
    lowered_[candidates[last_].id] = lowest_--;
    turns_[last_] = 0;
  }
  [[nodiscard]] std::int64_t priority(std::uint64_t id) const {
    const auto found = lowered_.find(id);
    if (found != lowered_.end()) return found->second;
    return static_cast<std::int64_t>(mix64(seed_ ^ mix64(id)) >> 1);
  }

  std::uint64_t seed_;
  std::vector<std::uint64_t> changes_;  ///< Ascending: numbers of turns.
  std::size_t next_change_ = 0;
  std::uint64_t step_ = 0;
  std::map<std::uint64_t, std::int64_t> lowered_;  ///< Below 0; the others are above.
  std::int64_t lowest_ = -1;
  std::size_t last_ = ~std::size_t{0};
  std::vector<std::uint32_t> turns_;  ///< By place, since it fell last.
};

}  // namespace

std::uint64_t Schedule::cta(std::uint64_t index, std::uint64_t /*count*/) const noexcept {
  return index;
}

std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec) {
  switch (spec.policy) {
    case SchedulePolicy::round_robin:
    case SchedulePolicy::reverse:
      return std::make_unique<InTurns>(spec.policy == SchedulePolicy::reverse);
    case SchedulePolicy::run_to_block:
      return std::make_unique<RunToBlock>();
    case SchedulePolicy::random:
      return std::make_unique<Random>(spec.seed);
    case SchedulePolicy::pct:
      return std::make_unique<Pct>(spec);
  }
  return nullptr;
}

}  // namespace cpverify::sim
