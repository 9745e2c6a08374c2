#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "scenario/file_text.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_document.hpp"
#include "scenario/yaml_value.hpp"

namespace cpverify {
namespace {

constexpr std::size_t kMaxScenarioBytes = std::size_t{1} << 20;

void read_names(const scenario::Map& file, Scenario& scenario) {
  scenario.name = scenario.path.stem().string();
  const std::optional<scenario::Value> name = file.find("name");
  if (name) scenario.name = name->text();
  const std::optional<scenario::Value> description = file.find("description");
  if (description) scenario.description = description->text();
}

void read_problem(const scenario::Map& file, Scenario& scenario) {
  scenario::read_system(file, scenario);
  scenario::read_model(file, scenario);
  scenario::read_topology(file, scenario);
  scenario::read_strategies(file, scenario);
  scenario::read_attention_kernel(file, scenario);
  scenario::read_dcp(file, scenario);
  scenario::read_cache(file, scenario);
  scenario::read_requests(file, scenario);
  scenario::read_scheduler(file, scenario);
  scenario::read_padding(file, scenario);
}

}  // namespace

Scenario load_scenario(const std::filesystem::path& path) {
  return parse_scenario(scenario::read_file(path, {}, kMaxScenarioBytes), path);
}

Scenario parse_scenario(const std::string& text, const std::filesystem::path& path) {
  const std::string file = path.string();
  scenario::check_is_text(text, file);
  const scenario::Value root{scenario::parse_document(text, file), SourceLocation{file, 1, 1},
                             "scenario"};
  const scenario::Map map{root, scenario::Section::scenario};
  Scenario scenario;
  scenario.path = path;
  read_names(map, scenario);
  if (map.find("launch")) {
    scenario::read_launch(map, scenario);
  } else {
    read_problem(map, scenario);
  }
  scenario::read_data(map, scenario);
  scenario::read_schedule(map, scenario);
  scenario::read_mma_accumulation(map, scenario);
  scenario::read_reduction(map, scenario);
  scenario::read_checks(map, scenario);
  if (!scenario.launch) scenario::read_inject(map, scenario);
  scenario::read_expect(map, scenario);
  return scenario;
}

}  // namespace cpverify
