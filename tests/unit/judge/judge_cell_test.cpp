#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"
#include "judge/judge.hpp"
#include "run/runner.hpp"
#include "support/ideal_cell.hpp"
#include "unit/judge/expect_findings.hpp"

namespace cpverify::judge {
namespace {

using test::expect_only;
using test::IdealCell;
using test::result_of;
using test::small_problem;

TEST(JudgeCell, PassesAnIdealRunInEveryModeAndStrategy) {
  const Problem problem = small_problem();
  for (const StrategyKind strategy : {StrategyKind::single, StrategyKind::zigzag}) {
    for (const DataMode mode : {DataMode::random, DataMode::count, DataMode::poison}) {
      const CellVerdict verdict = IdealCell{problem, strategy, mode}.judge();
      EXPECT_EQ(verdict.outcome, Outcome::passed) << test::dump(verdict.findings);
      EXPECT_EQ(verdict.digest, "0000000000001234");
      EXPECT_EQ(verdict.checks.size(), 14U);
      for (const Check check : {Check::metadata, Check::memcheck, Check::initcheck, Check::kv_pool,
                                Check::lse, Check::output}) {
        EXPECT_EQ(result_of(verdict, check).outcome, Outcome::passed) << name(check);
        EXPECT_GT(result_of(verdict, check).compared, 0U) << name(check);
      }
      EXPECT_LE(result_of(verdict, Check::lse).worst_ratio, 1.0);
      EXPECT_LE(result_of(verdict, Check::output).worst_ratio, 1.0);
    }
  }
}

TEST(JudgeCell, SkipsWithAReason) {
  Problem problem = small_problem();
  problem.scenario.checks = {Check::metadata, Check::collectives, Check::count,
                             Check::poison,   Check::bitwise,     Check::determinism};
  const CellVerdict verdict = IdealCell{problem, StrategyKind::single, DataMode::random}.judge();
  EXPECT_EQ(result_of(verdict, Check::lse).reason, "not asked for");
  EXPECT_EQ(result_of(verdict, Check::collectives).reason, "no collectives in the plan");
  EXPECT_EQ(result_of(verdict, Check::count).reason, "mode count only");
  EXPECT_EQ(result_of(verdict, Check::poison).reason, "mode poison only");
  EXPECT_EQ(result_of(verdict, Check::bitwise).reason, "is strategy single");
  EXPECT_EQ(result_of(verdict, Check::determinism).reason, "not run a second time");
  for (const CheckResult& result : verdict.checks) {
    if (result.check == Check::metadata) continue;
    EXPECT_EQ(result.outcome, Outcome::skipped) << name(result.check);
    EXPECT_FALSE(result.reason.empty()) << name(result.check);
  }
}

TEST(JudgeCell, StopsAfterTheFirstCheckWithFindings) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  ++cell.buffer(0, 0, "kv_lens_prev").values[0];
  cell.run.steps[0].ranks[0].k_pool[0] ^= std::byte{1};
  const CellVerdict verdict = cell.judge();
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  EXPECT_EQ(test::kinds(verdict.findings), std::set<std::string>{"metadata_mismatch"});
  EXPECT_EQ(result_of(verdict, Check::metadata).outcome, Outcome::failed);
  EXPECT_EQ(result_of(verdict, Check::kv_pool).outcome, Outcome::skipped);
  EXPECT_EQ(result_of(verdict, Check::kv_pool).reason, "after findings of metadata");
}

TEST(JudgeCell, ReportsTheRunnersFindingsUnderTheirCheck) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  Finding fault;
  fault.check = Check::initcheck;
  fault.kind = "uninitialised_read";
  cell.run.findings = {fault};
  const CellVerdict verdict = cell.judge();
  EXPECT_EQ(result_of(verdict, Check::memcheck).outcome, Outcome::passed);
  EXPECT_EQ(result_of(verdict, Check::initcheck).outcome, Outcome::failed);
  expect_only(verdict.findings, {{"kind", "uninitialised_read"}, {"check", "initcheck"}});
}

TEST(JudgeCell, DoesNotPassCheckersThatTheLaneLacks) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  cell.run.has_checkers = false;
  const CellVerdict verdict = cell.judge();
  EXPECT_EQ(result_of(verdict, Check::memcheck).outcome, Outcome::skipped);
  EXPECT_EQ(result_of(verdict, Check::initcheck).outcome, Outcome::skipped);
}

