#include <cstdint>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "cpverify/system.hpp"
#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/cost.hpp"
#include "layout/coverage.hpp"
#include "layout/splits.hpp"
#include "layout/world_groups.hpp"
#include "report/rule_text.hpp"
#include "tool/plan_report.hpp"

namespace cpverify::tool {
namespace {

using Json = nlohmann::ordered_json;

Json configuration_json(const layout::Configuration& c) {
  Json features = Json::array();
  for (const Feature feature : all_features()) {
    if (c.has(feature)) features.push_back(name(feature));
  }
  return {{"system", name(c.system)},
          {"strategy", name(c.strategy)},
          {"tp", c.tp},
          {"cp", c.cp},
          {"dcp", c.dcp},
          {"dp", c.dp},
          {"pp", c.pp},
          {"heads_q", c.heads_q},
          {"heads_kv", c.heads_kv},
          {"head_dim", c.head_dim},
          {"block_size", c.block_size},
          {"interleave_size", c.interleave_size},
          {"combine", name(c.combine)},
          {"backend", name(c.backend)},
          {"features", std::move(features)}};
}

Json rules_json(const PlanReport& report) {
  Json rules = Json::array();
  for (const layout::BrokenRule& broken : report.broken) {
    rules.push_back(report::rule_json(layout::told(broken)));
  }
  return rules;
}

Json groups_json(const layout::Configuration& c) {
  Json groups = Json::object();
  for (const layout::GroupKind& kind : layout::world_groups(c)) {
    groups[std::string{kind.name}] = kind.groups;
  }
  return groups;
}

Json problems_json(const layout::SplitProblems& problems) {
  Json list = Json::array();
  for (const layout::SplitProblem& problem : problems.kept) {
    list.push_back({{"fault", name(problem.fault)},
                    {"request", problem.request},
                    {"ranks", problem.ranks},
                    {"message", problem.message}});
  }
  return {{"total", problems.total}, {"first", std::move(list)}};
}

Json ranks_json(const BatchReport& batch) {
  Json ranks = Json::array();
  for (const layout::RankCost& cost : batch.cost.ranks) {
    ranks.push_back({{"query_rows", cost.query_rows},
                     {"pairs", cost.pairs},
                     {"flops", cost.flops},
                     {"stored_tokens", cost.stored_tokens},
                     {"stored_bytes", cost.stored_bytes},
                     {"memory_bytes", cost.memory_bytes},
                     {"workspace_bytes", cost.workspace_bytes}});
  }
  return ranks;
}

Json exchanges_json(const layout::BatchCost& cost) {
  Json exchanges = Json::array();
  for (const layout::Exchange& exchange : cost.exchanges) {
    exchanges.push_back({{"collective", exchange.collective},
                         {"what", exchange.what},
                         {"group_size", exchange.group_size},
                         {"sent_bytes", exchange.sent_bytes}});
  }
  return exchanges;
}

Json devices_json(const BatchReport& batch) {
  Json devices = Json::array();
  for (const layout::Device& device : layout::all_devices()) {
    const layout::Roofline times = layout::roofline(batch.cost, device, batch.link_gb_s);
    devices.push_back({{"name", device.name},
                       {"source", device.source},
                       {"compute_s", times.compute},
                       {"memory_s", times.memory},
                       {"network_s", times.network},
                       {"serial_s", times.serial},
                       {"overlapped_s", times.overlapped}});
  }
  return devices;
}

Json batch_json(const BatchReport& batch) {
  Json rows = Json::array();
  for (const layout::SplitRow& row : batch.batch.rows()) {
    rows.push_back({{"computed", row.computed},
                    {"scheduled", row.scheduled},
                    {"state", row.is_decode ? "decode" : "prefill"}});
  }
  return {{"requests", std::move(rows)},
          {"is_split", batch.batch.is_split()},
          {"num_blocks", batch.batch.num_blocks()},
          {"problems", problems_json(batch.problems)},
          {"balance", batch.cost.balance},
          {"ranks", ranks_json(batch)},
          {"exchanges", exchanges_json(batch.cost)},
          {"devices", devices_json(batch)}};
}

}  // namespace

std::string plan_json(const PlanReport& report) {
  Json json{{"schema", "cpverify.configuration"},
            {"schema_version", 1},
            {"configuration", configuration_json(report.configuration)},
            {"is_refused", report.is_refused()},
            {"broken_rules", rules_json(report)}};
  if (!report.is_refused()) {
    const layout::HeadsPerRank heads = layout::heads_per_rank(report.configuration);
    const std::int64_t shards = layout::cache_shards(report.configuration);
    json["num_ranks"] = report.configuration.world_size();
    json["groups"] = groups_json(report.configuration);
    json["heads_per_rank"] = {{"query", heads.query}, {"key_value", heads.key_value}};
    json["cache_shards"] = shards;
    json["virtual_block"] = shards * report.configuration.block_size;
  }
  if (report.batch) json["batch"] = batch_json(*report.batch);
  return json.dump(2) + "\n";
}

}  // namespace cpverify::tool
