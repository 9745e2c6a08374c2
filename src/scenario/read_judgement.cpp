#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

// How a run is judged: checks, injected defect, expected findings.
namespace cpverify::scenario {
namespace {

std::string whole_number_text(const Value& value, const Range& range) {
  return fmt::format("{}", value.whole_number(range));
}

std::string request_id(const Value& value, const Scenario& scenario) {
  const std::string id = value.identifier();
  std::vector<std::string> known;
  known.reserve(scenario.requests.size());
  for (const RequestSpec& request : scenario.requests) known.push_back(request.id);
  if (std::find(known.begin(), known.end(), id) == known.end()) {
    value.fail(unknown_word("request", id, known));
  }
  return id;
}

/// Of findings about attention, which kernels that are launched alone do not have.
bool is_problem_field(const std::string& field) {
  return field == "strategy" || field == "mode" || field == "request" || field == "token" ||
         field == "key" || field == "head" || field == "page" || field == "slot";
}

/// The field's text as Finding::fields() spells it, so that it can match at all.
std::string field_text(const Value& value, const Scenario& scenario) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::string& field = value.name();
  const std::int64_t world =
      std::int64_t{scenario.topology.cp} * std::int64_t{scenario.topology.tp};
  if (scenario.launch && is_problem_field(field)) {
    value.fail(fmt::format("'{}' is for attention; findings of 'launch' have none", field));
  }
  if (field == "strategy") return std::string{cpverify::name(choice(value, kStrategies))};
  if (field == "mode") return std::string{cpverify::name(choice(value, kDataModes))};
  if (field == "request") return request_id(value, scenario);
  if (field == "rank") return whole_number_text(value, {0, world - 1, ", the ranks of 'topology'"});
  if (field == "head") {
    return whole_number_text(value, {0, std::int64_t{scenario.model.num_heads_q} - 1});
  }
  if (field == "step" || field == "token" || field == "key" || field == "page" || field == "slot" ||
      field == "element" || field == "line") {
    return whole_number_text(value, {0, kMax});
  }
  return value.text();
}

ExpectedFinding read_finding(const Value& value, const Scenario& scenario) {
  const Map map{value, Section::finding};
  ExpectedFinding finding;
  finding.where = map.where();
  for (const Value& field : map.values()) {
    if (field.name() == "check") {
      finding.check = choice(field, kChecks);
    } else {
      finding.fields.emplace(field.name(), field_text(field, scenario));
    }
  }
  if (map.values().empty()) value.fail("a finding without fields matches anything; name one field");
  return finding;
}

/// Whether there are such rules is known to the layer that has them.
void read_expected_rules(const Map& expect, Scenario& scenario) {
  const std::optional<Value> rules = expect.find("refused");
  if (!rules) return;
  if (!scenario.system) rules->fail("'refused' is for a scenario that names its 'system'");
  for (const Value& rule : rules->list()) {
    scenario.expect_refused.push_back({rule.identifier(), rule.where()});
  }
}

std::vector<Check> default_checks(const Scenario& scenario) {
  if (scenario.launch) {
    std::vector<Check> checks{kLaunchChecks.begin(), kLaunchChecks.end()};
    std::erase(checks, Check::nancheck);
    return checks;
  }
  std::vector<Check> checks{kChecks.begin(), kChecks.end()};
  for (const Check check : kSlowChecks) std::erase(checks, check);
  return checks;
}

}  // namespace

void read_checks(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("checks");
  if (!value) {
    scenario.checks = default_checks(scenario);
    return;
  }
  scenario.checks = scenario.launch ? choices(*value, kLaunchChecks) : choices(*value, kChecks);
  std::sort(scenario.checks.begin(), scenario.checks.end());
  const SchedulePolicy policy = scenario.schedule.policy;
  if (scenario.asks_for(Check::racecheck) && !runs_one_cta_at_a_time(policy)) {
    value->fail(
        fmt::format("'checks' has racecheck, which follows one CTA at a time, and "
                    "'schedule' {} keeps several; leave racecheck out, or choose policy "
                    "round_robin, reverse or run_to_block",
                    name(policy)));
  }
}

void read_inject(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("inject");
  if (!value) return;
  const Map map{*value, Section::inject};
  const Value defect = map.require("defect");
  InjectSpec inject;
  inject.defect = defect.identifier();
  inject.where = defect.where();
  constexpr Range kAny{std::numeric_limits<std::int32_t>::min(),
                       std::numeric_limits<std::int32_t>::max()};
  for (const Value& parameter : map.values()) {
    if (parameter.name() == "defect") continue;
    inject.parameters.emplace(parameter.name(), parameter.whole_number(kAny));
  }
  scenario.inject = std::move(inject);
}

void read_expect(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("expect");
  if (!value) return;
  const Map map{*value, Section::expect};
  read_expected_values(map, scenario);
  read_expected_rules(map, scenario);
  // What a launch must leave, or what refuses, may be all that is expected: then nothing may be
  // found.
  if ((map.find("values") || map.find("refused")) && !map.find("findings")) return;
  // An empty list is refused: it would read as "anything goes" and mean "nothing may be found".
  for (const Value& entry : map.require("findings").list()) {
    scenario.expect.push_back(read_finding(entry, scenario));
  }
}

}  // namespace cpverify::scenario
