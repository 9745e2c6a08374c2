#include "mutants/defects.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/catalogue.hpp"
#include "mutants/injection.hpp"
#include "support/nearest.hpp"

namespace cpverify::mutants {
namespace {

Defect find_defect(const InjectSpec& inject) {
  std::vector<std::string> names;
  const std::vector<Defect> defects = catalogue();
  for (const Defect& defect : defects) {
    if (defect.info.name == inject.defect) {
      return defect;
    }
    names.emplace_back(defect.info.name);
  }
  const std::string guess = did_you_mean(inject.defect, names);
  throw InputError{inject.where, fmt::format("unknown defect '{}'{} known are {}", inject.defect,
                                             guess.empty() ? ";" : guess, fmt::join(names, ", "))};
}

/// Number of things that an index parameter chooses from, or 0 when it is no index of that kind.
std::size_t index_limit(std::string_view parameter, const std::vector<Plan>& plans) {
  if (parameter == "step") {
    return plans.size();
  }
  return parameter == "rank" && !plans.empty() ? plans.front().ranks.size() : 0;
}

void check_value(const InjectSpec& inject, const std::string& parameter, std::int64_t value,
                 const std::vector<Plan>& plans) {
  const std::size_t limit = index_limit(parameter, plans);
  if (limit > 0 && (value < kEvery || value >= static_cast<std::int64_t>(limit))) {
    throw InputError{inject.where, fmt::format("{} of defect '{}' is {}, expected -1 .. {}",
                                               parameter, inject.defect, value, limit - 1)};
  }
  // `shift` is the one parameter with a direction.
  if (limit == 0 && value < 0 && parameter != "shift") {
    throw InputError{inject.where, fmt::format("{} of defect '{}' is {}, expected 0 or more",
                                               parameter, inject.defect, value)};
  }
}

std::map<std::string, std::int64_t> parameter_values(const InjectSpec& inject,
                                                     const DefectInfo& info,
                                                     const std::vector<Plan>& plans) {
  std::map<std::string, std::int64_t> values;
  std::vector<std::string> names;
  for (const ParameterInfo& parameter : info.parameters) {
    values.emplace(parameter.name, parameter.default_value);
    names.emplace_back(parameter.name);
  }
  for (const auto& [name, value] : inject.parameters) {
    const auto found = values.find(name);
    if (found == values.end()) {
      throw InputError{inject.where,
                       fmt::format("defect '{}' has no parameter '{}'; it has {}{}", inject.defect,
                                   name, fmt::join(names, ", "), did_you_mean(name, names))};
    }
    check_value(inject, name, value, plans);
    found->second = value;
  }
  return values;
}

}  // namespace

std::vector<DefectInfo> all_defects() {
  std::vector<Defect> defects = catalogue();
  std::vector<DefectInfo> infos;
  infos.reserve(defects.size());
  for (Defect& defect : defects) {
    infos.push_back(std::move(defect.info));
  }
  return infos;
}

void inject(const InjectSpec& inject, const Problem& problem, std::vector<Plan>& plans) {
  const Defect defect = find_defect(inject);
  const Injection injection{problem, plans, parameter_values(inject, defect.info, plans)};
  if (defect.apply(injection) == 0) {
    throw InputError{inject.where,
                     fmt::format("defect '{}' changes nothing in this scenario; it needs {}",
                                 inject.defect, defect.info.needs)};
  }
}

std::vector<Plan> make_subject_plans(const Problem& problem, StrategyKind strategy) {
  std::vector<Plan> plans;
  plans.reserve(problem.steps.size());
  for (const Step& step : problem.steps) plans.push_back(make_plan(problem, step.index, strategy));
  const Scenario& scenario = problem.scenario;
  if (scenario.inject && strategy == scenario.strategies.back()) {
    inject(*scenario.inject, problem, plans);
  }
  return plans;
}

}  // namespace cpverify::mutants
