#pragma once

#include <string>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::report {

struct ConsoleOptions {
  bool use_color = false;
  bool is_verbose = false;  ///< Also scenarios that passed among several in full.
};

/// One table per scenario (cells x checks), findings, repro lines; of several scenarios those that
/// passed have one line each. Last line
/// "N passed, N failed, N skipped".
[[nodiscard]] std::string console_text(const std::vector<Verdict>& verdicts,
                                       const ConsoleOptions& options);

/// docs/json.md, "cpverify.verdicts", schema_version 1. No clock, host or path of the machine in
/// it.
[[nodiscard]] std::string verdicts_json(const std::vector<Verdict>& verdicts);

/// docs/json.md, "cpverify.plan": per step and rank every metadata array of the plan by name.
[[nodiscard]] std::string plans_json(const Problem& problem, const std::vector<Plan>& plans);

/// The same as aligned tables for a terminal.
[[nodiscard]] std::string plans_text(const Problem& problem, const std::vector<Plan>& plans);

/// A tracefile of lcov: per source file its kernels, lines and branches, and their sums. Counts are
/// threads. Instructions without a line table are left out.
[[nodiscard]] std::string lcov_text(const Coverage& coverage);

/// A line for each kernel: what of its instructions, lines and branches was executed.
[[nodiscard]] std::string coverage_text(const Coverage& coverage);

}  // namespace cpverify::report
