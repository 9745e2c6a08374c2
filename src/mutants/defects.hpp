#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::mutants {

/// A number that narrows a defect down. For `rank` and `step`, -1 means every one.
struct ParameterInfo {
  std::string_view name;
  std::string_view summary;
  std::int64_t default_value = 0;
};

/// A defect that can be put into plans on purpose.
struct DefectInfo {
  std::string_view name;
  std::string_view summary;
  std::string_view needs;  ///< What a scenario must have for the defect to change anything.
  std::vector<ParameterInfo> parameters;
};

[[nodiscard]] std::vector<DefectInfo> all_defects();

/// Changes the plans of all steps of a CP strategy as the defect says: metadata, buffers,
/// operations, or the module that a launch names. Throws InputError at `inject.where` for an
/// unknown defect (with the nearest name) or parameter, a rank or step that the plans do not have,
/// and a defect that would change nothing.
void inject(const InjectSpec& inject, const Problem& problem, std::vector<Plan>& plans);

/// The plans that are run for a strategy, one per step: the last strategy of a scenario is the
/// subject and carries the scenario's defect. Throws as inject() and make_plan() do.
[[nodiscard]] std::vector<Plan> make_subject_plans(const Problem& problem, StrategyKind strategy);

}  // namespace cpverify::mutants
