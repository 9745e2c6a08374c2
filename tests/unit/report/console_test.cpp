#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "report/report.hpp"
#include "unit/report/example_verdicts.hpp"

namespace cpverify::report {
namespace {

using test::failing_verdict;
using test::passing_verdict;

TEST(ConsoleText, ShowsEveryCheckOfAPassingScenario) {
  EXPECT_EQ(console_text({passing_verdict()}, {}),
            R"(PASS  good  scenarios/good.yaml
  check        single/random  zigzag/random
  metadata     PASS           PASS
  collectives  -              -
  lse          PASS 0.051     PASS 0.051
  output       PASS 0.43      PASS 0.43
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
  EXPECT_THAT(text, testing::HasSubstr("  WEAK metadata: nothing was compared (zigzag/random)\n"));
}

TEST(ConsoleText, LimitsTheFindingsShownAndSaysSo) {
  Verdict verdict = failing_verdict();
  verdict.unexpected_findings.assign(23, verdict.unexpected_findings.front());
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
