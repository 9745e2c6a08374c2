#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "layout/scenario_configuration.hpp"
#include "layout/split_svg.hpp"
#include "layout/splits.hpp"
#include "layout/topology.hpp"
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
  std::string svg;  ///< Where to draw to; empty: print instead.
  bool is_json = false;
};

/// Whether a rank's blocks are parts of the tables' blocks.
bool has_shards(const TopologySpec& world, StrategyKind strategy) {
  return strategy == StrategyKind::dcp || strategy == StrategyKind::dcp_virtual ||
         (strategy == StrategyKind::pcp_head_tail && world.cp > 1);
}

/// The geometry of a strategy in one tensor-parallel rank, or in one decode group of them.
layout::SplitSpec spec_of(const Scenario& scenario, StrategyKind strategy) {
  const TopologySpec world = layout::world_of(scenario.topology, strategy);
  layout::SplitSpec spec;
  spec.kind = layout::split_kind(strategy);
  spec.cp = world.cp;
  const bool is_sharded = has_shards(world, strategy);
  spec.block_size = std::int64_t{scenario.cache.block_size} * (is_sharded ? 1 : world.kv_shards());
  if (is_sharded) spec.interleave_size = world.kv_interleave;
  spec.num_heads_q = scenario.model.num_heads_q / world.tp;
  if (is_sharded) {
    spec.dcp = world.dcp;
    spec.num_heads_q *= world.dcp;
    spec.visibility = scenario.dcp.visibility;
  }
  if (strategy == StrategyKind::pcp_dcp) {
    spec.dcp = world.kv_shards();
    spec.interleave_size = world.kv_interleave;
    spec.block_size = scenario.cache.block_size;
    spec.num_heads_q *= layout::head_group_size(world);
  }
  if (strategy == StrategyKind::ring_contiguous) spec.ring_order = layout::RingOrder::contiguous;
  return spec;
}

/// Pictures know owners by position, and ranks with prefill ranks counted first.
void check_is_drawn(const Scenario& scenario, const Plan& plan) {
  if (plan.strategy == StrategyKind::dcp_virtual && plan.is_cp_on &&
      scenario.cache.unit == CacheUnit::slot) {
    throw InputError{
        scenario.cache.where,
        "with unit slot owners follow no positions, which --svg draws; expected unit block"};
  }
  const TopologySpec& topology = scenario.topology;
  if (plan.strategy == StrategyKind::pcp_dcp && topology.kv_sharding == KvSharding::pcp_dcp &&
      topology.dcp > 1) {
    throw InputError{
        "--svg does not draw shards that kv_sharding pcp_dcp counts by decode group first; "
        "expected dcp_over_pcp, or dcp 1"};
  }
}

layout::SplitPicture picture_of(const Problem& problem, const Plan& plan) {
  const Scenario& scenario = problem.scenario;
  check_is_drawn(scenario, plan);
  const layout::SplitSpec spec = spec_of(scenario, plan.strategy);
  std::vector<layout::SplitRow> rows;
  std::vector<std::string> names;
  for (const StepRow& row : problem.steps[plan.step].rows) {
    rows.push_back({row.computed, row.scheduled, row.state == RowState::decode});
    names.push_back(scenario.requests[row.request.value()].id);
  }
  return {fmt::format("{}, step {}, strategy {}, {} ranks", scenario.name, plan.step,
                      name(plan.strategy), plan.ranks.size()),
          layout::BatchSplit{spec, std::move(rows)}, std::move(names)};
}

void draw(const Problem& problem, const std::vector<Plan>& plans, const std::string& path) {
  std::vector<layout::SplitPicture> pictures;
  pictures.reserve(plans.size());
  for (const Plan& plan : plans) pictures.push_back(picture_of(problem, plan));
  write_output(path, layout::splits_svg(pictures));
}

void keep_rank(Plan& plan, std::uint32_t rank) {
  if (rank >= plan.ranks.size()) {
    throw InputError{
        fmt::format("--rank {}: the plan has ranks 0 to {}", rank, plan.ranks.size() - 1)};
  }
  plan.ranks = {plan.ranks[rank]};
}

int show(const ShowFlags& flags) {
  const Scenario scenario = load_scenario(flags.path);
  if (scenario.launch) {
    throw InputError{scenario.launch->where, "a scenario with 'launch' has no plan to show"};
  }
  const Problem problem = make_problem(scenario);
  if (flags.step && *flags.step >= problem.steps.size()) {
    throw InputError{fmt::format("--step {}: the scenario has steps 0 to {}", *flags.step,
                                 problem.steps.size() - 1)};
  }
  std::vector<Plan> plans =
      mutants::make_subject_plans(problem, problem.scenario.strategies.back());
  if (flags.step) plans = {plans[*flags.step]};
  if (!flags.svg.empty()) {
    draw(problem, plans, flags.svg);
    return kExitPassed;
  }
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
  command
      ->add_option("--svg", flags->svg,
                   "Draw who holds and computes what, instead of printing; all ranks of tp rank 0")
      ->type_name("FILE");
  command->add_flag("--json", flags->is_json, "Every metadata array under its name, as JSON");
  command->callback([flags, &action] { action = [flags] { return show(*flags); }; });
}

}  // namespace cpverify::tool
