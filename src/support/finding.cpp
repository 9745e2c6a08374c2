#include "cpverify/finding.hpp"

#include <map>
#include <string>

#include <fmt/format.h>

#include "cpverify/scenario.hpp"

namespace cpverify {

std::map<std::string, std::string> Finding::fields() const {
  std::map<std::string, std::string> fields{{"check", std::string{name(check)}},
                                            {"kind", kind},
                                            {"strategy", std::string{name(strategy)}},
                                            {"mode", std::string{name(mode)}},
                                            {"step", fmt::format("{}", step)}};
  const auto text = [&fields](const char* field, const std::string& value) {
    if (!value.empty()) fields.emplace(field, value);
  };
  const auto number = [&fields](const char* field, const auto& value) {
    if (value) fields.emplace(field, fmt::format("{}", *value));
  };
  if (rank) fields.emplace("rank", fmt::format("{}", rank->value()));
  text("request", request);
  number("token", token);
  number("key", key);
  number("head", head);
  number("page", page);
  number("slot", slot);
  text("buffer", buffer);
  number("element", element);
  text("kernel", kernel);
  text("source", source);
  text("detail", detail);
  return fields;
}

}  // namespace cpverify
