#include "tool/plan_report.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/system.hpp"
#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/cost.hpp"
#include "layout/coverage.hpp"
#include "layout/splits.hpp"
#include "layout/world_groups.hpp"
#include "report/rule_text.hpp"

namespace cpverify::tool {
namespace {

using layout::Configuration;

/// Lines of a table in text; JSON has all.
constexpr std::size_t kRowsMax = 16;

std::string headline(std::string_view verdict, const Configuration& c) {
  return fmt::format(
      "{}  {}  {}  tp {}, cp {}, dcp {}, dp {}, pp {}  heads {}/{} x {}, block {}, interleave {}\n",
      verdict, name(c.system), name(c.strategy), c.tp, c.cp, c.dcp, c.dp, c.pp, c.heads_q,
      c.heads_kv, c.head_dim, c.block_size, c.interleave_size);
}

void add_rules(const PlanReport& report, std::string& text) {
  for (const layout::BrokenRule& broken : report.broken) {
    text += report::rule_text(layout::told(broken), 2);
  }
}

void add_groups(const Configuration& c, std::string& text) {
  text += fmt::format("  ranks: {}\n", c.world_size());
  for (const layout::GroupKind& kind : layout::world_groups(c)) {
    text += fmt::format("  {} groups:", kind.name);
    std::size_t shown = 0;
    for (const std::vector<std::int64_t>& group : kind.groups) {
      if (shown == kRowsMax || group.size() > 4 * kRowsMax) break;
      text += fmt::format(" {{{}}}", fmt::join(group, " "));
      ++shown;
    }
    if (shown < kind.groups.size()) text += fmt::format(" ... {} in all", kind.groups.size());
    text += '\n';
  }
}

void add_cache(const Configuration& c, std::string& text) {
  const layout::HeadsPerRank heads = layout::heads_per_rank(c);
  const std::int64_t shards = layout::cache_shards(c);
  text += fmt::format("  heads of a rank: {} query, {} KV\n", heads.query, heads.key_value);
  text += fmt::format("  cache: {}, virtual block {} tokens\n",
                      shards == 1 ? "every rank stores all" : fmt::format("{} shards", shards),
                      c.block_size * shards);
}

std::string six_digits(double value) {
  return fmt::format("{:.6g}", value);
}

void add_ranks(const BatchReport& batch, std::string& text) {
  text += "  rank  rows       pairs x heads      stored tokens  KV bytes       workspace bytes\n";
  const auto& ranks = batch.cost.ranks;
  for (std::size_t rank = 0; rank < std::min(ranks.size(), kRowsMax); ++rank) {
    const layout::RankCost& cost = ranks[rank];
    text += fmt::format("  {:<4}  {:<9}  {:<17}  {:<13}  {:<13}  {}\n", rank, cost.query_rows,
                        cost.pairs, cost.stored_tokens, cost.stored_bytes, cost.workspace_bytes);
  }
  if (ranks.size() > kRowsMax) {
    text += fmt::format("  ... {} ranks in all; --json lists them\n", ranks.size());
  }
}

void add_cost(const BatchReport& batch, std::string& text) {
  text += fmt::format("  balance of pairs, busiest / mean: {:.4f}\n", batch.cost.balance);
  for (const layout::Exchange& exchange : batch.cost.exchanges) {
    text += fmt::format("  {} of {}: {} bytes sent by each of {} ranks\n", exchange.collective,
                        exchange.what, exchange.sent_bytes, exchange.group_size);
  }
  for (const layout::Device& device : layout::all_devices()) {
    const layout::Roofline times = layout::roofline(batch.cost, device, batch.link_gb_s);
    text += fmt::format(
        "  {}: at least {} us a layer: attention {}, memory {}, network {}; {} without overlap\n",
        device.name, six_digits(times.overlapped * 1e6), six_digits(times.compute * 1e6),
        six_digits(times.memory * 1e6), six_digits(times.network * 1e6),
        six_digits(times.serial * 1e6));
  }
}

void add_local_lengths(const BatchReport& batch, std::string& text) {
  if (batch.batch.num_shards() == 1) return;
  const std::size_t shown = std::min<std::size_t>(batch.batch.rows().size(), kRowsMax);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::uint32_t ranks = std::min<std::uint32_t>(batch.batch.num_ranks(), kRowsMax);
    text += fmt::format("  local lengths of request {}:", i);
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      text += fmt::format(" {}", batch.batch.local_length(i, rank));
    }
    text += ranks < batch.batch.num_ranks() ? " ...\n" : "\n";
  }
}

void add_batch(const BatchReport& batch, std::string& text) {
  const std::size_t requests = batch.batch.rows().size();
  text += fmt::format("\n  batch: {} {}, {} new tokens, over {} ranks of one domain{}\n", requests,
                      requests == 1 ? "request" : "requests", batch.batch.num_tokens(),
                      batch.batch.num_ranks(),
                      batch.batch.is_split() ? "" : "; not split: every rank computes all of it");
  if (batch.problems.empty()) {
    text +=
        "  proved: every visible (query, key) once, shares are partitions, slots written once by "
        "their owner, arrays large enough\n";
  }
  for (const layout::SplitProblem& problem : batch.problems.kept) {
    text += fmt::format("  WRONG {}: {}\n", name(problem.fault), problem.message);
  }
  if (batch.problems.total > batch.problems.kept.size()) {
    text += fmt::format("  {} problems in all\n", batch.problems.total);
  }
  add_local_lengths(batch, text);
  add_ranks(batch, text);
  add_cost(batch, text);
}

}  // namespace

std::string plan_text(const PlanReport& report) {
  if (report.is_refused()) {
    std::string text = headline("REFUSED", report.configuration);
    add_rules(report, text);
    const std::size_t rules = report.broken.size();
    return text + fmt::format("{} {} broken\n", rules, rules == 1 ? "rule" : "rules");
  }
  std::string text = headline(report.is_right() ? "PLAN" : "WRONG", report.configuration);
  add_rules(report, text);
  add_groups(report.configuration, text);
  add_cache(report.configuration, text);
  if (report.batch) add_batch(*report.batch, text);
  return text;
}

}  // namespace cpverify::tool
