#pragma once

#include <limits>
#include <vector>

#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::test {

inline Finding example_finding() {
  Finding finding;
  finding.check = Check::lse;
  finding.kind = "lse_error";
  finding.strategy = StrategyKind::zigzag;
  finding.mode = DataMode::random;
  finding.step = 2;
  finding.rank = RankId{1};
  finding.request = "chat";
  finding.token = 40;
  finding.head = 3;
  finding.buffer = "lse_local";
  finding.element = 19;
  finding.count = 12;
  finding.detail = "found 3.2, expected 3.1, error 0.1, bound 1e-05, 23 visible keys";
  return finding;
}

inline CellVerdict passing_cell(StrategyKind strategy) {
  CellVerdict cell;
  cell.strategy = strategy;
  cell.mode = DataMode::random;
  cell.outcome = Outcome::passed;
  cell.digest = "00000000000000ab";
  cell.checks = {{Check::metadata, Outcome::passed, "", 100, 0.0},
                 {Check::collectives, Outcome::skipped, "no collectives in the plan", 0, 0.0},
                 {Check::lse, Outcome::passed, "", 64, 0.0512345},
                 {Check::output, Outcome::passed, "", 2048, 0.4321}};
  return cell;
}

inline Verdict passing_verdict() {
  Verdict verdict;
  verdict.scenario = "good";
  verdict.path = "scenarios/good.yaml";
  verdict.schedule = "round_robin";
  verdict.outcome = Outcome::passed;
  verdict.cells = {passing_cell(StrategyKind::single), passing_cell(StrategyKind::zigzag)};
  verdict.repro = "cpverify run scenarios/good.yaml --seed 0";
  return verdict;
}

inline Verdict failing_verdict() {
  Verdict verdict;
  verdict.scenario = "bad";
  verdict.path = "scenarios/bad.yaml";
  verdict.schedule = "random:7";
  verdict.outcome = Outcome::failed;
  CellVerdict cell = passing_cell(StrategyKind::zigzag);
  cell.outcome = Outcome::failed;
  cell.checks[2] = {Check::lse, Outcome::failed, "", 64, std::numeric_limits<double>::infinity()};
  cell.checks[3] = {Check::output, Outcome::skipped, "after findings of lse", 0, 0.0};
  cell.findings = {example_finding()};
  verdict.cells = {cell};
  verdict.missing_findings = {"bad.yaml:9: check=metadata kind=metadata_mismatch"};
  verdict.unexpected_findings = cell.findings;
  verdict.repro = "cpverify run scenarios/bad.yaml --seed 0";
  return verdict;
}

}  // namespace cpverify::test
