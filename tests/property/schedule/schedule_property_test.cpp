#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"

/// The shipped kernels have no races: every schedule gives the same bytes.
namespace cpverify {
namespace {

/// Prefill in chunks, a prefix, decode and pad rows, on 2 x 2 ranks and on one: every kernel runs.
Scenario scenario(const std::string& dtype) {
  Scenario made = parse_scenario(
      "model: {attention: gqa, num_heads_q: 4, num_heads_kv: 2, head_dim: 32, dtype: " + dtype +
          "}\n"
          "topology: {cp: 2, tp: 2}\n"
          "cache: {block_size: 4}\n"
          "scheduler: {max_batched_tokens: 12}\n"
          "padding: {token_multiple: 8}\n"
          "data: {modes: [random]}\n"
          "checks: [memcheck, initcheck, output]\n"
          "requests:\n"
          "  - {id: a, cached_prefix: 3, prompt: 19, decode: 1}\n"
          "  - {id: b, prompt: 5, decode: 2}\n",
      "schedules.yaml");
  return made;
}

std::vector<std::string> digests(const Scenario& scenario, const ScheduleSpec& schedule) {
  VerifyOptions options;
  options.schedule = schedule;
  const Verdict verdict = verify(scenario, options);
  EXPECT_EQ(verdict.outcome, Outcome::passed) << text(schedule);
  EXPECT_EQ(verdict.schedule, text(schedule));
  EXPECT_NE(verdict.repro.find(" --schedule " + text(schedule)), std::string::npos);
  std::vector<std::string> found;
  for (const CellVerdict& cell : verdict.cells) found.push_back(cell.digest);
  return found;
}

void expect_same_bytes(const std::string& dtype) {
  const Scenario subject = scenario(dtype);
  const std::vector<std::string> wanted = digests(subject, {});
  ASSERT_EQ(wanted.size(), 2U);
  EXPECT_NE(wanted[0], wanted[1]);
  EXPECT_EQ(digests(subject, {SchedulePolicy::reverse}), wanted);
  EXPECT_EQ(digests(subject, {SchedulePolicy::run_to_block}), wanted);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    EXPECT_EQ(digests(subject, {SchedulePolicy::random, seed}), wanted) << "random:" << seed;
    EXPECT_EQ(digests(subject, {SchedulePolicy::pct, seed}), wanted) << "pct:" << seed;
  }
}

TEST(ShippedKernels, GiveTheSameBytesUnderEveryScheduleInF32) {
  expect_same_bytes("f32");
}

TEST(ShippedKernels, GiveTheSameBytesUnderEveryScheduleInBf16) {
  expect_same_bytes("bf16");
}

}  // namespace
}  // namespace cpverify