TEST(JudgeCell, FailsARunThatEndedEarlyWithoutAReasonThatIsAskedFor) {
  Problem problem = small_problem();
  problem.scenario.checks = {Check::kv_pool, Check::lse};
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  cell.run.steps[1].is_complete = false;
  cell.run.steps[1].ranks.clear();
  Finding fault;
  fault.check = Check::memcheck;
  fault.kind = "out_of_bounds_read";
  cell.run.findings = {fault};
  const CellVerdict verdict = cell.judge();
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  expect_only(verdict.findings, {{"kind", "run_incomplete"},
                                 {"check", "kv_pool"},
                                 {"step", "1"},
                                 {"detail", "out_of_bounds_read (memcheck is not asked for)"}});
}

TEST(JudgeCell, IsAnErrorWhenNothingRanAndNothingWasFound) {
  const Problem problem = small_problem();
  const IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  CellEvidence evidence = cell.evidence();
  evidence.run = nullptr;
  const CellVerdict verdict = judge_cell(evidence);
  EXPECT_EQ(verdict.outcome, Outcome::error);
  EXPECT_EQ(result_of(verdict, Check::kv_pool).reason, "the plan did not run");
}

TEST(JudgeCell, IsWeakWhenACheckHasNothingToCompare) {
  Problem problem = small_problem();
  problem.scenario.checks = {Check::memcheck};
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  for (Plan& plan : cell.plans) {
    for (RankPlan& rank : plan.ranks) rank.operations.clear();
  }
  const CellVerdict verdict = cell.judge();
  EXPECT_EQ(verdict.outcome, Outcome::weak);
  EXPECT_EQ(result_of(verdict, Check::memcheck).reason, "nothing was compared");
}

TEST(JudgeCell, NamesMissingAndMisshapenCaptures) {
  Problem problem = small_problem();
  problem.scenario.checks = {Check::lse, Check::output};
  IdealCell gone{problem, StrategyKind::zigzag, DataMode::random};
  gone.run.steps[0].ranks[1].outputs.erase("lse_local");
  const CellVerdict without = gone.judge();
  ASSERT_FALSE(without.findings.empty());
  EXPECT_EQ(without.findings.front().kind, "output_missing");
  EXPECT_EQ(without.findings.front().buffer, "lse_local");
  EXPECT_EQ(without.findings.front().detail, "not captured");

  IdealCell cut{problem, StrategyKind::zigzag, DataMode::random};
  cut.output(0, 0, "lse_local").pop_back();
  EXPECT_EQ(cut.judge().findings.front().kind, "output_missing");

  IdealCell no_ranks{problem, StrategyKind::zigzag, DataMode::random};
  no_ranks.run.steps[0].ranks.clear();
  EXPECT_EQ(test::kinds(no_ranks.judge().findings), std::set<std::string>{"output_missing"});
}

TEST(JudgeCell, SurvivesClaimsOfTokensThatDoNotExist) {
  Problem problem = small_problem();
  problem.scenario.checks = {Check::kv_pool, Check::lse, Check::output, Check::bitwise};
  for (const std::int64_t token : {std::int64_t{-2}, std::int64_t{17}, std::int64_t{1} << 40}) {
    IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
    cell.buffer(0, 0, "lse_local").output->row_tokens[0] = token;
    const CellVerdict verdict = cell.judge();
    ASSERT_FALSE(verdict.findings.empty());
    EXPECT_EQ(verdict.findings.front().kind, "output_missing") << test::dump(verdict.findings);
  }
}

// A claim that two rows are pads leaves their tokens with nobody.
TEST(JudgeCell, NoticesTokensThatNobodyComputed) {
  Problem problem = small_problem();
  problem.scenario.checks = {Check::lse};
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  std::vector<std::int64_t>& rows = cell.buffer(0, 0, "lse").output->row_tokens;
  rows[14] = -1;  // The second token of "short".
  std::vector<std::byte>& lse = cell.output(0, 0, "lse");
  for (std::size_t head = 0; head < 4; ++head)
    test::store_f32(lse, 14 * 4 + head, -std::numeric_limits<float>::infinity());
  const CellVerdict verdict = cell.judge();
  expect_only(verdict.findings, {{"kind", "output_missing"},
                                 {"request", "short"},
                                 {"token", "1"},
                                 {"head", "0"},
                                 {"detail", "no rank holds the LSE"}});
  EXPECT_EQ(verdict.findings.front().count, 4U);
}

}  // namespace
}  // namespace cpverify::judge
