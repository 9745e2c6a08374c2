#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json.hpp>

#include "cpverify/verdict.hpp"

/// A broken configuration rule, for `run` and for `plan`.
namespace cpverify::report {

/// Three lines, the first with so many blanks before it.
[[nodiscard]] std::string rule_text(const BrokenRule& rule, std::size_t indent);

/// docs/json.md, "broken_rules".
[[nodiscard]] nlohmann::ordered_json rule_json(const BrokenRule& rule);

}  // namespace cpverify::report
