#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify {

enum class LaneKind : std::uint8_t { sim, cuda };

struct VerifyOptions {
  LaneKind lane = LaneKind::sim;
  std::optional<std::uint64_t> seed;     ///< Replaces data.seed of the scenario.
  std::optional<ScheduleSpec> schedule;  ///< Replaces that of the scenario; lane sim only.
  std::vector<StrategyKind> strategies;  ///< Empty: the scenario's.
  std::vector<DataMode> modes;           ///< Empty: the scenario's.
  std::string kernel_directory;          ///< Empty: where the build or install put the PTX.
  /// What the kernels of all cells executed is added here; null: not counted. Lane sim only.
  Coverage* coverage = nullptr;
  /// Host threads for the runs and references of the cells; 0: one per core. The verdict is the
  /// same for any number; each thread holds the memory of one run.
  unsigned jobs = 0;
};

/// Runs every cell of a scenario and judges it. Same scenario, options and build: same verdict,
/// same bytes. Throws InputError and EnvironmentError; a defect of the subject is a finding.
[[nodiscard]] Verdict verify(const Scenario& scenario, const VerifyOptions& options = {});

}  // namespace cpverify
