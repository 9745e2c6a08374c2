#include "report/json_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cpverify::report {
namespace {

using Json = nlohmann::ordered_json;

std::string compact(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool is_leaf(const Json& value) {
  if (!value.is_structured() || value.empty()) return true;
  return value.is_array() &&
         std::ranges::none_of(value, [](const Json& element) { return element.is_structured(); });
}

/// The library either puts every array element on its own line or everything on one; plans are
/// mostly arrays of integers, so structure is laid out here and every value printed by the library.
void append(const Json& value, std::size_t depth, std::string& out) {
  if (is_leaf(value)) {
    out += compact(value);
    return;
  }
  const std::string indent(2 * (depth + 1), ' ');
  out += value.is_object() ? "{\n" : "[\n";
  bool is_first = true;
  for (const auto& [key, element] : value.items()) {
    if (!is_first) out += ",\n";
    is_first = false;
    out += indent;
    if (value.is_object()) out += compact(Json(key)) + ": ";
    append(element, depth + 1, out);
  }
  out += '\n' + std::string(2 * depth, ' ') + (value.is_object() ? '}' : ']');
}

}  // namespace

std::string json_text(const Json& value) {
  std::string out;
  append(value, 0, out);
  return out + '\n';
}

Json rounded(double value) {
  if (!std::isfinite(value)) return nullptr;
  return std::strtod(fmt::format("{:.3g}", value).c_str(), nullptr);
}

}  // namespace cpverify::report
