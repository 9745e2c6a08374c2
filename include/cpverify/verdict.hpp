#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify {

enum class Outcome : std::uint8_t { passed, failed, weak, refused, skipped, error };

[[nodiscard]] std::string_view name(Outcome outcome) noexcept;

/// One check of one cell.
struct CheckResult {
  Check check = Check::metadata;
  Outcome outcome = Outcome::skipped;
  std::string reason;          ///< Why skipped or weak; a short fact when passed.
  std::uint64_t compared = 0;  ///< Elements, bytes or events compared; 0 never passes.
  double worst_ratio = 0.0;    ///< lse and output: largest error / bound.
};

/// A configuration rule of the scenario's system that a cell breaks.
struct BrokenRule {
  std::string id;         ///< docs/configuration_rules.md, e.g. "vllm-5b".
  std::string stated_by;  ///< Name of the system.
  std::string effect;     ///< refused, changed or unsafe.
  std::string violation;  ///< In the configuration's numbers.
  std::string meaning;
  std::string instead;  ///< What the user can do.
};

/// One cell: a strategy in a data mode.
struct CellVerdict {
  StrategyKind strategy = StrategyKind::single;
  DataMode mode = DataMode::random;
  Outcome outcome = Outcome::skipped;
  std::string digest;  ///< Of every captured byte, 16 hex digits.
  std::vector<CheckResult> checks;
  std::vector<Finding> findings;
  /// All that are broken; the cell is refused, and nothing ran, unless each has effect changed.
  std::vector<BrokenRule> rules;
};

/// A scenario's verdict. With `expect`, passed means: those findings and no others.
struct Verdict {
  std::string scenario;
  std::string path;
  std::string schedule;  ///< Of the simulated GPUs, as text() spells it; empty on real ones.
  /// How the simulated GPUs and their collectives take sums; empty on real ones.
  std::string mma_accumulation;
  std::string reduction;
  TopologySpec topology;  ///< As the scenario says; strategies use what they need of it.
  Outcome outcome = Outcome::skipped;
  std::vector<CellVerdict> cells;
  std::vector<std::string> missing_findings;  ///< Expected, not found.
  std::vector<Finding> unexpected_findings;   ///< Found, not expected (all, when none is expected).
  std::vector<std::string> unexpected_rules;  ///< Ids of rules that refuse against `expect`.
  std::string repro;                          ///< The one command that gives this verdict again.
};

}  // namespace cpverify
