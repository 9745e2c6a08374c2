#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/schedule.hpp"
#include "sim/machine/schedule.hpp"
#include "support/rng.hpp"

/// What every schedule keeps to.
namespace cpverify {

/// For the names of parameterised tests.
void PrintTo(const ScheduleSpec& spec, std::ostream* out) {
  *out << text(spec);
}

namespace sim {
namespace {

class ScheduleContract : public testing::TestWithParam<ScheduleSpec> {
 protected:
  [[nodiscard]] static std::unique_ptr<Schedule> make() { return make_schedule(GetParam()); }
};

std::vector<Candidate> all_ready(std::size_t count) {
  std::vector<Candidate> candidates(count);
  for (std::size_t i = 0; i < count; ++i) candidates[i] = {i, true, false};
  return candidates;
}

/// A pick that skips the ends of rounds; a schedule may not end two in a row when one is ready.
std::optional<Turn> pick(Schedule& schedule, const std::vector<Candidate>& candidates) {
  std::optional<Turn> turn = schedule.pick(candidates);
  return turn ? turn : schedule.pick(candidates);
}

TEST_P(ScheduleContract, PicksWhoIsReadyAndSpinsOrNot) {
  const std::unique_ptr<Schedule> schedule = make();
  Rng rng{1};
  std::vector<Candidate> candidates = all_ready(7);
  for (int i = 0; i < 20'000; ++i) {
    for (Candidate& candidate : candidates) {
      candidate.is_ready = rng.below(3) == 0;
      candidate.is_spinning = candidate.is_ready && rng.below(2) == 0;
    }
    candidates[rng.below(7)].is_ready = true;
    const std::optional<Turn> turn = pick(*schedule, candidates);
    ASSERT_TRUE(turn.has_value());
    ASSERT_LT(turn->candidate, candidates.size());
    EXPECT_TRUE(candidates[turn->candidate].is_ready);
    EXPECT_GE(turn->instructions, 1U);
    EXPECT_LE(turn->instructions, kSliceInstructions);
  }
}

TEST_P(ScheduleContract, PicksNobodyWhenNobodyIsReady) {
  const std::unique_ptr<Schedule> schedule = make();
  EXPECT_FALSE(schedule->pick({}).has_value());
  std::vector<Candidate> candidates = all_ready(3);
  for (Candidate& candidate : candidates) candidate.is_ready = false;
  EXPECT_FALSE(schedule->pick(candidates).has_value());
  candidates[1].is_ready = true;
  const std::optional<Turn> turn = pick(*schedule, candidates);
  ASSERT_TRUE(turn.has_value());
  EXPECT_EQ(turn->candidate, 1U);
}

TEST_P(ScheduleContract, IsDeterministic) {
  const std::unique_ptr<Schedule> first = make();
  const std::unique_ptr<Schedule> second = make();
  Rng rng{2};
  std::vector<Candidate> candidates = all_ready(5);
  for (int i = 0; i < 10'000; ++i) {
    candidates[rng.below(5)].is_ready = rng.below(4) != 0;
    const std::optional<Turn> one = first->pick(candidates);
    const std::optional<Turn> two = second->pick(candidates);
    ASSERT_EQ(one.has_value(), two.has_value());
    if (!one) continue;
    EXPECT_EQ(one->candidate, two->candidate);
    EXPECT_EQ(one->instructions, two->instructions);
    EXPECT_EQ(one->points, two->points);
  }
}

/// Nobody waits for longer than fair_turns, and that is not a bound that means nothing.
TEST_P(ScheduleContract, IsFairWithinItsBound) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{9}}) {
    const std::unique_ptr<Schedule> schedule = make();
    const std::vector<Candidate> candidates = all_ready(count);
    const std::uint64_t bound = schedule->fair_turns(count);
    EXPECT_LE(bound, 1'000'000U);
    std::vector<std::uint64_t> last(count, 0);
    for (std::uint64_t turn = 1; turn <= 3 * bound; ++turn) {
      const std::optional<Turn> picked = pick(*schedule, candidates);
      ASSERT_TRUE(picked.has_value());
      last[picked->candidate] = turn;
      ASSERT_LE(turn - last[turn % count], bound) << "candidate " << turn % count;
    }
    for (const std::uint64_t turn : last) EXPECT_GT(turn, 0U);
  }
}

/// Candidate 0 is always ready, the others come and go.
TEST_P(ScheduleContract, IsFairToOneAmongOthersThatComeAndGo) {
  const std::unique_ptr<Schedule> schedule = make();
  std::vector<Candidate> candidates = all_ready(4);
  const std::uint64_t bound = schedule->fair_turns(candidates.size());
  Rng rng{3};
  std::uint64_t waited = 0;
  for (std::uint64_t turn = 0; turn < 3 * bound; ++turn) {
    for (std::size_t i = 1; i < candidates.size(); ++i) candidates[i].is_ready = rng.below(2) == 0;
    const std::optional<Turn> picked = pick(*schedule, candidates);
    ASSERT_TRUE(picked.has_value());
    waited = picked->candidate == 0 ? 0 : waited + 1;
    ASSERT_LE(waited, bound);
  }
}

