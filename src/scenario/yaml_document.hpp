#pragma once

#include <string>

#include <yaml-cpp/yaml.h>

namespace cpverify::scenario {

/// The one YAML document of a text. Throws InputError at the place where the text is no YAML,
/// empty, or has a second document.
[[nodiscard]] YAML::Node parse_document(const std::string& text, const std::string& file);

}  // namespace cpverify::scenario
