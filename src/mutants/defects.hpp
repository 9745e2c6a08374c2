#pragma once

#include <string_view>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::mutants {

/// A defect that can be put into plans on purpose.
struct DefectInfo {
  std::string_view name;
  std::string_view summary;
};

[[nodiscard]] std::vector<DefectInfo> all_defects();

/// Changes the plans of all steps of a CP strategy as the defect says: metadata, buffers,
/// operations, or the module that a launch names. Throws InputError at `inject.where` for an
/// unknown defect (with the nearest name) or parameter.
void inject(const InjectSpec& inject, const Problem& problem, std::vector<Plan>& plans);

}  // namespace cpverify::mutants