/// Who spins waits for the others, so the others must run soon.
TEST_P(ScheduleContract, DoesNotStayWithOneThatSpins) {
  const std::unique_ptr<Schedule> schedule = make();
  std::vector<Candidate> candidates = all_ready(3);
  int in_a_row = 0;
  std::size_t last = candidates.size();
  for (int i = 0; i < 5'000; ++i) {
    for (Candidate& candidate : candidates) candidate.is_spinning = true;
    const std::optional<Turn> turn = pick(*schedule, candidates);
    ASSERT_TRUE(turn.has_value());
    in_a_row = turn->candidate == last ? in_a_row + 1 : 1;
    last = turn->candidate;
    // Random picks one of three 64 times in a row with probability 3^-63.
    ASSERT_LT(in_a_row, 64);
  }
}

TEST_P(ScheduleContract, StartsEveryCtaOnce) {
  const std::unique_ptr<Schedule> schedule = make();
  EXPECT_GE(schedule->resident_ctas(), 1U);
  for (const std::uint64_t count : {1ULL, 2ULL, 3ULL, 64ULL, 97ULL, 360ULL, 1000ULL}) {
    std::set<std::uint64_t> started;
    for (std::uint64_t i = 0; i < count; ++i) started.insert(schedule->cta(i, count));
    EXPECT_EQ(started.size(), count);
    EXPECT_EQ(*started.rbegin(), count - 1);
  }
  // The largest grid: 2147483647 x 65535 x 65535.
  const std::uint64_t huge = 2147483647ULL * 65535 * 65535;
  EXPECT_LT(schedule->cta(huge - 1, huge), huge);
  EXPECT_LT(schedule->cta(4294967295ULL, 4294967296ULL), 4294967296ULL);
}

INSTANTIATE_TEST_SUITE_P(Policies, ScheduleContract,
                         testing::Values(ScheduleSpec{SchedulePolicy::round_robin},
                                         ScheduleSpec{SchedulePolicy::reverse},
                                         ScheduleSpec{SchedulePolicy::run_to_block},
                                         ScheduleSpec{SchedulePolicy::random, 0},
                                         ScheduleSpec{SchedulePolicy::random, 7},
                                         ScheduleSpec{SchedulePolicy::pct, 0, 1},
                                         ScheduleSpec{SchedulePolicy::pct, 7},
                                         ScheduleSpec{SchedulePolicy::pct, 8, 64}),
                         [](const auto& test) {
                           return std::string{name(test.param.policy)} + "_" +
                                  std::to_string(test.param.seed) + "_" +
                                  std::to_string(test.param.depth);
                         });

TEST(RoundRobin, IsInOrderAndReverseIsTheSameFromTheOtherEnd) {
  const std::unique_ptr<Schedule> forth = make_schedule({});
  const std::unique_ptr<Schedule> back = make_schedule({SchedulePolicy::reverse});
  const std::vector<Candidate> candidates = all_ready(3);
  for (int round = 0; round < 2; ++round) {
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(forth->pick(candidates)->candidate, i);
      EXPECT_EQ(back->pick(candidates)->candidate, 2 - i);
    }
    EXPECT_FALSE(forth->pick(candidates).has_value());
    EXPECT_FALSE(back->pick(candidates).has_value());
  }
  EXPECT_EQ(back->cta(0, 5), 4U);
}

TEST(RunToBlock, StaysUntilTheWarpStops) {
  const std::unique_ptr<Schedule> schedule = make_schedule({SchedulePolicy::run_to_block});
  std::vector<Candidate> candidates = all_ready(2);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(schedule->pick(candidates)->candidate, 0U);
  candidates[0].is_ready = false;
  EXPECT_EQ(schedule->pick(candidates)->candidate, 1U);
  candidates[0].is_ready = true;
  EXPECT_EQ(schedule->pick(candidates)->candidate, 1U);
}

/// With depth 1 there is no change: the same warp until it stops, and which one depends on the
/// seed.
TEST(Pct, HasOneOrderOfPrioritiesPerSeed) {
  std::set<std::size_t> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::unique_ptr<Schedule> schedule = make_schedule({SchedulePolicy::pct, seed, 1});
    const std::vector<Candidate> candidates = all_ready(3);
    const std::size_t picked = schedule->pick(candidates)->candidate;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(schedule->pick(candidates)->candidate, picked);
    first.insert(picked);
  }
  EXPECT_EQ(first.size(), 3U);
}

}  // namespace
}  // namespace sim
}  // namespace cpverify
