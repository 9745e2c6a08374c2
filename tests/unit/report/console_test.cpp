#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "report/cell_names.hpp"
#include "report/report.hpp"
#include "unit/report/example_verdicts.hpp"

namespace cpverify::report {
namespace {

using test::failing_verdict;
using test::passing_verdict;
using testing::HasSubstr;

TEST(ConsoleText, ARefusedCellNamesEveryRule) {
  Verdict verdict = passing_verdict();
  verdict.cells[1].outcome = Outcome::refused;
  verdict.cells[1].checks.clear();
  BrokenRule rule;
  rule.id = "vllm-2";
  rule.stated_by = "vllm";
  rule.effect = "refused";
  rule.violation = "dcp 3 is not 1, 2 or 4";
  verdict.cells[1].rules = {rule, rule};
  verdict.cells[1].rules[1].id = "vllm-3";
  verdict.unexpected_rules = {"vllm-3"};
  const std::string text = console_text({verdict}, {});
  EXPECT_THAT(text, HasSubstr("  metadata     PASS           REFUSED\n"));
  EXPECT_THAT(text, HasSubstr("  REFUSED  zigzag\n"));
  EXPECT_THAT(text, HasSubstr("        vllm-2 (vllm, refused): dcp 3 is not 1, 2 or 4\n"));
  EXPECT_THAT(text, HasSubstr("        vllm-3 (vllm, refused): "));
  EXPECT_THAT(text, HasSubstr("  FAIL  refused by vllm-3, which is not expected\n"));
}

TEST(ConsoleText, ShowsEveryCheckOfAPassingScenario) {
  EXPECT_EQ(console_text({passing_verdict()}, {}),
            R"(PASS  good  scenarios/good.yaml
  check        single/random  zigzag/random
  metadata     PASS           PASS
  collectives  -              -
  lse          PASS 0.0512    PASS 0.0512
  output       PASS 0.432     PASS 0.432
  - collectives: no collectives in the plan
  repro: cpverify run scenarios/good.yaml --seed 0

lse, output: largest error / bound. checks: 6 passed, 0 failed, 2 skipped
1 passed, 0 failed, 0 skipped
)");
}

TEST(ConsoleText, ShowsFindingsInFullWithPlaceAndRepro) {
  EXPECT_EQ(console_text({failing_verdict()}, {}),
            R"(FAIL  bad  scenarios/bad.yaml
  check        zigzag/random
  metadata     PASS
  collectives  -
  lse          FAIL inf
  output       -
  - collectives: no collectives in the plan
  - output: after findings of lse
  FAIL  expected, not found: bad.yaml:9: check=metadata kind=metadata_mismatch
  FAIL  zigzag/random lse: lse_error
        rank 1, step 2, request chat, token 40, head 3, lse_local[19], 12 in all
        found 3.2, expected 3.1, error 0.1, bound 1e-05, 23 visible keys
  repro: cpverify run scenarios/bad.yaml --seed 0

lse, output: largest error / bound. checks: 1 passed, 1 failed, 2 skipped
0 passed, 1 failed, 0 skipped
)");
}

TEST(ConsoleText, SaysAFindingThatAllModesShareOnce) {
  Verdict verdict = failing_verdict();
  verdict.unexpected_findings.push_back(verdict.unexpected_findings.front());
  verdict.unexpected_findings.back().mode = DataMode::count;
  const std::string text = console_text({verdict}, {});
  EXPECT_THAT(text, testing::HasSubstr("FAIL  zigzag/random,count lse: lse_error"));
  EXPECT_EQ(text.find("lse_error"), text.rfind("lse_error"));
  verdict.unexpected_findings.back().detail = "another number";
  EXPECT_THAT(console_text({verdict}, {}), testing::HasSubstr("FAIL  zigzag/count lse: lse_error"));
}

TEST(ConsoleText, GivesOneLineToEachOfSeveralThatPassed) {
  const std::string text = console_text({passing_verdict(), passing_verdict()}, {});
  EXPECT_EQ(text,
            "PASS  scenarios/good.yaml  6 checks, lse 0.0512, output 0.432\n"
            "PASS  scenarios/good.yaml  6 checks, lse 0.0512, output 0.432\n\n"
            "lse, output: largest error / bound. checks: 12 passed, 0 failed, 4 skipped\n"
            "2 passed, 0 failed, 0 skipped\n");
  const std::string mixed = console_text({passing_verdict(), failing_verdict()}, {});
  EXPECT_THAT(mixed, testing::HasSubstr("FAIL  bad  scenarios/bad.yaml\n  check"));
  EXPECT_EQ(mixed.find("PASS  good"), std::string::npos);
  EXPECT_THAT(console_text({passing_verdict(), passing_verdict()}, {false, true}),
              testing::HasSubstr("PASS  good  scenarios/good.yaml\n  check"));
}

TEST(ConsoleText, AFailureThatWasExpectedIsNotCountedAsOne) {
  Verdict verdict = failing_verdict();
  verdict.outcome = Outcome::passed;
  verdict.unexpected_findings.clear();
  verdict.missing_findings.clear();
  EXPECT_THAT(console_text({verdict}, {}),
              testing::HasSubstr("checks: 1 passed, 0 failed, 2 skipped, 1 failed as expected\n"));
}

TEST(CellsText, SaysCellsAsAReaderWould) {
  std::vector<CellVerdict> cells;
  for (const StrategyKind strategy : {StrategyKind::single, StrategyKind::zigzag}) {
    for (const DataMode mode : {DataMode::random, DataMode::count, DataMode::poison}) {
      cells.emplace_back();
      cells.back().strategy = strategy;
      cells.back().mode = mode;
    }
  }
  const CellVerdict* all = cells.data();
  EXPECT_EQ(cells_text({all, all + 1, all + 2, all + 3, all + 4, all + 5}, cells), "");
  EXPECT_EQ(cells_text({all, all + 1, all + 2}, cells), "single");
  EXPECT_EQ(cells_text({all, all + 2, all + 3, all + 5}, cells), "random, poison");
  EXPECT_EQ(cells_text({all, all + 5}, cells), "single/random, zigzag/poison");
}

TEST(ConsoleText, CountsWeakAndErrorAsFailedAndRefusedAsSkipped) {
  std::vector<Verdict> verdicts;
  for (const Outcome outcome : {Outcome::passed, Outcome::failed, Outcome::weak, Outcome::refused,
                                Outcome::skipped, Outcome::error}) {
    verdicts.emplace_back();
    verdicts.back().outcome = outcome;
  }
  EXPECT_THAT(console_text(verdicts, {}), testing::EndsWith("\n1 passed, 3 failed, 2 skipped\n"));
}

TEST(ConsoleText, OfNoScenariosIsTheCounts) {
  EXPECT_THAT(console_text({}, {}), testing::EndsWith("\n0 passed, 0 failed, 0 skipped\n"));
}

TEST(ConsoleText, SaysWhatWasExpectedAndFound) {
  Verdict verdict = failing_verdict();
  verdict.outcome = Outcome::passed;
  verdict.missing_findings.clear();
  verdict.unexpected_findings.clear();
  const std::string text = console_text({verdict}, {});
  EXPECT_THAT(text, testing::HasSubstr("  EXPECTED  zigzag/random lse: lse_error\n"));
  EXPECT_THAT(text, testing::HasSubstr("PASS  bad"));
}

TEST(ConsoleText, ColoursOnlyWhenAsked) {
  EXPECT_EQ(console_text({failing_verdict()}, {}).find('\x1b'), std::string::npos);
  const std::string coloured = console_text({failing_verdict()}, {true});
  EXPECT_THAT(coloured, testing::HasSubstr("\x1b[31mFAIL"));
  EXPECT_THAT(coloured, testing::EndsWith("0 passed, 1 failed, 0 skipped\n"));
}

TEST(ConsoleText, GivesAReasonOncePerSetOfCells) {
  Verdict verdict = passing_verdict();
  for (CellVerdict& cell : verdict.cells) {
    cell.checks[2] = {Check::lse, Outcome::skipped, "not asked for", 0, 0.0};
    cell.checks[3] = {Check::output, Outcome::skipped, "not asked for", 0, 0.0};
  }
  verdict.cells[1].checks[0] = {Check::metadata, Outcome::weak, "nothing was compared", 0, 0.0};
  const std::string text = console_text({verdict}, {});
  EXPECT_THAT(text, testing::HasSubstr("  - lse, output: not asked for\n"));
  EXPECT_THAT(text, testing::HasSubstr("  WEAK metadata: nothing was compared (zigzag)\n"));
}

TEST(ConsoleText, LimitsTheFindingsShownAndSaysSo) {
  Verdict verdict = failing_verdict();
  verdict.unexpected_findings.assign(23, verdict.unexpected_findings.front());
  std::int64_t token = 0;
  for (Finding& finding : verdict.unexpected_findings) finding.token = token++;
  EXPECT_THAT(console_text({verdict}, {}), testing::HasSubstr("... and 3 more; --json lists all"));
}

TEST(ConsoleText, BreaksWideTables) {
  Verdict verdict = passing_verdict();
  verdict.cells.assign(7, verdict.cells.front());
  const std::string text = console_text({verdict}, {});
  const std::size_t second = text.find("check  ", text.find("check  ") + 1);
  EXPECT_NE(second, std::string::npos);
}

}  // namespace
}  // namespace cpverify::report
