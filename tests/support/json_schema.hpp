#pragma once

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cpverify::test {

/// The part of JSON Schema that docs/schema uses: type, const, enum, pattern, required, properties,
/// additionalProperties: false, items, $ref into $defs. Another keyword is an error, so that a
/// schema cannot promise what the test does not look at.
class JsonSchema {
 public:
  explicit JsonSchema(const std::string& path) {
    std::ifstream file{path};
    root_ = nlohmann::json::parse(file);
  }

  /// Where and how a document breaks the schema; empty when it does not.
  [[nodiscard]] std::vector<std::string> errors(const nlohmann::json& document) const {
    std::vector<std::string> found;
    check(root_, document, "$", found);
    return found;
  }

 private:
  using Json = nlohmann::json;

  static bool has_type(const Json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    if (type == "boolean") return value.is_boolean();
    return type == "null" && value.is_null();
  }

  void check(const Json& schema, const Json& value, const std::string& where,
             std::vector<std::string>& found) const {
    for (const auto& [keyword, rule] : schema.items()) {
      check_keyword(keyword, rule, value, where, found);
    }
    if (!value.is_object() || !schema.contains("properties")) return;
    for (const auto& [key, member] : value.items()) {
      if (schema["properties"].contains(key)) {
        check(schema["properties"][key], member, fmt::format("{}.{}", where, key), found);
      } else if (schema.contains("additionalProperties")) {
        found.push_back(fmt::format("{}: unknown member {}", where, key));
      }
    }
  }

  void check_keyword(const std::string& keyword, const Json& rule, const Json& value,
                     const std::string& where, std::vector<std::string>& found) const {
    if (keyword == "$ref") {
      check(root_["$defs"][rule.get<std::string>().substr(8)], value, where, found);
    } else if (keyword == "type") {
      const std::vector<std::string> types =
          rule.is_array() ? rule.get<std::vector<std::string>>()
                          : std::vector<std::string>{rule.get<std::string>()};
      if (std::none_of(types.begin(), types.end(),
                       [&](const std::string& type) { return has_type(value, type); })) {
        found.push_back(fmt::format("{}: type {}", where, value.type_name()));
      }
    } else if (keyword == "const") {
      if (value != rule) found.push_back(fmt::format("{}: found {}", where, value.dump()));
    } else if (keyword == "enum") {
      if (std::count(rule.begin(), rule.end(), value) == 0) {
        found.push_back(fmt::format("{}: found {}", where, value.dump()));
      }
    } else if (keyword == "pattern") {
      if (!std::regex_match(value.get<std::string>(), std::regex{rule.get<std::string>()})) {
        found.push_back(fmt::format("{}: found {}", where, value.dump()));
      }
    } else if (keyword == "required") {
      for (const auto& key : rule) {
        if (value.contains(key)) continue;
        found.push_back(fmt::format("{}: lacks {}", where, key.get<std::string>()));
      }
    } else if (keyword == "items") {
      for (std::size_t i = 0; i < value.size(); ++i) {
        check(rule, value[i], fmt::format("{}[{}]", where, i), found);
      }
    } else if (keyword != "properties" && keyword != "additionalProperties" &&
               keyword != "$schema" && keyword != "$defs" && keyword != "title") {
      found.push_back("schema keyword " + keyword + " is not checked");
    }
  }

  Json root_;
};

}  // namespace cpverify::test
