#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "scenario/file_text.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

namespace cpverify {
namespace {

constexpr std::size_t kMaxScenarioBytes = std::size_t{1} << 20;

SourceLocation at(const YAML::Mark& mark, const std::string& file) {
  return mark.is_null() ? SourceLocation{file}
                        : SourceLocation{file, mark.line + 1, mark.column + 1};
}

YAML::Node parse_document(const std::string& text, const std::string& file) {
  std::vector<YAML::Node> documents;
  try {
    documents = YAML::LoadAll(text);
  } catch (const YAML::Exception& error) {
    throw InputError{at(error.mark, file), fmt::format("not YAML: {}", error.msg)};
  }
  if (documents.empty() || documents.front().IsNull()) {
    throw InputError{SourceLocation{file, 1, 1},
                     "the file is empty; expected a scenario with model, topology, cache and "
                     "requests"};
  }
  if (documents.size() > 1) {
    throw InputError{
        at(documents[1].Mark(), file),
        fmt::format("the file has {} YAML documents; expected one scenario", documents.size())};
  }
  return documents.front();
}

void read_strategies(const scenario::Map& file, Scenario& scenario) {
  const std::optional<scenario::Value> value = file.find("strategies");
  if (value) scenario.strategies = scenario::choices(*value, scenario::kStrategies);
}

void read_names(const scenario::Map& file, Scenario& scenario) {
  scenario.name = scenario.path.stem().string();
  const std::optional<scenario::Value> name = file.find("name");
  if (name) scenario.name = name->text();
  const std::optional<scenario::Value> description = file.find("description");
  if (description) scenario.description = description->text();
}

}  // namespace

Scenario load_scenario(const std::filesystem::path& path) {
  return parse_scenario(scenario::read_file(path, {}, kMaxScenarioBytes), path);
}

Scenario parse_scenario(const std::string& text, const std::filesystem::path& path) {
  const std::string file = path.string();
  scenario::check_is_text(text, file);
  const scenario::Value root{parse_document(text, file), SourceLocation{file, 1, 1}, "scenario"};
  const scenario::Map map{root, scenario::Section::scenario};
  Scenario scenario;
  scenario.path = path;
  read_names(map, scenario);
  scenario::read_model(map, scenario);
  scenario::read_topology(map, scenario);
  read_strategies(map, scenario);
  scenario::read_attention_kernel(map, scenario);
  scenario::read_cache(map, scenario);
  scenario::read_requests(map, scenario);
  scenario::read_scheduler(map, scenario);
  scenario::read_padding(map, scenario);
  scenario::read_data(map, scenario);
  scenario::read_schedule(map, scenario);
  scenario::read_mma_accumulation(map, scenario);
  scenario::read_reduction(map, scenario);
  scenario::read_checks(map, scenario);
  scenario::read_inject(map, scenario);
  scenario::read_expect(map, scenario);
  return scenario;
}

}  // namespace cpverify
