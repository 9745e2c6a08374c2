#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/system.hpp"
#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/cost.hpp"
#include "layout/coverage.hpp"
#include "layout/split_svg.hpp"
#include "layout/splits.hpp"
#include "layout/strategy_table.hpp"
#include "layout/world_groups.hpp"
#include "support/nearest.hpp"
#include "tool/commands.hpp"
#include "tool/exit_code.hpp"
#include "tool/output_file.hpp"
#include "tool/plan_report.hpp"

namespace cpverify::tool {
namespace {

using layout::Configuration;
using layout::SplitKind;

constexpr std::int64_t kRanksMax = 65'536;
constexpr std::int64_t kSizeMax = 1 << 20;
constexpr std::int64_t kTokensMax = 100'000'000;

struct PlanFlags {
  Configuration configuration;
  std::string system = "cpverify";
  std::string strategy;  ///< Empty: the usual one for the sizes.
  std::string combine = "automatic";
  std::string backend = "unknown";
  std::vector<std::string> features;
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> context;
  std::string visibility = "split";
  std::string ring_order = "zigzag";
  std::int64_t copies = 1;
  std::int64_t element_bytes = 2;
  double link_gb_s = 0.0;
  std::string svg;  ///< Where to draw to; empty: nowhere.
  bool is_decode = false;
  bool is_json = false;
  bool has_rules = false;
  bool has_table = false;
};

/// The enumerator with the name that the user wrote.
template <class Enum>
Enum named(std::string_view option, const std::string& word, const std::vector<Enum>& all) {
  std::vector<std::string> names;
  for (const Enum value : all) {
    names.emplace_back(name(value));
    if (names.back() == word) return value;
  }
  throw InputError{
      fmt::format("{} '{}': there is no such name{}", option, word, did_you_mean(word, names))};
}

SplitKind usual_strategy(const Configuration& c) {
  if (c.cp > 1 && c.system == System::cpverify) {
    return c.dcp > 1 ? SplitKind::pcp_head_tail : SplitKind::zigzag;
  }
  if (c.cp > 1 && c.system != System::sglang) return SplitKind::pcp_virtual_batch;
  if (c.cp == 1 && c.dcp > 1) {
    return c.system == System::sglang ? SplitKind::dcp_virtual : SplitKind::dcp;
  }
  return SplitKind::single;  // Of SGLang's prefill CP, a rule says that it must be named.
}

Configuration configuration_of(const PlanFlags& flags) {
  Configuration c = flags.configuration;
  c.system = named("--system", flags.system, all_systems());
  c.combine = named("--combine", flags.combine, layout::all_combines());
  c.backend = named("--backend", flags.backend, all_backends());
  for (const std::string& feature : flags.features) {
    c.features.set(static_cast<std::size_t>(named("--feature", feature, all_features())));
  }
  c.strategy = flags.strategy.empty()
                   ? usual_strategy(c)
                   : named("--strategy", flags.strategy, layout::all_split_kinds());
  if (c.tp * c.cp > kRanksMax || c.tp * c.cp * c.dp > kRanksMax || c.world_size() > kRanksMax) {
    throw InputError{fmt::format("more than {} ranks", kRanksMax)};
  }
  c.requests = std::max<std::int64_t>(
      c.requests, static_cast<std::int64_t>(flags.tokens.size()) * flags.copies);
  return c;
}

std::vector<layout::SplitRow> rows_of(const PlanFlags& flags) {
  if (flags.context.size() > flags.tokens.size()) {
    throw InputError{fmt::format("--context has {} numbers, --tokens {}", flags.context.size(),
                                 flags.tokens.size())};
  }
  std::vector<layout::SplitRow> rows;
  for (std::int64_t copy = 0; copy < flags.copies; ++copy) {
    for (std::size_t i = 0; i < flags.tokens.size(); ++i) {
      const std::int64_t context = i < flags.context.size() ? flags.context[i] : 0;
      rows.push_back({context, flags.tokens[i], flags.is_decode});
    }
  }
  return rows;
}

BatchReport batch_report(const PlanFlags& flags, const Configuration& c) {
  layout::SplitSpec spec = layout::split_spec(c);
  spec.visibility = flags.visibility == "cached" ? DcpVisibility::cached : DcpVisibility::split;
  spec.ring_order =
      flags.ring_order == "contiguous" ? layout::RingOrder::contiguous : layout::RingOrder::zigzag;
  layout::BatchSplit batch{spec, rows_of(flags)};
  const layout::HeadsPerRank heads = layout::heads_per_rank(c);
  const layout::CostModel model{
      heads.query, heads.key_value, c.head_dim, flags.element_bytes,
      c.combine != layout::Combine::automatic && c.combine != layout::Combine::ag_rs};
  layout::SplitProblems problems = layout::check_batch(batch);
  layout::BatchCost cost = layout::cost_of(batch, model);
  return {std::move(batch), std::move(problems), model, std::move(cost), flags.link_gb_s};
}

std::string svg_of(const PlanReport& report) {
  const layout::BatchSplit& batch = report.batch->batch;
  std::vector<std::string> names;
  names.reserve(batch.rows().size());
  for (std::size_t i = 0; i < batch.rows().size(); ++i) names.push_back(std::to_string(i));
  return layout::splits_svg(
      {{fmt::format("strategy {}, {} ranks", name(batch.spec().kind), batch.num_ranks()), batch,
        std::move(names)}});
}

int plan(const PlanFlags& flags) {
  if (flags.has_rules) {
    write_stdout(layout::rules_page());
    return kExitPassed;
  }
  if (flags.has_table) {
    write_stdout(layout::strategies_page());
    return kExitPassed;
  }
  if ((!flags.context.empty() || !flags.svg.empty()) && flags.tokens.empty()) {
    throw InputError{fmt::format("{} needs --tokens: the new tokens of each request",
                                 flags.svg.empty() ? "--context" : "--svg")};
  }
  PlanReport report{configuration_of(flags), {}, {}};
  report.broken = layout::broken_rules(report.configuration);
  if (!report.is_refused() && !flags.tokens.empty()) {
    report.batch.emplace(batch_report(flags, report.configuration));
    if (!flags.svg.empty()) write_output(flags.svg, svg_of(report));
  }
  write_stdout(flags.is_json ? plan_json(report) : plan_text(report));
  return report.is_right() ? kExitPassed : kExitFindings;
}

void add_sizes(CLI::App& command, PlanFlags& flags) {
  const auto size = [&command](const std::string& option, std::int64_t& value,
                               const std::string& help, std::int64_t largest) {
    command.add_option(option, value, help)
        ->type_name("N")
        ->check(CLI::Range(std::int64_t{1}, largest))
        ->capture_default_str();
  };
  Configuration& c = flags.configuration;
  size("--tp", c.tp, "Attention TP; for sglang the attention world", kRanksMax);
  size("--cp,--pcp", c.cp, "Ranks over which new tokens are split", kRanksMax);
  size("--dcp", c.dcp, "Ranks over which the cache is split", kRanksMax);
  size("--dp", c.dp, "Data-parallel replicas", kRanksMax);
  size("--pp", c.pp, "Pipeline stages", kRanksMax);
  size("--moe-dp", c.moe_dp, "Data parallelism of experts", kRanksMax);
  size("--ep", c.ep, "Expert parallelism", kRanksMax);
  size("--ulysses", c.ulysses, "Of ulysses_ring: ranks that exchange heads", kRanksMax);
  size("--heads-q", c.heads_q, "Query heads", 1024);
  size("--heads-kv", c.heads_kv, "KV heads", 1024);
  size("--head-dim", c.head_dim, "Elements of a head", 1024);
  size("--block-size", c.block_size, "Tokens of a block on one rank", kSizeMax);
  size("--interleave", c.interleave_size, "Neighbouring tokens on one shard", kSizeMax);
  size("--kernel-block-size", c.kernel_block_size, "Tokens of a kernel's block", kSizeMax);
  size("--deprecated-interleave", c.deprecated_interleave, "vLLM's older flag", kSizeMax);
  size("--workspace-tokens", c.workspace_tokens, "Of chunked context", kTokensMax);
  size("--chunk-tokens", c.chunk_tokens, "Of chunked prefill", kTokensMax);
  size("--speculative-tokens", c.speculative_tokens, "Drafts per step", 1024);
  size("--eagle-topk", c.eagle_topk, "Drafts per position", 1024);
  size("--element-bytes", flags.element_bytes, "Of Q, K, V and the output", 8);
}

void add_batch(CLI::App& command, PlanFlags& flags) {
  command.add_option("--tokens", flags.tokens, "New tokens of each request, e.g. 9,16,11")
      ->delimiter(',')
      ->type_name("L,...")
      ->check(CLI::Range(std::int64_t{0}, kTokensMax));
  command.add_option("--context", flags.context, "Tokens that each has in the cache")
      ->delimiter(',')
      ->type_name("P,...")
      ->check(CLI::Range(std::int64_t{0}, kTokensMax));
  command.add_option("--requests", flags.copies, "How often the requests are there")
      ->type_name("N")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{100'000}));
  command.add_flag("--decode", flags.is_decode, "The requests are in decode");
  command
      .add_option("--visibility", flags.visibility,
                  "Of dcp: split (context and new tokens apart) or cached (all in the cache)")
      ->check(CLI::IsMember({"split", "cached"}));
  command.add_option("--ring-order", flags.ring_order, "How a ring places tokens")
      ->check(CLI::IsMember({"zigzag", "contiguous"}));
  command.add_option("--link-gb-s", flags.link_gb_s, "10^9 bytes a second that a rank sends")
      ->type_name("X")
      ->check(CLI::Range(0.001, 1e6));
}

}  // namespace

void add_plan_command(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<PlanFlags>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "Say whether a configuration is right, what it makes of a batch, and what that costs");
  command->add_option("--system", flags->system, "vllm, vllm-ascend, sglang or cpverify")
      ->capture_default_str();
  command->add_option("--strategy", flags->strategy, "A name from --table");
  add_sizes(*command, *flags);
  command->add_option("--combine", flags->combine, "automatic, ag_rs, a2a, fi_a2a or direct");
  command->add_option("--backend", flags->backend, "Attention backend, e.g. fa3");
  command->add_option("--feature", flags->features, "What else is on, e.g. mla,sinks")
      ->delimiter(',')
      ->type_name("NAME,...");
  command->add_flag("--kv-over-cp", flags->configuration.is_cache_over_cp,
                    "The cache is split over cp * dcp ranks, not dcp");
  add_batch(*command, *flags);
  command->add_option("--svg", flags->svg, "Draw who holds and computes what")->type_name("FILE");
  command->add_flag("--json", flags->is_json, "As JSON, every rank and group");
  command->add_flag("--rules", flags->has_rules,
                    "Print the page of rules (docs/configuration_rules.md)");
  command->add_flag("--table", flags->has_table,
                    "Print the page of strategies (docs/strategies.md)");
  command->callback([flags, &action] { action = [flags] { return plan(*flags); }; });
}

}  // namespace cpverify::tool
