#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cpverify/scenario.hpp"

namespace cpverify::tool {

/// The *.yaml files named by the arguments: files as they are, folders searched recursively and
/// sorted by path. Throws InputError for a path that does not exist and a folder without scenarios.
[[nodiscard]] std::vector<std::filesystem::path> find_scenarios(
    const std::vector<std::string>& arguments);

/// Reads them all. When some are wrong, throws one InputError with every message, one a line.
[[nodiscard]] std::vector<Scenario> load_scenarios(const std::vector<std::filesystem::path>& paths);

}  // namespace cpverify::tool
