#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "tool/commands.hpp"
#include "tool/exit_code.hpp"

namespace cpverify::tool {
namespace {

int fail(const char* message, int code) {
  fmt::print(stderr, "cpverify: {}\n", message);
  return code;
}

int parse_and_act(int argc, char** argv) {
  CLI::App app{"Verifies that context-parallel attention computes what one device computes.",
               "cpverify"};
  app.set_version_flag("--version", "cpverify " CPVERIFY_VERSION);
  app.footer(
      "stdout is the result, stderr is talk.\n"
      "Exit: 0 all passed; 1 findings; 2 the input is wrong; 3 the environment lacks something;\n"
      "134 a defect of cpverify itself.");
  Action action;
  add_scenario_option(app, action);
  add_run_command(app, action);
  add_show_command(app, action);
  add_kernel_command(app, action);
  add_plan_command(app, action);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kExitPassed : kExitInput;
  }
  if (!action) {
    fmt::print(stderr, "{}", app.help());
    return fail("nothing to do: give --scenario FILE or a command", kExitInput);
  }
  return action();
}

}  // namespace
}  // namespace cpverify::tool

int main(int argc, char** argv) {
  using namespace cpverify;  // NOLINT(google-build-using-namespace): main is the program's own end.
  try {
    return tool::parse_and_act(argc, argv);
  } catch (const InputError& error) {
    return tool::fail(error.what(), tool::kExitInput);
  } catch (const EnvironmentError& error) {
    return tool::fail(error.what(), tool::kExitEnvironment);
  } catch (const std::bad_alloc&) {
    return tool::fail("out of memory; run fewer scenarios at a time (--jobs 1)",
                      tool::kExitEnvironment);
  } catch (const std::exception& error) {
    fmt::print(stderr, "cpverify: internal error: {}\n", error.what());
    std::abort();
  }
}
