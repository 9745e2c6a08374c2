#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/defects.hpp"
#include "report/report.hpp"
#include "tool/commands.hpp"
#include "tool/exit_code.hpp"
#include "tool/output_file.hpp"

namespace cpverify::tool {
namespace {

struct ShowFlags {
  std::string path;
  std::optional<std::uint32_t> rank;
  std::optional<std::uint32_t> step;
  bool is_json = false;
};

void keep_rank(Plan& plan, std::uint32_t rank) {
  if (rank >= plan.ranks.size()) {
    throw InputError{
        fmt::format("--rank {}: the plan has ranks 0 to {}", rank, plan.ranks.size() - 1)};
  }
  plan.ranks = {plan.ranks[rank]};
}

int show(const ShowFlags& flags) {
  const Problem problem = make_problem(load_scenario(flags.path));
  if (flags.step && *flags.step >= problem.steps.size()) {
    throw InputError{fmt::format("--step {}: the scenario has steps 0 to {}", *flags.step,
                                 problem.steps.size() - 1)};
  }
  std::vector<Plan> plans =
      mutants::make_subject_plans(problem, problem.scenario.strategies.back());
  if (flags.step) plans = {plans[*flags.step]};
  if (flags.rank) {
    for (Plan& plan : plans) keep_rank(plan, *flags.rank);
  }
  write_stdout(flags.is_json ? report::plans_json(problem, plans)
                             : report::plans_text(problem, plans));
  return kExitPassed;
}

}  // namespace

void add_show_command(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<ShowFlags>();
  CLI::App* command = app.add_subcommand("show", "Print a scenario's plan; nothing is run");
  command->add_option("file", flags->path, "Scenario file")->required()->type_name("FILE");
  command->add_option("--rank", flags->rank, "Only this world rank")->type_name("R");
  command->add_option("--step", flags->step, "Only this scheduler step")->type_name("K");
  command->add_flag("--json", flags->is_json, "Every metadata array under its name, as JSON");
  command->callback([flags, &action] { action = [flags] { return show(*flags); }; });
}

}  // namespace cpverify::tool
