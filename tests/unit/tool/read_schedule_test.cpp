#include "tool/read_schedule.hpp"

#include <string>

#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/schedule.hpp"

namespace cpverify::tool {
namespace {

std::string error_of(const std::string& word) {
  try {
    static_cast<void>(read_schedule(word));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ReadSchedule, ReadsWhatTextWrites) {
  for (const SchedulePolicy policy : kSchedulePolicies) {
    const ScheduleSpec spec{policy, is_seeded(policy) ? 18446744073709551615ULL : 0};
    const ScheduleSpec read = read_schedule(text(spec));
    EXPECT_EQ(read.policy, policy);
    EXPECT_EQ(read.seed, spec.seed);
  }
}

TEST(ReadSchedule, TakesASuffixForIndependentThreads) {
  for (const SchedulePolicy policy : kSchedulePolicies) {
    const ScheduleSpec spec{policy, is_seeded(policy) ? 7U : 0U, 3, ThreadScheduling::independent};
    const ScheduleSpec read = read_schedule(text(spec));
    EXPECT_EQ(read.policy, policy);
    EXPECT_EQ(read.seed, spec.seed);
    EXPECT_EQ(read.threads, ThreadScheduling::independent);
  }
  EXPECT_EQ(read_schedule("random:7").threads, ThreadScheduling::converged);
  EXPECT_NE(error_of("+its"), "no error");
  EXPECT_NE(error_of("random+its:7"), "no error");
  EXPECT_NE(error_of("reverse+its+its"), "no error");
}

TEST(ReadSchedule, TakesSeed0WhenThereIsNone) {
  EXPECT_EQ(read_schedule("random").policy, SchedulePolicy::random);
  EXPECT_EQ(read_schedule("random").seed, 0U);
}

TEST(ReadSchedule, SuggestsTheNearestPolicy) {
  EXPECT_EQ(error_of("revrse"),
            "--schedule: unknown policy 'revrse'; did you mean 'reverse'?; allowed: round_robin, "
            "reverse, run_to_block, random, pct");
  EXPECT_NE(error_of(""), "no error");
}

TEST(ReadSchedule, RefusesWhatIsNoSeed) {
  const std::string expected =
      "--schedule: expected a seed from 0 to 2^64 - 1 behind 'random:', found ";
  EXPECT_EQ(error_of("random:"), expected + "''");
  EXPECT_EQ(error_of("random:-1"), expected + "'-1'");
  EXPECT_EQ(error_of("random:7x"), expected + "'7x'");
  EXPECT_EQ(error_of("random:18446744073709551616"), expected + "'18446744073709551616'");
}

TEST(ReadSchedule, RefusesASeedThatWouldDoNothing) {
  EXPECT_EQ(error_of("reverse:3"), "--schedule: reverse takes no seed; random and pct do");
}

}  // namespace
}  // namespace cpverify::tool
