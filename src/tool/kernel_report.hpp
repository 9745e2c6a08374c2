#pragma once

#include <string>

#include "sim/inspect/module_facts.hpp"

namespace cpverify::tool {

/// For people: a paragraph per entry, with how often each opcode is written when asked for.
[[nodiscard]] std::string module_text(const std::string& file, const sim::ModuleFacts& facts,
                                      bool has_histogram);

/// The same facts and the unsupported instructions, as JSON.
[[nodiscard]] std::string module_json(const std::string& file, const sim::ModuleFacts& facts);

/// For each a line with place, reason and section and a line with the text, behind a line end.
[[nodiscard]] std::string unsupported_text(const sim::ModuleFacts& facts);

}  // namespace cpverify::tool
