#pragma once

#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace cpverify::report {

/// Indented by two; arrays of numbers stay on one line. Bytes that are not UTF-8 become U+FFFD.
/// Ends in a newline.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);

/// A number with three significant digits, null when it is not finite: what is left of a double
/// that went through a reference whose last bits depend on libm.
[[nodiscard]] nlohmann::ordered_json rounded(double value);

[[nodiscard]] inline std::string text(std::string_view value) {
  return std::string{value};
}

}  // namespace cpverify::report
