#pragma once

#include <string>
#include <string_view>

#include "cpverify/verdict.hpp"

namespace cpverify::report {

/// `content` in the colour of an outcome when colour is used.
[[nodiscard]] std::string painted(Outcome outcome, std::string_view content, bool use_color);

/// One scenario in full: a table of cells x checks, reasons of skipped checks, findings, repro.
[[nodiscard]] std::string scenario_text(const Verdict& verdict, bool use_color);

/// One scenario that passed, on one line: outcome, name, path, counts.
[[nodiscard]] std::string scenario_line(const Verdict& verdict, bool use_color);

}  // namespace cpverify::report
