#include "tool/scenario_files.hpp"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::tool {
namespace {

bool is_scenario_file(const std::filesystem::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

std::vector<std::filesystem::path> scenarios_below(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  // A folder or file that may not be looked at is passed over, like any other that is not ours.
  std::error_code failed;
  const auto options = std::filesystem::directory_options::skip_permission_denied;
  auto entry = std::filesystem::recursive_directory_iterator{folder, options, failed};
  while (!failed && entry != std::filesystem::recursive_directory_iterator{}) {
    std::error_code unreadable;
    const bool is_file = entry->is_regular_file(unreadable);
    if (is_file && is_scenario_file(entry->path())) found.push_back(entry->path());
    entry.increment(failed);
  }
  if (failed) {
    throw EnvironmentError{
        fmt::format("cannot search {}: {}", folder.generic_string(), failed.message())};
  }
  std::sort(found.begin(), found.end());
  if (found.empty()) {
    throw InputError{fmt::format("{}: holds no scenario; expected *.yaml files in it or below",
                                 folder.generic_string())};
  }
  return found;
}

}  // namespace

std::vector<std::filesystem::path> find_scenarios(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& argument : arguments) {
    std::error_code failed;
    if (std::filesystem::is_directory(argument, failed)) {
      const auto below = scenarios_below(argument);
      paths.insert(paths.end(), below.begin(), below.end());
    } else {
      paths.emplace_back(argument);  // The reader says what is wrong with a path that is no file.
    }
  }
  return paths;
}

std::vector<Scenario> load_scenarios(const std::vector<std::filesystem::path>& paths) {
  std::vector<Scenario> scenarios;
  std::string messages;
  for (const std::filesystem::path& path : paths) {
    try {
      scenarios.push_back(load_scenario(path));
    } catch (const InputError& error) {
      if (!messages.empty()) messages += '\n';
      messages += error.what();
    }
  }
  if (!messages.empty()) throw InputError{messages};
  return scenarios;
}

}  // namespace cpverify::tool
