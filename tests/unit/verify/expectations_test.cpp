#include "verify/expectations.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::verify_detail {
namespace {

Finding lse_finding(std::uint32_t rank) {
  Finding finding;
  finding.check = Check::lse;
  finding.kind = "lse_error";
  finding.rank = RankId{rank};
  finding.detail = "found 1.4427 times the reference";
  return finding;
}

ExpectedFinding expected(const std::string& field, const std::string& value) {
  ExpectedFinding result;
  result.check = Check::lse;
  result.fields[field] = value;
  result.where = {"s.yaml", 4, 3};
  return result;
}

Verdict failed_cell(const std::vector<Finding>& findings) {
  Verdict verdict;
  verdict.cells.resize(1);
  verdict.cells[0].outcome = findings.empty() ? Outcome::passed : Outcome::failed;
  verdict.cells[0].findings = findings;
  return verdict;
}

TEST(Settle, WithoutExpectationsTheWorstCellDecides) {
  Verdict verdict = failed_cell({});
  verdict.cells.push_back(verdict.cells[0]);
  settle(Scenario{}, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::passed);
  verdict.cells[1].outcome = Outcome::weak;
  settle(Scenario{}, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::weak);
}

TEST(Settle, NoCellAtAllIsNotAPass) {
  Verdict verdict;
  settle(Scenario{}, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::skipped);
}

TEST(Settle, ExactlyTheExpectedFindingsPass) {
  Scenario scenario;
  scenario.expect = {expected("rank", "1")};
  Verdict verdict = failed_cell({lse_finding(1)});
  settle(scenario, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::passed);
}

TEST(Settle, AWrongScenarioThatIsCleanFails) {
  Scenario scenario;
  scenario.expect = {expected("rank", "1")};
  Verdict verdict = failed_cell({});
  settle(scenario, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  EXPECT_EQ(verdict.missing_findings, std::vector<std::string>{"s.yaml:4: check=lse rank=1"});
}

TEST(Settle, AnExtraFindingFailsEvenBesideTheExpectedOne) {
  Scenario scenario;
  scenario.expect = {expected("rank", "1")};
  Verdict verdict = failed_cell({lse_finding(1), lse_finding(2)});
  settle(scenario, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].rank, RankId{2});
}

TEST(Settle, DetailMatchesByContentOtherFieldsWhole) {
  Scenario scenario;
  scenario.expect = {expected("detail", "1.4427")};
  Verdict verdict = failed_cell({lse_finding(1)});
  settle(scenario, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::passed);
  scenario.expect = {expected("kind", "lse")};
  verdict = failed_cell({lse_finding(1)});
  settle(scenario, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
}

TEST(Settle, AFieldThatTheFindingLacksDoesNotMatch) {
  Scenario scenario;
  scenario.expect = {expected("head", "0")};
  Verdict verdict = failed_cell({lse_finding(1)});
  settle(scenario, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
}

/// A cell that passed, and one that the rules refuse.
Verdict refused_cell(const std::vector<std::string>& ids) {
  Verdict verdict = failed_cell({});
  verdict.cells.push_back(verdict.cells[0]);
  verdict.cells[1].outcome = Outcome::refused;
  for (const std::string& id : ids) {
    BrokenRule rule;
    rule.id = id;
    verdict.cells[1].rules.push_back(rule);
  }
  return verdict;
}

Scenario refused_by(const std::vector<std::string>& ids) {
  Scenario scenario;
  for (const std::string& id : ids) scenario.expect_refused.push_back({id, {"s.yaml", 9, 3}});
  return scenario;
}

TEST(Settle, ARefusedCellMakesTheScenarioRefusedUnlessItIsExpected) {
  Verdict verdict = refused_cell({"vllm-2"});
  settle(Scenario{}, verdict);
  EXPECT_EQ(verdict.outcome, Outcome::refused);
  settle(refused_by({"vllm-2"}), verdict);
  EXPECT_EQ(verdict.outcome, Outcome::passed);
}

TEST(Settle, EveryRuleThatRefusesMustBeExpected) {
  Verdict verdict = refused_cell({"vllm-2", "vllm-3"});
  settle(refused_by({"vllm-2"}), verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  EXPECT_EQ(verdict.unexpected_rules, std::vector<std::string>{"vllm-3"});
}

TEST(Settle, ARuleThatDoesNotRefuseIsMissing) {
  Verdict verdict = refused_cell({"vllm-2"});
  settle(refused_by({"vllm-2", "vllm-3"}), verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  EXPECT_EQ(verdict.missing_findings, std::vector<std::string>{"s.yaml:9: refused by vllm-3"});
}

TEST(Settle, AnExpectedRefusalDoesNotHideAFindingOrAWeakCell) {
  Verdict verdict = refused_cell({"vllm-2"});
  verdict.cells[0].outcome = Outcome::failed;
  verdict.cells[0].findings = {lse_finding(1)};
  settle(refused_by({"vllm-2"}), verdict);
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  verdict = refused_cell({"vllm-2"});
  verdict.cells[0].outcome = Outcome::weak;
  settle(refused_by({"vllm-2"}), verdict);
  EXPECT_EQ(verdict.outcome, Outcome::weak);
}

}  // namespace
}  // namespace cpverify::verify_detail
