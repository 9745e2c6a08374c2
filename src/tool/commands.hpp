#pragma once

#include <functional>

#include <CLI/CLI.hpp>

namespace cpverify::tool {

/// What main runs once the command line is read: returns the exit code.
using Action = std::function<int()>;

/// Each adds its subcommand and, when it is the one chosen, sets `action`.
void add_run_command(CLI::App& app, Action& action);
void add_show_command(CLI::App& app, Action& action);
void add_kernel_command(CLI::App& app, Action& action);
void add_plan_command(CLI::App& app, Action& action);
/// `cpverify --scenario FILE [flags of run]`.
void add_scenario_option(CLI::App& app, Action& action);

}  // namespace cpverify::tool
