#include <optional>

#include "cpverify/scenario.hpp"
#include "cpverify/system.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

// Whose configuration rules the scenario is held against.
namespace cpverify::scenario {

void read_system(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("system");
  if (!value) return;
  const Map map{*value, Section::system};
  SystemSpec spec;
  spec.system = choice(map.require("name"), all_systems());
  const std::optional<Value> backend = map.find("backend");
  if (backend) spec.backend = choice(*backend, all_backends());
  const std::optional<Value> features = map.find("features");
  if (features) spec.features = choices(*features, all_features());
  scenario.system = spec;
}

}  // namespace cpverify::scenario
