#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/finding.hpp"
#include "judge/judge.hpp"

/// One function per check. Each looks at the whole cell, indexes nothing that it has not measured
/// (plans and captures may be defective), and stops after the first step that has findings.
namespace cpverify::judge {

/// What one check saw.
struct CheckReport {
  bool is_applicable = true;
  std::string reason;  ///< Why not applicable, or a short fact.
  std::uint64_t compared = 0;
  double worst_ratio = 0.0;
  bool is_weak = false;  ///< Could not have decided; `reason` says why.
  std::vector<Finding> findings;
};

[[nodiscard]] inline CheckReport not_applicable(std::string reason) {
  CheckReport report;
  report.is_applicable = false;
  report.reason = std::move(reason);
  return report;
}

/// Steps of the cell that ran to their end and have a plan and a reference to be compared with.
[[nodiscard]] std::size_t comparable_steps(const CellEvidence& evidence);

/// Steps of a run before the first that is not complete.
[[nodiscard]] std::size_t complete_steps(const run::RunCapture& run);

/// Query heads [first, first + count) and KV heads of a world rank. Source: docs/plan.md, "Heads of
/// a rank"; stated here a third time on purpose, for plan and reference may not be asked.
[[nodiscard]] HeadRange query_heads(const Scenario& scenario, RankId rank) noexcept;
[[nodiscard]] HeadRange kv_heads(const Scenario& scenario, RankId rank) noexcept;
/// KV heads that a rank's pools hold.
[[nodiscard]] HeadRange pool_heads(const Scenario& scenario, StrategyKind strategy,
                                   RankId rank) noexcept;
/// Query heads whose sinks a rank's calls need.
[[nodiscard]] HeadRange sink_heads(const Scenario& scenario, StrategyKind strategy,
                                   RankId rank) noexcept;

/// Of one plan, for judge_plan as well.
void compare_metadata(const Problem& problem, const Plan& plan, DataMode mode, CheckReport& report);
void compare_collectives(const Plan& plan, DataMode mode, CheckReport& report);

[[nodiscard]] CheckReport check_metadata(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_collectives(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_memcheck(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_initcheck(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_racecheck(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_synccheck(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_nancheck(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_kv_pool(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_count(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_poison(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_lse(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_output(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_bitwise(const CellEvidence& evidence);
[[nodiscard]] CheckReport check_determinism(const CellEvidence& evidence);

}  // namespace cpverify::judge
